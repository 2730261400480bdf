"""`cgrag search`."""

import sys
from typing import Annotated

import typer

from cgrag.cli.output import GraphStore, Json, SearchMode, checked_mode, checked_store, console, plain, print_json


def search(
    question: Annotated[
        str, typer.Argument(help="The question; - reads it from standard input. After -- it may begin with a dash.")
    ],
    k: Annotated[int, typer.Option(min=1, help="How many chunks at most.")] = 5,
    mode: SearchMode = "lexical",
    graph: Annotated[bool, typer.Option("--graph", help="Let the graph answer who calls, inherits, tests …")] = False,
    store: GraphStore = "duckdb",
    json: Json = False,
) -> None:
    """Rank the chunks of the corpus for a question."""
    from cgrag import Corpus
    from pipelines.retrieve.search import snippet

    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    asked, ranked = checked_store(store), checked_mode(mode)
    if asked == "neo4j" and not graph:
        raise typer.BadParameter("it goes with --graph", param_hint="--store")
    results = Corpus().search(question, k, mode=ranked, graph=graph, store=asked)
    if json:
        print_json({"question": question, "mode": mode, "results": [_row(result) for result in results]})
        return
    if not results:
        lacking = "shares a word with" if mode == "lexical" else "is like"
        console.print(f"No sources: no chunk {lacking} the question.")
    for result in results:
        console.print(f"[bold]{result.rank}. [/]", end="")
        console.print(
            f"{plain(result.path)}:{max(result.part.start_line, result.start_line)}", style="bold", markup=False, end=""
        )
        console.print(f"  {plain(result.part.name)}", style="cyan", markup=False, end="")
        console.print(f"  {result.score:.2f}  {plain(result.why)}", style="dim", markup=False)
        for number, line in snippet(result, question):
            console.print(f"   {number:>5}  {plain(line)[:160]}", markup=False)


def _row(result) -> dict[str, object]:  # type: ignore[no-untyped-def]
    return {
        "rank": result.rank,
        "path": result.path,
        "start": result.start,
        "end": result.end,
        "start_line": result.start_line,
        "end_line": result.end_line,
        "score": result.score,
        "via": result.via,
        "why": result.why,
        "name": result.part.name,
        "unit": {"start_line": result.part.start_line, "end_line": result.part.end_line},
        "text": result.text,
    }
