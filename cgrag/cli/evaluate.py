"""`cgrag evaluate` and `cgrag search-dataset`."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cgrag.cli.output import Json, console, errors, names_in, plain, print_json, print_table, shown_progress

if TYPE_CHECKING:
    from pipelines.evaluate.evaluation import Evaluation
    from pipelines.evaluate.questions import Finding

_SHOWN_FINDINGS = 10
Questions = Annotated[Path, typer.Argument(help="A question file (README, Evaluation).")]


def evaluate(
    questions: Questions,
    modes: Annotated[str, typer.Option(help="Rankings, comma-separated; all that are built unless told.")] = "",
    arms: Annotated[str, typer.Option(help="What is handed over, comma-separated; all that can be unless told.")] = "",
    k: Annotated[str, typer.Option(help="Numbers of chunks, comma-separated.")] = "3,5,10",
    min_coverage: Annotated[float, typer.Option(help="The share of a source that one chunk must hold, to 1.")] = 0.5,
    results: Annotated[Optional[Path], typer.Option(help="Score this file of results, not the product.")] = None,  # noqa: UP045
    misses: Annotated[bool, typer.Option("--misses", help="List what was not found, and what came instead.")] = False,
    json: Json = False,
) -> None:
    """Recall of a question file's sources, with 95 % intervals and the difference to the retriever alone."""
    from pipelines.evaluate.evaluation import document, evaluate_file
    from pipelines.settings import load_settings

    ks = _numbers(k)
    if not 0 < min_coverage <= 1:
        raise typer.BadParameter("it must be above 0 and at most 1", param_hint="--min-coverage")
    with shown_progress() as report:
        found = evaluate_file(
            load_settings(),
            questions,
            modes=names_in(modes),
            arms=names_in(arms),
            ks=ks,
            min_coverage=min_coverage,
            results=results,
            progress=report("Asking", "questions"),
        )
    _tell(found.findings)
    if json:
        print_json(document(found, with_misses=misses))
        return
    _print(found)
    if misses:
        _print_misses(found)


def search_dataset(
    questions: Questions,
    out: Annotated[Path, typer.Option(help="The file to write.")],
    k: Annotated[int, typer.Option(min=1, help="How many chunks for each question at most.")] = 10,
    mode: Annotated[str, typer.Option(help="The ranking: lexical, dense or hybrid.")] = "lexical",
    graph: Annotated[bool, typer.Option("--graph", help="Hand over what `search --graph` does.")] = False,
    json: Json = False,
) -> None:
    """Rank chunks for every question of a file, and write them for `cgrag evaluate --results`."""
    from pipelines.evaluate.arms import MODES, Bench, chosen
    from pipelines.evaluate.places import load_places
    from pipelines.evaluate.questions import read_texts
    from pipelines.evaluate.results_file import write_results
    from pipelines.lexical.index import load_index
    from pipelines.settings import load_settings

    settings = load_settings()
    arm = chosen("arm", ["graph" if graph else "plain"], settings)[0]
    open_mode = MODES[chosen("mode", [mode], settings)[0]].open
    places = load_places(settings, load_index(settings))
    asked = read_texts(questions, places)
    with shown_progress() as report:
        bench = Bench(settings, places, asked, open_mode(settings), report("Asking", "questions"))
        rankings = bench.handed_over(arm, k)
    about: dict[str, Any] = {"k": k, "mode": mode, "arm": arm, "corpus": places.corpus, "generation": places.generation}
    write_results(out, asked, rankings, **about)
    empty = sum(not ranking for ranking in rankings)
    errors.print(f"{len(asked)} questions in {out}; {empty} without results.", markup=False)
    errors.print(f"Score them:  cgrag evaluate {questions} --results {out}", markup=False)
    if json:
        print_json({"out": str(out), "questions": len(asked), "without_results": empty, **about})


def _numbers(text: str) -> list[int]:
    names = names_in(text)
    if not names or not all(name.isascii() and name.isdecimal() and 0 < int(name) <= 1000 for name in names):
        raise typer.BadParameter(f"{text!r} is no list of numbers from 1 to 1000, such as 3,5,10", param_hint="--k")
    return [int(name) for name in names]


def _tell(findings: "Sequence[Finding]") -> None:
    from pipelines.evaluate.questions import summary

    if findings:
        errors.print(f"Findings about the files: {summary(findings)}", markup=False)
    for finding in findings[:_SHOWN_FINDINGS]:
        parts = (finding.kind, finding.question_id, finding.detail)
        errors.print(f"  {': '.join(plain(part) for part in parts if part)}", markup=False)
    if len(findings) > _SHOWN_FINDINGS:
        errors.print(f"  … and {len(findings) - _SHOWN_FINDINGS} more; --json has them all.", markup=False)


def _print(found: "Evaluation") -> None:
    from pipelines.evaluate.evaluation import fired
    from pipelines.evaluate.report import ROW_HEADER, row_cells

    asked = found.asked
    console.print(
        f"{plain(asked.name)}: {len(asked.questions)} questions on {found.corpus}; found: one chunk holds "
        f"{found.min_coverage:.0%} of a source; ceiling {asked.ceiling:.2f}",
        markup=False,
    )
    print_table([ROW_HEADER, *map(row_cells, found.rows)])
    if told := fired(found):
        console.print(plain(told), markup=False)
    console.print("At equal characters (1,500 for each of k)", markup=False)
    print_table([ROW_HEADER, *(row_cells(row) for row in found.equal_characters if row.split == "all")])


def _print_misses(found: "Evaluation") -> None:
    from pipelines.evaluate.report import place

    first = found.rows[0]
    console.print(f"{len(found.misses)} misses of {first.mode}, {first.arm}, at k = {found.ks[-1]}", markup=False)
    for miss in found.misses:
        console.print(f"{plain(miss.question_id)}  {plain(miss.question)[:160]}", style="bold", markup=False)
        for span, rank in miss.sources:
            where = f"at rank {rank}" if rank else "not in the first 50"
            console.print(f"    wanted   {plain(span.path)} [{span.start}:{span.end}]  {where}", markup=False)
        for span, line in miss.returned[:3]:
            console.print(f"    instead  {plain(place(span, line))}", markup=False)
