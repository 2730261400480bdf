"""Hierarchical Leiden: the whole graph is divided by modularity, then each large community by itself, and so on.

Communities are divided again, not joined: Leiden's own aggregates below the last are steps of its way there, tens of
units each and in part arbitrary, while a community that is divided by its own modularity falls into parts that have
names (vLLM's models into families of models), whatever the size of the graph around it. Levels are nested by making.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.communities.leiden import leiden


@dataclass(frozen=True)
class Group:
    """Units that belong together, by number, ascending."""

    level: int
    parent: "Group | None"
    units: tuple[int, ...]


def divide(sizes: Sequence[int], pairs: Mapping[tuple[int, int], float], largest: int, levels: int) -> list[Group]:
    """Return the groups of all levels, those of one level in the order of their first units.

    `sizes` are the entities of each unit; a group of more than `largest` is divided, down to `levels` levels. A single
    entity that nothing is bound to is in no group.

    >>> [group.units for group in divide([1, 1, 1, 1], {(0, 1): 1.0, (2, 3): 1.0}, largest=10, levels=2)]
    [(0, 1), (2, 3)]
    """
    found: list[Group] = []
    above: list[Group | None] = [None]
    for level in range(levels):
        below: list[Group | None] = []
        for parent in above:
            units = parent.units if parent else tuple(range(len(sizes)))
            if parent and sum(sizes[unit] for unit in units) <= largest:
                continue
            parts = _parts(units, pairs)
            if parent and len(parts) == 1:
                continue
            below += [Group(level, parent, part) for part in parts if sum(sizes[unit] for unit in part) > 1]
        found += [group for group in below if group]
        above = below
    return found


def labels(groups: Sequence[Group], count: int, level: int) -> list[int]:
    """Return each unit's group at a level, as numbers: the finest one down to it; units without one are alone."""
    label = list(range(count))
    for number, group in enumerate(groups):
        if group.level <= level:
            for unit in group.units:
                label[unit] = count + number
    dense = {one: number for number, one in enumerate(dict.fromkeys(label))}
    return [dense[one] for one in label]


def modularity(count: int, pairs: Mapping[tuple[int, int], float], label: Sequence[int]) -> float:
    """Return Newman's modularity of a division, 0 where nothing is bound to anything."""
    if not pairs:
        return 0.0
    return float(_graph(count, pairs).modularity(list(label), weights="weight"))


def _parts(units: Sequence[int], pairs: Mapping[tuple[int, int], float]) -> list[tuple[int, ...]]:
    place = {unit: at for at, unit in enumerate(units)}
    inside = {
        (place[one], place[other]): weight for (one, other), weight in pairs.items() if one in place and other in place
    }
    parts: dict[int, list[int]] = defaultdict(list)
    for unit, label in zip(units, leiden(len(units), inside), strict=True):
        parts[label].append(unit)
    return [tuple(part) for part in parts.values()]


def _graph(count: int, pairs: Mapping[tuple[int, int], float]) -> Any:
    import igraph

    graph = igraph.Graph(count, list(pairs))
    graph.es["weight"] = list(pairs.values())
    return graph
