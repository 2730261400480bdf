"""`cgrag run` and `cgrag resume`."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from cgrag.cli.output import Json, errors, names_in, print_json, shown_progress

if TYPE_CHECKING:
    from pipelines.extract.plan import Order


def run(
    corpus: Annotated[Optional[str], typer.Option(help="A folder, git+URL@REF, or pypi:NAME==VERSION.")] = None,  # noqa: UP045
    select: Annotated[str, typer.Option(help="Build only these assets (comma-separated), if they are stale.")] = "",
    partition: Annotated[str, typer.Option(help="Build only these partitions (comma-separated).")] = "",
    llm_chunks: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(min=0, help="Ask the model about at most so many of the chunks without a result."),
    ] = None,
    llm_questions: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Ask the model about the chunks that hold the answers of this question file."),
    ] = None,
    distractors: Annotated[int, typer.Option(min=0, help="… and about so many others, at random.")] = 0,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do not ask before all that is pending is extracted or summarised.")
    ] = False,
    json: Json = False,
) -> None:
    """Materialize what is missing or stale, through Dagster.

    The model is asked about nothing, unless --llm-chunks, --llm-questions, --select extractions or --select
    community_summaries says so.
    """
    from pipelines.extract.plan import Order

    if distractors and llm_questions is None:
        raise typer.BadParameter("it goes with --llm-questions FILE", param_hint="--distractors")
    names, partitions = names_in(select), names_in(partition)
    limited = llm_chunks is not None or llm_questions is not None
    order = None
    if limited or "extractions" in names:
        order = Order(llm_chunks, llm_questions, distractors, tuple(partitions))
        names += ["extractions"] if names and "extractions" not in names else []
    _materialize(corpus, names, partitions, json, order, yes or limited)


def resume(
    failed: Annotated[bool, typer.Option("--failed", help="The partitions whose last run failed.")] = False,
    json: Json = False,
) -> None:
    """Redo failed partitions, only what is missing of them."""
    from pipelines.corpus.scan import load_plan
    from pipelines.extract.plan import Order
    from pipelines.layout import Layout
    from pipelines.settings import load_settings
    from pipelines.state import PARTITIONED_ASSETS, failures, missing_chunks

    if not failed:
        raise typer.BadParameter("say what to resume: cgrag resume --failed")
    layout = Layout(load_settings().home)
    plan = load_plan(layout)
    missing = missing_chunks(layout, "extractions", plan)
    before = sorted({key for asset in PARTITIONED_ASSETS for key in failures(layout, asset, plan)})
    errors.print(f"{len(before)} failed partitions" + (f": {', '.join(before)}" if before else "; nothing to resume."))
    _materialize(None, [], [], json, Order(listed=missing) if missing else None, True)
    left = load_plan(layout).partitions
    for key in before:
        if key not in left:
            errors.print(f"{key} no longer exists; nothing of it is left to do.")


def _materialize(
    corpus: str | None, select: list[str], partitions: list[str], json: bool, order: "Order | None", yes: bool
) -> None:
    from cgrag.cli.plan import told, told_summaries
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
    with shown_progress() as report:
        errors.print(f"Corpus {spec.text} in {settings.home}")
        found = scan_corpus(spec, settings, report)
        if found.note:
            errors.print(f"[yellow]{found.note}[/]")
        materializer = Materializer(settings, report, lambda text: errors.print(text, markup=False))
        built = materializer.run(
            found,
            select,
            partitions,
            order,
            lambda plan: _confirmed(told(plan), plan.chunks, yes, "extractions"),
            lambda plan: _confirmed(told_summaries(plan), plan.requests, yes, "community_summaries"),
        )
    seconds = time.monotonic() - started
    if not built:
        errors.print(f"Nothing to do: all is up to date ({seconds:.1f} s).")
    else:
        errors.print(f"Built {', '.join(built)} in {seconds:.1f} s.")
    if json:
        print_json(document(settings))
    else:
        print_summary(settings)


def _confirmed(lines: list[str], requests: int, yes: bool, asset: str) -> bool:
    """Show what the model is about to be asked, and ask whether it shall be, unless told before."""
    from pipelines.errors import CgragError

    for line in lines:
        errors.print(line, markup=False)
    if not requests or yes:
        return True
    if not sys.stdin.isatty():
        raise CgragError(
            "The model was asked about nothing: there is no terminal to confirm it at.",
            f"Go on without being asked:  cgrag run --select {asset} --yes",
        )
    return typer.confirm("Ask the model?", err=True)
