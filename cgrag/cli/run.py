"""`cgrag run` and `cgrag resume`."""

import time
from typing import Annotated, Optional

import typer

from cgrag.cli.output import Json, ShellProgress, errors, print_json, shown_progress


def run(
    corpus: Annotated[Optional[str], typer.Option(help="A folder, git+URL@REF, or pypi:NAME==VERSION.")] = None,  # noqa: UP045
    select: Annotated[str, typer.Option(help="Build only these assets (comma-separated), if they are stale.")] = "",
    partition: Annotated[str, typer.Option(help="Build only these partitions (comma-separated).")] = "",
    json: Json = False,
) -> None:
    """Materialize what is missing or stale, through Dagster."""
    _materialize(corpus, _names(select), _names(partition), json)


def resume(
    failed: Annotated[bool, typer.Option("--failed", help="The partitions whose last run failed.")] = False,
    json: Json = False,
) -> None:
    """Redo failed partitions, only what is missing of them."""
    from pipelines.corpus.scan import load_plan
    from pipelines.layout import Layout
    from pipelines.settings import load_settings
    from pipelines.state import failures

    if not failed:
        raise typer.BadParameter("say what to resume: cgrag resume --failed")
    layout = Layout(load_settings().home)
    before = sorted(failures(layout, "chunks", load_plan(layout)))
    errors.print(f"{len(before)} failed partitions" + (f": {', '.join(before)}" if before else "; nothing to resume."))
    _materialize(None, [], [], json)
    left = load_plan(layout).partitions
    for key in before:
        if key not in left:
            errors.print(f"{key} no longer exists; nothing of it is left to do.")


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(",") if name.strip()]


def _materialize(corpus: str | None, select: list[str], partitions: list[str], json: bool) -> None:
    from cgrag.cli.status import document, print_summary
    from cgrag.materialize import Materializer, stale_assets
    from pipelines.corpus.scan import scan_corpus
    from pipelines.corpus.spec import check_home, held_spec, parse_spec
    from pipelines.layout import Layout
    from pipelines.settings import load_settings

    started = time.monotonic()
    settings = load_settings()
    layout = Layout(settings.home)
    stale_assets([], select)
    spec = parse_spec(corpus) if corpus else held_spec(layout)
    check_home(layout, spec)
    with shown_progress() as bars:

        def report(doing: str, unit: str) -> ShellProgress:
            for bar in bars:
                bar.close()
            bars[:] = [ShellProgress(doing, unit)]
            return bars[0]

        errors.print(f"Corpus {spec.text} in {settings.home}")
        found = scan_corpus(spec, settings, report)
        if found.note:
            errors.print(f"[yellow]{found.note}[/]")
        built = Materializer(settings, report).run(found, select, partitions)
    seconds = time.monotonic() - started
    if not built:
        errors.print(f"Nothing to do: all is up to date ({seconds:.1f} s).")
    else:
        errors.print(f"Built {', '.join(built)} in {seconds:.1f} s.")
    if json:
        print_json(document(settings))
    else:
        print_summary(settings)
