"""The communities of a graph as a picture: a view for each level, the whole first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from pipelines.graph.look_up import followed_edges
from pipelines.picture.page import Line, Node, View, write_page
from pipelines.settings import Settings

_MOST_COLOURS = 10
"""As many groups have a colour of their own; those of smaller ones share one."""
_OTHERS, _GREY = "others", "#b0b0b0"
MOST_GROUPS, _MOST_LINES = 60, 200
"""The largest, and the heaviest: an overview of all would be one of the small ones, which are by far the most."""
_TOLD = 12
"""Members told of a community."""


class Group(Protocol):
    """What is drawn of a community; level 0 is the whole graph divided, its parent ""."""

    @property
    def id(self) -> str: ...
    @property
    def level(self) -> int: ...
    @property
    def parent(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def name(self) -> str: ...
    @property
    def members(self) -> Sequence[str]: ...
    @property
    def central(self) -> Sequence[str]: ...
    @property
    def words(self) -> Sequence[str]: ...
    @property
    def summary(self) -> str: ...


def write_overview(settings: Settings, groups: Iterable[Group], path: Path) -> list[View]:
    """Write the overview of the current graph's communities into a file, and return what it shows.

    What crosses are the edges that searches follow.

    Raises:
        CgragError: there is no graph, or the file cannot be written.
    """
    views = overview(groups, ((source, target, weight) for source, _, target, weight in followed_edges(settings)))
    write_page(path, "Communities", views)
    return views


def overview(groups: Iterable[Group], edges: Iterable[tuple[str, str, float]]) -> list[View]:
    """Return a view for each level: communities as large as their members are many, lines as heavy as what crosses.

    `edges` are (source, target, weight) between members. At every level a community has the colour of the one of level
    0 that it is a part of. Of many the largest are shown.
    """
    rows = sorted(groups, key=lambda group: (group.level, -group.size, group.id))
    names = {group.id: group.name for group in rows}
    top = {group.id: group.id for group in rows if group.level == 0}
    for group in rows:  # parents come first
        top.setdefault(group.id, top.get(group.parent, group.id))
    largest = [group.id for group in rows if group.level == 0][:_MOST_COLOURS]
    edges = list(edges)
    views = []
    for level in sorted({group.level for group in rows}):
        here = [group for group in rows if group.level == level]
        nodes = [
            _node(group, names[top[group.id]] if top[group.id] in largest else _OTHERS, names)
            for group in here[:MOST_GROUPS]
        ]
        crossing = _crossing(here, edges)
        shown = {node.id for node in nodes}
        heavy = sorted((-weight, pair) for pair, weight in crossing.items() if shown.issuperset(pair))
        lines = [_line(pair, -weight, names) for weight, pair in heavy[:_MOST_LINES]]
        views.append(View(f"level {level}", nodes, lines, _note(len(nodes), len(here), len(lines), len(crossing)),
                          {_OTHERS: _GREY}))  # fmt: skip
    return views or [View("level 0", [], [], "There are no communities.")]


def _crossing(groups: Sequence[Group], edges: Iterable[tuple[str, str, float]]) -> Counter[tuple[str, str]]:
    """The weight between each two communities of a level, in the order of their ids."""
    home = {member: group.id for group in groups for member in group.members}
    found: Counter[tuple[str, str]] = Counter()
    for source, target, weight in edges:
        a, b = home.get(source), home.get(target)
        if a and b and a != b:
            found[min(a, b), max(a, b)] += weight  # type: ignore[assignment]
    return found


def _node(group: Group, kind: str, names: dict[str, str]) -> Node:
    lines = [f"{group.name}: {group.size:,} members"]
    if group.parent:
        lines.append(f"part of {names.get(group.parent, group.parent)}")
    if group.words:
        lines.append(f"words: {', '.join(group.words)}")
    if group.summary:
        lines += ["", group.summary]
    lines += ["", *(group.central or group.members)[:_TOLD]]
    return Node(group.id, group.name, kind, group.size, lines)


def _line(pair: tuple[str, str], weight: float, names: dict[str, str]) -> Line:
    text = f"{names[pair[0]]} - {names[pair[1]]}: {weight:,.0f} places"
    return Line(*pair, ["edges between"], weight, [text], arrow=False)


def _note(nodes: int, groups: int, lines: int, crossing: int) -> str:
    which = f"{nodes:,} communities" if nodes == groups else f"The largest {nodes:,} of {groups:,} communities"
    return f"{which}, {lines:,} of {crossing:,} links between communities, the heaviest."
