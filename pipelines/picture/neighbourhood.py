"""The neighbourhood of some entities as a picture."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.graph.traversal import Edge, Entity, Traversal
from pipelines.picture.page import MOST_NODES, Line, Node, View

_MOST_PLACES = 5
"""Places told of an edge."""


def neighbourhood(graph: Traversal[Any, Any], starts: Sequence[Entity], edges: Sequence[Edge]) -> View:
    """Return the picture of what was found around some entities; of many the nearest, and the heaviest of these.

    An entity is as large as its edges here are many; all edges from one entity to another are one line.
    """
    shown = nearest([start.id for start in starts], edges)
    drawn = [edge for edge in edges if edge.source in shown and edge.target in shown]
    entities = {entity.id: entity for entity in (*starts, *graph.entities(shown))}
    together: dict[tuple[str, str], list[tuple[Edge, list[dict[str, Any]]]]] = defaultdict(list)
    degree = dict.fromkeys(shown, 0)
    for edge, places in zip(drawn, graph.evidence(drawn), strict=True):
        together[edge.source, edge.target].append((edge, places))
        degree[edge.source] += 1
        degree[edge.target] += 1
    asked = {start.id for start in starts}
    nodes = [_node(id, entities, degree[id], id in asked) for id in shown]
    every = asked.union(*((edge.source, edge.target) for edge in edges))
    note = f"{len(shown):,} entities, {len(drawn):,} edges."
    if len(every) > len(shown):
        note = (
            f"The nearest {len(shown):,} of {len(every):,} entities, of equally near ones those with the most places; "
            f"{len(drawn):,} of {len(edges):,} edges."
        )
    lines = [_line(ends, found) for ends, found in sorted(together.items())]
    return View("neighbourhood", nodes, lines, note)


def nearest(starts: Sequence[str], edges: Sequence[Edge], most: int = MOST_NODES) -> list[str]:
    """Return the ids to show: the starts, then by distance, then by the weight of their edges, then by id.

    >>> far = Edge("b", "CALLS", "c", "parse", "local", 9, 2)
    >>> nearest(["a"], [Edge("a", "CALLS", "b", "parse", "local", 1, 1), far], most=2)
    ['a', 'b']
    """
    distance, weight = dict.fromkeys(starts, 0), dict.fromkeys(starts, 0)
    for edge in edges:
        for id in (edge.source, edge.target):
            distance[id] = min(distance.get(id, edge.distance), edge.distance)
            weight[id] = weight.get(id, 0) + edge.weight
    return sorted(distance, key=lambda id: (distance[id], -weight[id], id))[:most]


def _node(id: str, entities: Mapping[str, Entity], degree: int, start: bool) -> Node:
    entity = entities.get(id)
    if entity is None:  # nothing that is seen mentions it
        return Node(id, id, "unknown", max(degree, 1), [id], start)
    where = f"{entity.path}:{entity.start_line}" if entity.path else "a name, no symbol"
    short = entity.name
    if id == entity.path:
        short = "/".join(id.split("/")[-2:]) if id.endswith("/__init__.py") else id.rpartition("/")[2]
    return Node(id, short, entity.type, max(degree, 1), [f"{entity.type} {entity.id}", where], start)


def _line(ends: tuple[str, str], found: Sequence[tuple[Edge, list[dict[str, Any]]]]) -> Line:
    heaviest = sorted(found, key=lambda one: (-one[0].weight, one[0].relation))
    lines = []
    for edge, places in heaviest:
        lines.append(f"{edge.source} {edge.relation} {edge.target}")
        times = f" ×{edge.weight}" if edge.weight > 1 else ""
        lines.append(f"  {edge.origin}, {edge.binding}{times}")
        lines += [f"  {place['path']}:{place['start_line']}" for place in places[:_MOST_PLACES]]
        if edge.weight > _MOST_PLACES:
            lines.append(f"  … and {edge.weight - _MOST_PLACES:,} more")
    weight = sum(edge.weight for edge, _ in found)
    return Line(*ends, [edge.relation for edge, _ in heaviest], weight, lines)
