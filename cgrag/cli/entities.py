"""`cgrag entities`."""

from typing import TYPE_CHECKING, Annotated

import typer

from cgrag.cli.output import Json, console, errors, plain, print_json

if TYPE_CHECKING:
    from pipelines.entities.decide import Decided
    from pipelines.settings import Settings

app = typer.Typer(help="Names that may mean the same: suggested, reviewed, reversible.", no_args_is_help=True)
Entity = Annotated[str, typer.Argument(help="A name, or an entity's id.")]


@app.command("accept")
def accept(
    a: Entity,
    b: Entity,
    into: Annotated[str, typer.Option(help="Which of the two stays; else a symbol, or what is mentioned more.")] = "",
    json: Json = False,
) -> None:
    """Record that two entities are one; the next build of the graph merges them."""
    from pipelines.entities.decide import accept as decide
    from pipelines.settings import load_settings

    settings = load_settings()
    _told(settings, decide(settings, a, b, into), json)


@app.command("reject")
def reject(a: Entity, b: Entity, json: Json = False) -> None:
    """Record that two entities are not one; a merge of them is undone by the next build of the graph."""
    from pipelines.entities.decide import reject as decide
    from pipelines.settings import load_settings

    settings = load_settings()
    _told(settings, decide(settings, a, b), json)


def _told(settings: "Settings", decided: "Decided", json: bool) -> None:
    from pipelines.graph.reviewed import reviewed_file

    decision, before, path = decided.decision, decided.before, reviewed_file(settings)
    if json:
        print_json(decision.model_dump() | {"file": str(path), "before": before.verdict if before else None})
        return
    said = f"{decision.a} and {decision.b} are "
    said += f"one: {decision.into}" if decision.into else "not one"
    console.print(f"{plain(said)}  ({path})", markup=False)
    if "accepted" in (decision.verdict, before.verdict if before else "") and decision != before:
        errors.print("The graph follows with the next build:  cgrag run --select knowledge_graph", markup=False)
