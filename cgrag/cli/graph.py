"""`cgrag graph`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from cgrag.cli.output import GraphStore, Json, checked_store, console, errors, names_in, one_of, plain, print_json

if TYPE_CHECKING:
    from pipelines.graph.traversal import Direction, Edge, Entity, Traversal
    from pipelines.settings import Settings

_SHOWN = 60
_DIRECTIONS: "tuple[Direction, ...]" = ("in", "out", "both")


def graph(
    name: Annotated[
        Optional[str],  # noqa: UP045
        typer.Argument(help="A qualified name, Class.method, a bare name, or a path."),
    ] = None,
    relation: Annotated[
        str, typer.Option(help="Only these relations (comma-separated), e.g. CALLS,INHERITS_FROM.")
    ] = "",
    direction: Annotated[str, typer.Option(help="in, out or both.")] = "both",
    hops: Annotated[int, typer.Option(min=1, max=6, help="How many steps to go.")] = 1,
    to: Annotated[str, typer.Option(help="Show the shortest paths to this name instead.")] = "",
    all_origins: Annotated[
        bool, typer.Option("--all-origins", help="Also what is not admitted, so that no search follows it.")
    ] = False,
    store: GraphStore = "duckdb",
    html: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(help="Write the picture of it into this file, for a browser."),
    ] = None,
    communities: Annotated[
        bool, typer.Option("--communities", help="The picture of the whole graph's communities, with --html.")
    ] = False,
    json: Json = False,
) -> None:
    """The neighbourhood of a symbol or name, or the paths to another, each edge with file and line."""
    from cgrag import Corpus
    from pipelines.graph.look_up import admitted_origins, edge_row, open_graph
    from pipelines.graph.store import graph_record
    from pipelines.graph.tables import RELATIONS
    from pipelines.layout import Layout

    way = one_of(direction, _DIRECTIONS, "--direction")
    settings = Corpus().settings
    if communities:
        if name is not None or html is None:
            raise typer.BadParameter("it goes with --html FILE, and without a name", param_hint="--communities")
        _write_communities(html, settings)
        return
    if name is None:
        raise typer.BadParameter("name something, or take --communities", param_hint="NAME")
    walk = open_graph(settings, None if all_origins else admitted_origins(settings), checked_store(store))
    known = {name.upper(): name for name in sorted({*RELATIONS, *walk.relations})}
    asked = names_in(relation)
    unknown = sorted(name for name in asked if name.upper() not in known)
    if unknown:
        raise typer.BadParameter(f"{unknown[0]!r} is none of {', '.join(known.values())}", param_hint="--relation")
    relations = [known[name.upper()] for name in asked]
    matches = _found(walk, name)
    if to:
        goals = _found(walk, to)
        paths = [p for start in matches for goal in goals for p in walk.paths(start.id, goal.id, relations, way)]
        shortest = min((len(path) for path in paths), default=0)
        edges = [edge for path in paths if len(path) == shortest for edge in path]
    else:
        edges = walk.edges([match.id for match in matches], relations, way, hops)
    if html is not None:
        _write_picture(html, name, walk, matches, edges)
    if json:
        record = graph_record(Layout(settings.home))
        rows = [edge_row(edge, places, record) for edge, places in zip(edges, walk.evidence(edges), strict=True)]
        print_json({"matches": [_match(match) for match in matches], "edges": rows})
    if json or html is not None:
        return
    for match in matches:
        console.print(f"{match.type} {plain(match.id)}", style="bold", markup=False, end="")
        where = f"{plain(match.path)}:{match.start_line}" if match.path else "a name, no symbol"
        console.print(f"  {where}", style="cyan", markup=False)
    if not edges:
        console.print(f"No path to {plain(to)}." if to else "No edges of this kind.", markup=False)
    for edge, places in zip(edges, walk.evidence(edges[:_SHOWN]), strict=False):
        _print(edge, places, {match.id for match in matches})
    if len(edges) > _SHOWN:
        console.print(
            f"  … and {len(edges) - _SHOWN:,} more; --json has all, --relation and --direction narrow it.", markup=False
        )


def _write_picture(
    html: Path, name: str, walk: "Traversal[Any, Any]", matches: "list[Entity]", edges: "list[Edge]"
) -> None:
    from pipelines.picture.neighbourhood import neighbourhood
    from pipelines.picture.page import write_page

    view = neighbourhood(walk, matches, edges)
    write_page(html, name, [view])
    _tell_picture(html, view.note)


def _write_communities(html: Path, settings: "Settings") -> None:
    from pipelines.communities.stored import load_communities
    from pipelines.picture.communities import write_overview

    views = write_overview(settings, load_communities(settings).rows, html)
    notes = "  ".join(view.note for view in views if view.note)
    _tell_picture(html, notes)


def _tell_picture(html: Path, note: str) -> None:
    errors.print(f"{plain(str(html))}: {plain(note)}  Open it in a browser; it needs no network.", markup=False)


def _found(walk: "Traversal[Any, Any]", name: str) -> "list[Entity]":
    matches = walk.find(name.removesuffix("()"))
    if not matches:
        errors.print(
            f"The graph has no {plain(name)!r}. Near names: {', '.join(map(plain, walk.near(name)))}", markup=False
        )
        raise typer.Exit(1)
    return matches


def _print(edge: "Edge", places: list[dict[str, Any]], starts: set[str]) -> None:
    from pipelines.graph.admission import KNOWN

    place = next(iter(places), None)
    where = f"{place['path']}:{place['start_line']}" if place else ""
    outward = edge.source in starts or edge.target not in starts
    arrow = f"{edge.relation} → {edge.target}" if outward else f"{edge.relation} ← {edge.source}"
    if edge.distance > 1 or (edge.source not in starts and edge.target not in starts):
        arrow = f"{edge.source} {edge.relation} → {edge.target}"
    times = f"  ×{edge.weight}" if edge.weight > 1 else ""
    console.print(f"  {'  ' * (edge.distance - 1)}{plain(arrow)}", markup=False, end="")
    by = f"  {edge.origin}" if edge.origin not in KNOWN else ""
    console.print(f"  {plain(where)}{times}  {edge.binding}{by}", style="dim", markup=False)


def _match(match: "Entity") -> dict[str, Any]:
    return {
        "id": match.id,
        "type": match.type,
        "path": match.path,
        "start_line": match.start_line,
        "end_line": match.end_line,
    }
