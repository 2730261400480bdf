"""From the graph's rows to its communities: a pure function, whatever the order of the rows."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.communities.divide import Group, divide, labels, modularity
from pipelines.communities.names import central_members, folders_of, key_words, named, words_of
from pipelines.communities.tables import COMMUNITIES, MEMBERSHIPS
from pipelines.communities.units import Units, make_units
from pipelines.settings import CommunitySettings
from pipelines.tables import digest

VERSION = 1
"""Raise it when the same graph gives other communities, or other names."""


@dataclass(frozen=True)
class Built:
    """The two tables, rows sorted, and what is told of them."""

    communities: pa.Table
    memberships: pa.Table
    modularity: list[float]
    """Of each level, from the top; undivided communities count at the levels below."""
    units: int
    alone: int
    """Entities in no community: nothing is bound to them."""

    def tables(self) -> dict[str, pa.Table]:
        return {"communities": self.communities, "memberships": self.memberships}


def build_communities(
    entities: Iterable[Mapping[str, Any]],
    edges: Iterable[Mapping[str, Any]],
    origins: Collection[str],
    settings: CommunitySettings,
) -> Built:
    """Return the communities of a graph; rows are those of its tables, edges of other origins are left out."""
    rows = {row["id"]: row for row in entities}
    units = make_units(rows.values(), edges, origins)
    groups = divide(list(map(len, units.members)), units.pairs, settings.largest, settings.levels)
    folders = folders_of(row["path"] for row in rows.values())
    words = [words_of(rows[unit]["name"], rows[unit]["path"], folders) for unit in units.ids]
    everywhere = Counter(word for found in words for word in found)
    inside = _inside(groups, units)
    ids: dict[int, str] = {}
    communities: list[dict[str, Any]] = []
    memberships: list[dict[str, Any]] = []
    for number, group in enumerate(groups):
        members = sorted(member for unit in group.units for member in units.members[unit])
        ids[id(group)] = community = digest(members)
        central = central_members(group.units, inside[number], units.ids)
        told = key_words([words[unit] for unit in group.units], everywhere, len(units.ids))
        communities.append(
            {
                "id": community,
                "level": group.level,
                "parent": ids[id(group.parent)] if group.parent else "",
                "size": len(members),
                "name": named(told, [(rows[one]["type"], rows[one]["name"]) for one in central]),
                "central": central,
                "words": told,
            }
        )
        memberships += [{"entity": member, "level": group.level, "community": community} for member in members]
    communities.sort(key=lambda row: (row["level"], -row["size"], row["id"]))
    memberships.sort(key=lambda row: (row["entity"], row["level"]))
    levels = range(max((group.level for group in groups), default=-1) + 1)
    count = len(units.ids)
    return Built(
        pa.Table.from_pylist(communities, COMMUNITIES),
        pa.Table.from_pylist(memberships, MEMBERSHIPS),
        [modularity(count, units.pairs, labels(groups, count, level)) for level in levels],
        count,
        len(rows) - len({row["entity"] for row in memberships}),
    )


def _inside(groups: Iterable[Group], units: Units) -> list[dict[tuple[int, int], float]]:
    """The strengths inside each group, found in one pass over them for each level."""
    groups = list(groups)
    found: list[dict[tuple[int, int], float]] = [{} for _ in groups]
    at_level: dict[int, dict[int, int]] = defaultdict(dict)
    for number, group in enumerate(groups):
        at_level[group.level].update(dict.fromkeys(group.units, number))
    for number_of in at_level.values():
        for (source, target), strength in units.strengths.items():
            if source in number_of and number_of[source] == number_of.get(target):
                found[number_of[source]][source, target] = strength
    return found
