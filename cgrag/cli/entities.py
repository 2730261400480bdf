"""`cgrag entities`."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from cgrag.cli.output import Json, console, errors, plain, print_json, shown_progress

if TYPE_CHECKING:
    from pipelines.entities.decide import Decided
    from pipelines.entities.suggest import Suggestion
    from pipelines.settings import Settings

app = typer.Typer(help="Names that may mean the same: suggested, reviewed, reversible.", no_args_is_help=True)
Entity = Annotated[str, typer.Argument(help="A name, or an entity's id.")]


@app.command("suggest")
def suggest(
    k: Annotated[int, typer.Option(min=1, help="How many pairs, the likeliest first.")] = 20, json: Json = False
) -> None:
    """Pairs that nobody has decided about, each with its score and the evidence for it."""
    from dataclasses import asdict

    from pipelines.dense.encoder import is_installed, load_encoder
    from pipelines.entities.suggest import suggest as look
    from pipelines.settings import load_settings

    settings = load_settings()
    with shown_progress() as report:
        opened = (lambda: load_encoder(settings, report)) if is_installed() else None
        found = look(settings, k, opened)
    if json:
        print_json(asdict(found))
        return
    for row in found.suggestions:
        console.print(f"{row.score:.2f}  {plain(row.a['id'])}  =  {plain(row.b['id'])}", style="bold", markup=False)
        for line in _lines(row):
            console.print(f"      {plain(line)}", style="dim", markup=False)
    told = f"{found.candidates:,} pairs of {found.names:,} names are open{f' ({found.note})' if found.note else ''}."
    console.print(plain(told), markup=False)
    if found.suggestions:
        row = found.suggestions[0]
        console.print(
            f"Decide:  cgrag entities accept '{plain(row.a['id'])}' '{plain(row.b['id'])}'      or  reject",
            markup=False,
        )


def _lines(row: "Suggestion") -> list[str]:
    """The evidence of a pair in words."""
    said, lines = row.evidence, []
    if "abbreviation" in said:
        lines.append(f"abbreviation  {_where(said['abbreviation'])}")
    spelling = said["spelling"]
    alike = f"same key, one of {spelling['meanings']}" if spelling.get("meanings", 1) > 1 else "same key"
    parts = [alike if spelling["same_key"] else f"spelling {spelling['ratio']:.2f}"]
    if "embedding" in said:
        parts.append(f"vectors {said['embedding']['cosine']:.2f}")
    parts.append(" / ".join(", ".join(types) for types in said["types"]))
    for name in ("neighbours", "chunks"):
        if said[name]["both"]:
            first = said[name]["shared"][0]
            shown = first if isinstance(first, str) else _where(first)
            parts.append(f"{said[name]['both']} of {said[name]['of']} {name} shared ({shown})")
    lines.append("  ".join(parts))
    for one in (row.a, row.b):
        place = f", first {_where(one['place'])}" if one["place"] else ""
        lines.append(f"{one['name']}  ×{one['mentions']}{place}")
    return lines


def _where(place: dict[str, Any]) -> str:
    return f"{place['path']}:{place['start_line']}"


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
