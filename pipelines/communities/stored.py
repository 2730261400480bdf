"""The stored communities, with their summaries as far as there are any, for those who answer questions from them."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from pipelines.communities.stage import current_tables
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.summaries.tables import summaries_file, summary_rows
from pipelines.tables import read_manifest


@dataclass(frozen=True)
class Community:
    """Entities that belong together."""

    id: str
    level: int
    """0: of the whole graph divided; n: of a community of level n - 1."""
    parent: str
    """Of level 0 ""."""
    size: int
    name: str
    members: list[str]
    central: list[str]
    """Members that the others lead to, the first most."""
    words: list[str]
    """Those that tell it from the rest."""
    summary: str = ""
    """The model's title and sentences, "" where there are none; [n] is the n-th of the places cited."""
    cited: list[tuple[str, int]] = field(default_factory=list)
    """(path, line)"""


class Communities:
    """All communities of the current graph: `rows` by level, the largest first; `levels` are how many there are.

    >>> whole = Community("c1", 0, "", 2, "lora", ["a", "b"], ["a"], ["lora"])
    >>> Communities([whole, Community("c2", 1, "c1", 1, "lora", ["a"], ["a"], [])]).of("a")[0].id
    'c2'
    """

    def __init__(self, rows: list[Community]) -> None:
        self.rows = rows
        self.levels = 1 + max((row.level for row in rows), default=-1)
        self.by_id = {row.id: row for row in rows}
        self._of: dict[str, list[Community]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: -row.level):
            for member in row.members:
                self._of[member].append(row)

    def of(self, entity: str) -> list[Community]:
        """Return the communities of an entity, the finest first; none where nothing is bound to it."""
        return list(self._of.get(entity, ()))

    def children(self, community: str) -> list[Community]:
        """Return what a community was divided into, the largest first; none where it was not."""
        return [row for row in self.rows if row.parent == community]


def not_nested(communities: Communities) -> list[str]:
    """Return the ids of those with a member that is not in their parent, or is in another of their level, too."""
    holders: dict[tuple[int, str], list[str]] = defaultdict(list)
    for row in communities.rows:
        for member in row.members:
            holders[row.level, member].append(row.id)
    return [
        row.id
        for row in communities.rows
        if any(holders[row.level, member] != [row.id] for member in row.members)
        or (row.level and any(row.parent not in holders[row.level - 1, member] for member in row.members))
    ]


def load_communities(settings: Settings) -> Communities:
    """Return the communities of the current graph.

    Raises:
        CgragError: they are not built, or of another graph or other settings than now.
    """
    record, tables = current_tables(settings)
    members: dict[str, list[str]] = defaultdict(list)
    memberships = tables["memberships"]
    for entity, community in zip(memberships["entity"].to_pylist(), memberships["community"].to_pylist(), strict=True):
        members[community].append(entity)
    told = _summaries(settings, record["generation"])
    return Communities(
        [
            Community(members=members[row["id"]], **row, **told.get(row["id"], {}))
            for row in tables["communities"].to_pylist()
        ]
    )


def _summaries(settings: Settings, generation: str) -> dict[str, dict[str, Any]]:
    """Summary and places of each community that has any; none where they are of other communities."""
    layout = Layout(settings.home)
    if (read_manifest(summaries_file(layout)) or {}).get("communities") != generation:
        return {}
    return {
        row["community"]: {
            "summary": f"{row['title']}\n{row['text']}",
            "cited": [(place["path"], place["start_line"]) for place in row["cited"]],
        }
        for row in summary_rows(layout)
        if row["status"] == "ok"
    }
