"""`cgrag answer` and `cgrag answer-dataset`."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cgrag.cli.output import Json, console, errors, one_of, plain, print_json, shown_progress

if TYPE_CHECKING:
    from pipelines.answer.answer import Answer
    from pipelines.answer.answerer import Answerer, AnswerMode
    from pipelines.answer.recipe import Turn

K = Annotated[int, typer.Option(min=1, help="How many chunks are retrieved.")]
HowToAnswer = Annotated[
    str,
    typer.Option(
        "--mode",
        help="auto: the best retriever built, and the graph; local: the graph around the question's entities, too; "
        "global: summaries of the whole corpus; naive: the retriever alone.",
    ),
]
NoModel = Annotated[bool, typer.Option("--no-model", help="Ask no model: the graph's answers, and sources.")]
_SHOWN, _SHOWN_FAILED = 20, 5
_MODES: "tuple[AnswerMode, ...]" = ("auto", "local", "global", "naive")
_ENDS = ("exit", "quit", "/exit", "/quit")


def answer(
    question: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(help="The question; - reads it from standard input. After -- it may begin with a dash."),
    ] = None,
    k: K = 5,
    mode: HowToAnswer = "auto",
    no_model: NoModel = False,
    chat: Annotated[bool, typer.Option("--chat", help="Go on asking; a question may refer to those before.")] = False,
    json: Json = False,
) -> None:
    """Answer a question from the corpus, each sentence with its sources; structure is answered by the graph alone."""
    from pipelines.answer.answerer import Answerer
    from pipelines.settings import load_settings

    if question is None and not chat:
        raise typer.BadParameter(
            'it is needed, or --chat:  cgrag answer "How do I enable LoRA?"', param_hint="QUESTION"
        )
    if question == "-":
        question = sys.stdin.buffer.read().decode("utf-8", "replace")
    with shown_progress() as report, Answerer(load_settings(), k, one_of(mode, _MODES, "--mode"), report) as answerer:
        if chat:
            _converse(answerer, question, no_model, json)
            return
        assert question is not None
        found = answerer.answer(question, ask=not no_model)
    if json:
        print_json(found.document())
    else:
        _show(found)
    _tell(found)
    if found.missing:
        raise typer.Exit(1)


def answer_dataset(
    questions: Annotated[Path, typer.Argument(help="A question file (README, Evaluation).")],
    out: Annotated[Path, typer.Option(help="The file to write.")],
    k: K = 5,
    mode: HowToAnswer = "auto",
    no_model: NoModel = False,
    json: Json = False,
) -> None:
    """Answer every question of a file; started again, it asks only what has no answer yet."""
    from pipelines.answer.answerer import Answerer
    from pipelines.evaluate.places import Span, load_places
    from pipelines.evaluate.questions import read_texts
    from pipelines.evaluate.results_file import write_results
    from pipelines.lexical.index import load_index
    from pipelines.settings import load_settings

    settings, how = load_settings(), one_of(mode, _MODES, "--mode")
    places = load_places(settings, load_index(settings))
    asked = read_texts(questions, places)
    with shown_progress() as report, Answerer(settings, k, how, report) as answerer:
        found = answerer.answer_all([question.text for question in asked], ask=not no_model)
    rankings = [[Span(*span) for span in one.retrieved] for one in found]
    about: dict[str, Any] = {"k": k, "mode": mode, "corpus": places.corpus, "generation": places.generation}
    write_results(out, asked, rankings, answers=[_row(one) for one in found], **about)
    failed = [(question.id, one.missing) for question, one in zip(asked, found, strict=True) if one.missing]
    counts = {
        "found": sum(one.found for one in found),
        "cached": sum(one.cached for one in found),
        "failed": len(failed),
    }
    told = ", ".join(f"{count} {name}" for name, count in counts.items())
    errors.print(f"{len(asked)} questions in {out}: {told}", markup=False)
    for name, why in failed[:_SHOWN_FAILED]:
        errors.print(f"  {plain(name)}: {plain(why)}", markup=False)
    if len(failed) > _SHOWN_FAILED:
        errors.print(f"  … and {len(failed) - _SHOWN_FAILED} more", markup=False)
    if json:
        print_json({"out": str(out), "questions": len(asked), **counts, **about})
    if failed:
        errors.print("Ask those again with the same command; the others are kept.", markup=False)
        raise typer.Exit(1)


def _converse(answerer: "Answerer", first: str | None, no_model: bool, json: bool) -> None:
    from pipelines.answer.conversation import turn_of

    turns: list[Turn] = []
    documents: list[dict[str, object]] = []
    for question in _questions(first):
        found = answerer.answer(question, turns, ask=not no_model)
        turns.append(turn_of(found))
        documents.append(found.document())
        if not json:
            _show(found)
        _tell(found)
    if json:
        print_json({"turns": documents})
    if any(document["missing"] for document in documents):
        raise typer.Exit(1)


def _questions(first: str | None) -> Iterator[str]:
    """What is asked, a line each, until the input ends or `exit`; blank lines are passed over."""
    if first is not None:
        yield first
    while True:
        if sys.stdin.isatty():
            errors.print("? ", style="bold", end="")
        line = sys.stdin.readline()
        if not line or line.strip().lower() in _ENDS:
            return
        if line.strip():
            yield line.strip()


def _show(found: "Answer") -> None:
    if found.text:
        console.print(_plain_lines(found.text), style="" if found.found else "yellow", markup=False)
    for name in found.unsupported:
        console.print(f"  (!) {plain(name)} stands in no source that is cited", style="yellow", markup=False)
    for source in found.sources[:_SHOWN]:
        console.print(f"  [{source.n}] ", style="dim", markup=False, end="")
        style = "bold" if source.cited else ""
        console.print(f"{plain(source.path)}:{source.start_line}", style=style, markup=False, end="")
        lines = f"-{source.end_line}" if source.end_line > source.start_line else ""
        console.print(f"{lines}  ", markup=False, end="")
        console.print(plain(source.name.rpartition("::")[2]), style="cyan", markup=False)
    if len(found.sources) > _SHOWN:
        console.print(f"  … and {len(found.sources) - _SHOWN:,} more; --json has all.", markup=False)
    if not found.sources:
        console.print("  No source is like the question.", markup=False)


def _plain_lines(text: str) -> str:
    return "\n".join(map(plain, text.split("\n")))


def _tell(found: "Answer") -> None:
    if found.calls > 1:
        errors.print(f"{found.calls} model calls", style="dim", markup=False)
    for note in [*found.notes, *([found.missing] if found.missing else [])]:
        errors.print(plain(note), style="dim" if note != found.missing else "", markup=False)


def _row(found: "Answer") -> dict[str, object]:
    cited = [source.row() for source in found.sources if source.cited]
    return {"answer": found.text, "found": found.found, "by": found.by, "cited": cited}
