"""Answers that are forms without content: the same said twice, loops, walks down the list, labels recited in order."""

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, pairwise

from pipelines.extract.answer import NONE, Format
from pipelines.extract.taxonomy import Taxonomy

_RUN = 3
"""So many in a row are no chance."""
Edge = tuple[str, str, str]


def degenerate(contents: Iterable[str], taxonomy: Taxonomy, format: Format = "list") -> tuple[Counter[str], int]:
    """Return how many edges of answers are degenerate, by kind, and how many edges there are; an edge counts once.

    Kinds: duplicate (of an earlier one), loop (to itself), walk (three or more that each lead to the next name of the
    list), recital (three or more whose relations come in the taxonomy's own order).

    >>> from pipelines.extract.taxonomy import load_taxonomy
    >>> said = '[["a","Class",["CALLS","b"],["CALLS","b"]],["b","Class",["CALLS","b"]]]'
    >>> degenerate([said], load_taxonomy())
    (Counter({'duplicate': 1, 'loop': 1}), 3)
    """
    kinds: Counter[str] = Counter()
    total = 0
    order = {relation.name: number for number, relation in enumerate(taxonomy.relations)}
    for content in contents:
        names, edges = _read(content, format)
        place = {name: number for number, name in enumerate(names)}
        found: dict[int, str] = {}
        steps = [_is_step(place, edge) for edge in edges] if format == "list" else []  # slots' pairs are not its choice
        for start, end in _runs(steps, _RUN):
            found.update(dict.fromkeys(range(start, end), "walk"))
        for start, end in _runs([_follows(order, *both) for both in pairwise(edges)], _RUN - 1):
            found = dict.fromkeys(range(start, end + 1), "recital") | found
        seen: set[Edge] = set()
        for number, edge in enumerate(edges):
            if edge in seen:
                found[number] = "duplicate"
            elif edge[0] == edge[2]:
                found[number] = "loop"
            seen.add(edge)
        kinds.update(found.values())
        total += len(edges)
    return kinds, total


def _read(content: str, format: Format) -> tuple[list[str], list[Edge]]:
    said = json.loads(content)
    if format == "slots":
        entities, edges = said
        return [name for name, _ in entities], [(one, kind, other) for one, kind, other in edges if kind != NONE]
    names = list(dict.fromkeys(entity[0] for entity in said))
    return names, [(entity[0], kind, target) for entity in said for kind, target in entity[2:]]


def _is_step(place: dict[str, int], edge: Edge) -> bool:
    return place.get(edge[2], -1) == place[edge[0]] + 1


def _follows(order: dict[str, int], one: Edge, other: Edge) -> bool:
    return order.get(other[1], -1) == order.get(one[1], -1) + 1


def _runs(flags: Sequence[bool], least: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of `least` or more flags in a row that are set."""
    at = 0
    for flag, group in groupby(flags):
        many = len(list(group))
        if flag and many >= least:
            yield at, at + many
        at += many
