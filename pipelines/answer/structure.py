"""Structural questions answered from typed edges alone: exactly the rows of `cgrag graph`, and no model."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.answer.sources import Source
from pipelines.graph.traversal import Direction, Edge, Entity
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
    "callers": ("is called by", "nothing in the corpus calls"),
    "callees": ("calls", "no call of the corpus's own code is known in"),
    "bases": ("inherits from", "no class of the corpus is a base of"),
    "subclasses": ("is a base of", "no class of the corpus inherits from"),
    "importers": ("is imported by", "nothing in the corpus imports"),
    "imports": ("imports", "nothing of the corpus is imported by"),
    "inherited": ("inherits", ""),
    "base_callees": ("calls, in a base,", ""),
    "base_callers": ("is, in a base, called by", ""),
    "tests": ("is tested by", ""),
    "overrides": ("is overridden by", ""),
    "overridden": ("overrides", ""),
}
_NAMED = 5
"""Rows that the text names; the sources have all of them."""


@dataclass(frozen=True)
class Exact:
    """An answer from the graph: its text, a source for each row, and the edges where one relation answers."""

    text: str
    found: bool
    sources: list[Source]
    edges: list[tuple[Edge, list[dict[str, Any]]]]
    """With their places."""


def from_graph(graph: GraphSearch, question: str) -> Exact | None:
    """Return what the graph answers to a question that names a symbol and asks for structure; None for any other."""
    route = graph.route(question)
    if route is None or route.relation == "definition":
        return None
    if route.relation in _EDGES and not route.indirect:
        exact = _of_edges(graph, route)
        if exact is not None:
            return exact
    structure = graph.structure(question)
    return _of_steps(structure) if structure else None


def _of_edges(graph: GraphSearch, route: Route) -> Exact | None:
    relation, direction = _EDGES[route.relation]
    name = route.names[0].removesuffix("()")
    matches = graph.graph.find(name)
    if route.relation == "imports" and any(match.type != "Module" for match in matches):
        return None  # it is the module around it that imports
    edges = graph.graph.edges([match.id for match in matches], [relation], direction)
    if not matches:
        return None
    if not edges:
        about = "; what is called by a name made at run time cannot be seen" if relation == "CALLS" else ""
        text = f"As far as the code says it, {_SAYS[route.relation][1]} `{name}`{about}."
        return Exact(text, False, [_of_entity(n, match) for n, match in enumerate(matches, 1)], [])
    places = graph.graph.evidence(edges)
    sources = []
    for n, (edge, found) in enumerate(zip(edges, places, strict=True), 1):
        end = edge.source if direction == "in" else edge.target
        path, line = (found[0]["path"], found[0]["start_line"]) if found else (end.partition("::")[0], 1)
        sources.append(Source(n, path, line, line, end, cited=True))
    return Exact(_told(name, route, sources), True, sources, list(zip(edges, places, strict=True)))


def _of_steps(structure: Structure) -> Exact:
    sources = []
    for n, step in enumerate(structure.found, 1):
        symbol = step.symbol
        line = symbol.start_line
        sources.append(Source(n, symbol.path, line, line, symbol.id, symbol.start, symbol.end, cited=True))
    return Exact(_told(structure.route.names[0], structure.route, sources), True, sources, [])


def _told(name: str, route: Route, sources: Sequence[Source]) -> str:
    says = _SAYS[route.relation][0] + (", by way of another" if route.indirect else "")
    shown = [f"`{source.name.rpartition('::')[2]}` [{source.n}]" for source in sources[:_NAMED]]
    more = len(sources) - len(shown)
    files = len({source.path for source in sources})
    size = f"{len(sources)} in {files} file{'s' * (files != 1)}"
    rest = f" and {more} more" if more else ""
    return f"`{name}` {says} {', '.join(shown)}{rest} ({size})."


def _of_entity(n: int, entity: Entity) -> Source:
    lines = (entity.start_line, entity.end_line)
    return Source(n, entity.path, *lines, entity.id, entity.start, entity.end, cited=True)
