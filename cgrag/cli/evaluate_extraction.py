"""`cgrag evaluate-extraction`."""

from typing import TYPE_CHECKING, Annotated

import typer

from cgrag.cli.output import Json, console, errors, names_in, one_of, plain, print_json, print_table, shown_progress

if TYPE_CHECKING:
    from pipelines.evaluate.annotations import Split
    from pipelines.evaluate.extraction_report import ExtractionReport

_SPLITS: "tuple[Split, ...]" = ("dev", "test", "all")


def evaluate_extraction(
    recipe: Annotated[
        str, typer.Option(help="Names out of `cgrag ledger stats`, comma-separated; else the recipe of the settings.")
    ] = "",
    split: Annotated[str, typer.Option(help="Annotated chunks: test (what counts), dev (to tune on) or all.")] = "test",
    ask: Annotated[bool, typer.Option(help="Ask the model about chunks without an answer.")] = True,
    json: Json = False,
) -> None:
    """What a recipe's edges are worth on annotated docs and on code, beside rules, co-occurrence and chance.

    On the split test, the measure is stored, and decides whether searches follow the recipe's edges.
    """
    from pipelines.evaluate import extraction_report
    from pipelines.settings import load_settings

    chosen = one_of(split, _SPLITS, "--split")
    settings = load_settings()
    with shown_progress() as report:
        found = extraction_report.evaluate_extraction(
            settings,
            names_in(recipe),
            split=chosen,
            ask=ask,
            report=report,
        )
    extraction_report.store_report(settings, found)
    if json:
        print_json(extraction_report.document(found))
        return
    _print(found)


def _print(found: "ExtractionReport") -> None:
    from pipelines.evaluate.extraction_table import CODE, DOCS, cells

    agreed = ", ".join(f"{kind} {share:.2f}" for kind, share in found.agreement.items())
    told = f" (two annotators agree on: {agreed})" if agreed else ""
    console.print(f"{found.docs[0].chunks} annotated chunks of docs, split {found.split}{told}", markup=False)
    print_table([["", *DOCS], *(cells(scores, DOCS) for scores in found.docs)])
    console.print(f"{found.code[0].chunks} chunks of code, against the parser", markup=False)
    print_table([["", *CODE], *(cells(scores, CODE) for scores in found.code)])
    for measured in found.recipes:
        verdict = measured.verdict
        console.print(f"{plain(measured.recipe)} ({measured.format}): ", markup=False, end="")
        console.print("admitted" if verdict.admitted else "not admitted", style="bold", end="")
        console.print(f": {plain(verdict.why)}", markup=False)
        share = sum(measured.degenerate.values()) / measured.answered_edges if measured.answered_edges else 0.0
        kinds = ", ".join(f"{kind} {number}" for kind, number in measured.degenerate.items())
        console.print(
            f"  {measured.answered_edges} edges answered, {share:.0%} degenerate{f' ({kinds})' if kinds else ''}; "
            f"{measured.tokens_per_chunk} tokens an answer, {measured.chunks_per_second} chunks/s",
            markup=False,
        )
        for problem, number in measured.problems.items():
            errors.print(f"  {number} chunks have no answer: {plain(problem)}", markup=False)
    if found.split == "test":
        console.print("Take it into the graph:  cgrag run --select knowledge_graph", markup=False)
