"""Structural questions answered from typed edges alone: the rows of `cgrag graph`, and no model."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.answer.plain import is_plain
from pipelines.answer.relations import asked_relation
from pipelines.answer.sources import Source, first_place
from pipelines.graph.names import shown_id
from pipelines.graph.tables import RELATIONS
from pipelines.graph.traversal import Direction, Edge, Entity, Traversal
from pipelines.retrieve.graph_search import GraphSearch
from pipelines.retrieve.route import Route
from pipelines.retrieve.structural import Structure

_EDGES: dict[str, tuple[str, Direction]] = {
    "callers": ("CALLS", "in"),
    "callees": ("CALLS", "out"),
    "bases": ("INHERITS_FROM", "out"),
    "subclasses": ("INHERITS_FROM", "in"),
    "importers": ("IMPORTS", "in"),
    "imports": ("IMPORTS", "out"),
}
"""Questions that one relation answers; the others need a walk of several."""
_SAYS = {
    "callers": "is called by",
    "callees": "calls",
    "bases": "inherits from",
    "subclasses": "is a base of",
    "importers": "is imported by",
    "imports": "imports",
    "inherited": "inherits",
    "base_callees": "calls, as a base has it,",
    "base_callers": "is called, as a base has it, by",
    "tests": "is tested by",
    "overrides": "is overridden by",
    "overridden": "overrides",
}
_LACKS = {
    "callers": "no call is resolved to {}: calls through untyped objects and by names made at run time are not",
    "callees": "no call in {} is resolved to code of this corpus",
    "bases": "no base of {} is code of this corpus",
    "subclasses": "no class of this corpus inherits from {}",
    "importers": "no module of this corpus imports {}",
    "imports": "{} imports nothing of this corpus",
}
_NAMED = 5
"""Rows that the text names; the sources have all of them."""


@dataclass(frozen=True)
class Exact:
    """An answer from the graph: its text, a source for each row, and the edges where one relation answers.

    Where `found` is false, the sources are the definitions of what is asked about.
    """

    text: str
    found: bool
    sources: list[Source]
    edges: list[tuple[Edge, list[dict[str, Any]]]]
    """With their places."""


def from_graph(graph: GraphSearch, question: str, others: Collection[str] = ()) -> Exact | None:
    """Return what the graph answers to a question for one relation of a symbol that it names; None for any other.

    One relation answers by its edges alone, unless a walk from the same symbol finds more: a class calls what its
    methods call. `others` are words that a question may have beside, such as the name of the corpus.
    """
    route = graph.route(question)
    if route is None or not is_plain(question, route, others):
        return None
    structure = graph.structure(question)
    if route.relation not in _EDGES or route.indirect:
        return _of_steps(structure) if structure else None
    matches = graph.graph.find(route.names[0].removesuffix("()"))
    if route.relation == "imports":  # it is the module around a symbol that imports
        matches = [module for path in sorted({match.path for match in matches}) for module in graph.graph.find(path)]
    relation, direction = _EDGES[route.relation]
    edges = graph.graph.edges([match.id for match in matches], [relation], direction)
    places = [f"{match.path}:{match.start_line}" for match in matches]
    ends = {_outermost(edge.source if direction == "in" else edge.target) for edge in edges}
    if structure and not {_outermost(step.symbol.id) for step in structure.found} <= ends:
        return _of_steps(structure)
    if not edges:
        return _nothing(route, matches) if matches else None
    sources, rows = _of_edges(graph.graph, edges, direction)
    return Exact(_told(route, places, sources), True, sources, rows)


def from_taxonomy(graph: GraphSearch, question: str, types: Collection[str]) -> Exact | None:
    """Return what the graph answers to a question for a relation of the corpus's own taxonomy; None for any other.

    `types` are the names of its types, which a question may have beside: "which rivers flow through Paris".
    """
    asked = asked_relation(question, graph.graph, set(graph.graph.relations) - set(RELATIONS), types)
    if asked is None:
        return None
    ids = [entity.id for entity in asked.entities]
    edges = graph.graph.edges(ids, [asked.relation], asked.direction)
    verb = asked.relation.replace("_", " ")
    if not edges:
        return Exact(f"Not known: no edge “{verb}” of `{asked.name}` is in the graph.", False, [], [])
    sources, rows = _of_edges(graph.graph, edges, asked.direction)
    ends = ", ".join(f"`{shown_id(source.name)}` [{source.n}]" for source in sources)
    told = f"{ends} {verb} `{asked.name}`." if asked.direction == "in" else f"`{asked.name}` {verb} {ends}."
    return Exact(told, True, sources, rows)


def _of_edges(
    graph: Traversal[Any, Any], edges: Sequence[Edge], direction: Direction
) -> tuple[list[Source], list[tuple[Edge, list[dict[str, Any]]]]]:
    """A source for each edge, named after its far end, and the edges with their places."""
    places = graph.evidence(edges)
    sources = []
    for n, (edge, found) in enumerate(zip(edges, places, strict=True), 1):
        end = edge.source if direction == "in" else edge.target
        path, line = first_place(edge, found)
        sources.append(Source(n, path, line, line, end, cited=True))
    return sources, list(zip(edges, places, strict=True))


def _of_steps(structure: Structure) -> Exact:
    sources = []
    for n, step in enumerate(structure.found, 1):
        symbol = step.symbol
        line = symbol.start_line
        sources.append(Source(n, symbol.path, line, line, symbol.id, symbol.start, symbol.end, cited=True))
    places = [f"{symbol.path}:{symbol.start_line}" for symbol in structure.starts]
    return Exact(_told(structure.route, places, sources), True, sources, [])


def _nothing(route: Route, matches: Sequence[Entity]) -> Exact:
    sources = [
        Source(n, match.path, match.start_line, match.end_line, match.id, match.start, match.end)
        for n, match in enumerate(matches, 1)
    ]
    about = _LACKS[route.relation].format(f"`{route.names[0]}`")
    return Exact(f"Not known: {about}.", False, sources, [])


def _told(route: Route, places: Sequence[str], sources: Sequence[Source]) -> str:
    name, says = ".".join(route.names), _SAYS[route.relation] + (", by way of another," if route.indirect else "")
    subject = f"The module of `{name}`" if route.relation == "imports" and "/" not in name else f"`{name}`"
    where = places[0] if len(places) == 1 else f"{len(places)} definitions"
    shown = [f"`{shown_id(source.name)}` [{source.n}]" for source in sources[:_NAMED]]
    more = len(sources) - len(shown)
    files = len({source.path for source in sources})
    size = f"{len(sources)} in {files} file{'s' * (files != 1)}"
    rest = f" and {more} more" if more else ""
    return f"{subject} ({where}) {says} {', '.join(shown)}{rest}: {size}."


def _outermost(id: str) -> str:
    """The function that a nested one is a part of."""
    return id.partition(".<locals>.")[0]
