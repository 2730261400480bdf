"""The `cgrag` command. Nothing heavy is imported until a command needs it."""

import sys

import typer

from cgrag.cli import (
    answer,
    doctor,
    entities,
    evaluate,
    evaluate_extraction,
    graph,
    ledger,
    llm,
    neo4j,
    plan,
    questions,
    run,
    search,
    status,
    ui,
)
from cgrag.collecting import collect_seldom
from pipelines.errors import CgragError

app = typer.Typer(
    help="Search a source tree, its code and its docs, and see its pipeline in the Dagster UI.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("run")(run.run)
app.command("resume")(run.resume)
app.command("status")(status.status)
app.command("plan")(plan.plan)
app.command("search")(search.search)
app.command("graph")(graph.graph)
app.command("answer")(answer.answer)
app.command("evaluate")(evaluate.evaluate)
app.command("evaluate-extraction")(evaluate_extraction.evaluate_extraction)
app.command("search-dataset")(evaluate.search_dataset)
app.command("answer-dataset")(answer.answer_dataset)
app.add_typer(questions.app, name="questions")
app.add_typer(entities.app, name="entities")
app.add_typer(ledger.app, name="ledger")
app.add_typer(llm.app, name="llm")
app.add_typer(neo4j.app, name="neo4j")
app.command("ui")(ui.ui)
app.command("doctor")(doctor.doctor)


def main() -> None:
    """Run the command line; what a user can mend is told in two lines, without a traceback."""
    collect_seldom()
    try:
        app()
    except CgragError as error:
        print(error, file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        print("Stopped. What was finished is kept:  cgrag run", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:
        sys.stderr.close()
        sys.exit(141)
