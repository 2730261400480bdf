"""The traversal contract: what a graph can be asked, with the same answers from whatever store it lies in."""

from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Generic, Literal, TypeVar

from pipelines.errors import CgragError
from pipelines.graph.admission import hidden_kinds
from pipelines.graph.names import name_id, search_key

MOST_PATHS = 20
"""Of equally short paths, those returned."""
Direction = Literal["in", "out", "both"]
Rule = Literal["id", "name", "end of id", "end of name", "loose", "key", "unbound"]

Node = TypeVar("Node", bound=int | str)
Link = TypeVar("Link", bound=int | tuple[Any, ...])
"""An edge of a store, of whatever kind: equal for the same edge, ordered by source, relation and target."""

_Met = defaultdict[Node, list[tuple[Link, Node]]]
_OTHER_WAY: dict[Direction, Direction] = {"out": "in", "in": "out", "both": "both"}


class Changed(CgragError):
    """The graph was changed while it was read; what was read counts for nothing."""


@dataclass(frozen=True)
class Entity:
    """A row of `entities`."""

    id: str
    type: str
    name: str
    key: str
    path: str
    start: int
    end: int
    start_line: int
    end_line: int


@dataclass(frozen=True)
class Edge:
    """A row of `edges`; `distance` is after how many steps it was first met."""

    source: str
    relation: str
    target: str
    origin: str
    binding: str
    weight: int
    distance: int


@dataclass(frozen=True, order=True)
class Reached:
    """A chunk that mentions what a walk came to: after how many steps at least, and from how many of its starts."""

    distance: int
    chunk_id: str
    seeds: int


class Traversal(ABC, Generic[Node, Link]):
    """Questions to one graph, seen through the edges of some origins (all of them, where `origins` is None).

    Edges come in the order of distance, then source, relation and target. What follows is the same for every store;
    a store brings the look-ups below.
    """

    def __init__(self, origins: Iterable[str] | None) -> None:
        self.origins = None if origins is None else sorted(origins)
        self.hidden = hidden_kinds(self.origins)
        """Kinds of mentions that these origins do not show."""

    merged: Mapping[str, str] = {}
    """{id of a name: id of the entity that people have said it is one with}, so that it is still found."""

    def find(self, name: str) -> list[Entity]:
        """Return the entities of a name: its id, else qualified names, else ends of them (`Class.method`), else keys.

        The first of these that gives any is all that counts, so that an exact name is not drowned by similar ones. What
        is a name and nothing else comes after them, and only where something that is seen mentions it.
        """
        rules: tuple[tuple[Rule, str], ...] = (
            ("id", name),
            ("name", name),
            ("end of id", name),
            ("end of name", name),
            ("loose", name.lower().replace("_", "").replace(" ", "")),
            ("key", search_key(name.rpartition("::")[2])),
        )
        found = next((found for rule, value in rules if (found := self._matching(rule, [value]))), [])
        asked = [self.merged.get(id, id) for id in (name, name_id(name))]
        unbound = self._matching("unbound", asked)
        return found + [entity for entity in unbound if entity not in found]

    def entities(self, ids: Iterable[str]) -> list[Entity]:
        """Return the entities of some ids; those that are not there, or that nothing seen mentions, are missing."""
        return [entity for id in ids for entity in self._matching("id", [id]) or self._matching("unbound", [id, id])]

    def edges(
        self, ids: Sequence[str], relations: Sequence[str] = (), direction: Direction = "both", hops: int = 1
    ) -> list[Edge]:
        """Return the edges within `hops` steps of some entities, each at the least distance.

        `out` follows edges from source to target, `in` the other way; no relations means all.
        """
        frontier: Collection[Node] = self._nodes(ids)
        seen, met = set(frontier), set[Link]()
        found: list[Edge] = []
        for distance in range(1, hops + 1):
            links = [link for link in self._step(frontier, relations, direction) if link[0] not in met]
            met.update(link for link, _, _ in links)
            found += self._rows([link for link, _, _ in links], distance)
            fresh = {source for _, source, _ in links} if direction != "out" else set()
            if direction != "in":
                fresh.update(target for _, _, target in links)
            frontier = fresh - seen
            seen |= frontier
        return found

    def paths(
        self, start: str, goal: str, relations: Sequence[str] = (), direction: Direction = "out", hops: int = 6
    ) -> list[list[Edge]]:
        """Return the shortest paths from one entity to another, of at most `hops` edges; none where there is none."""
        first, last = (next(iter(self._nodes([name])), None) for name in (start, goal))
        if first is None or last is None or first == last:
            return []
        ways: tuple[Direction, Direction] = (direction, _OTHER_WAY[direction])
        seen, frontiers = ({first}, {last}), [{first}, {last}]
        found: tuple[_Met[Node, Link], _Met[Node, Link]] = (defaultdict(list), defaultdict(list))
        for _ in range(hops):
            side = int(len(frontiers[1]) < len(frontiers[0]))  # both ends come nearer, the smaller one's turn first
            fresh: set[Node] = set()
            for link, source, target in self._step(frontiers[side], relations, ways[side]):
                for here, there, way in ((source, target, "in"), (target, source, "out")):
                    if here in frontiers[side] and ways[side] != way and there not in seen[side]:
                        found[side][there].append((link, here))
                        fresh.add(there)
            seen[side].update(fresh)
            frontiers[side] = fresh
            if meeting := frontiers[0] & frontiers[1]:
                ahead = _ahead(found[0], found[1], meeting)
                paths = islice(_followed(ahead, first, last), MOST_PATHS)
                return [[self._rows([link], at)[0] for at, link in enumerate(path, 1)] for path in paths]
        return []

    def chunks(
        self, ids: Sequence[str], relations: Sequence[str] = (), direction: Direction = "both", hops: int = 1
    ) -> list[Reached]:
        """Return the chunks that mention what lies within `hops` steps of some entities (0: the entities themselves).

        Nearer ones come first, then those that more of the entities reach, then by chunk id.
        """
        near = {node: {node: 0} for node in self._nodes(ids)}
        frontier = set(near)
        for distance in range(1, hops + 1):
            fresh: set[Node] = set()
            for _, source, target in self._step(frontier, relations, direction):
                for here, there, way in ((source, target, "in"), (target, source, "out")):
                    if here in frontier and direction != way:
                        arrived = [seed for seed, steps in near[here].items() if steps == distance - 1]
                        known = near.setdefault(there, {})
                        new = [seed for seed in arrived if seed not in known]
                        known.update(dict.fromkeys(new, distance))
                        fresh.update([there] * bool(new))
            frontier = fresh
        steps = {
            self._id(node): {self._id(seed): steps for seed, steps in seeds.items()} for node, seeds in near.items()
        }
        steps |= {id: {id: 0} for id in ids if id not in steps}  # what has no edge may still be mentioned
        reached: dict[str, dict[str, int]] = defaultdict(dict)
        for entity, chunk in self._mentions(sorted(steps)):
            for seed, distance in steps[entity].items():
                reached[chunk][seed] = min(distance, reached[chunk].get(seed, distance))
        found = [Reached(min(seeds.values()), chunk, len(seeds)) for chunk, seeds in reached.items()]
        return sorted(found, key=lambda chunk: (chunk.distance, -chunk.seeds, chunk.chunk_id))

    def mentions(self, ids: Iterable[str]) -> list[tuple[str, str]]:
        """Return (entity, chunk) of the chunks that mention some entities, as far as these origins show it."""
        return list(self._mentions(sorted(ids)))

    @property
    @abstractmethod
    def relations(self) -> list[str]:
        """The relations that some edge has."""

    @abstractmethod
    def near(self, name: str, most: int = 5) -> list[str]:
        """Return the names that are spelt most like one that is not there."""

    @abstractmethod
    def evidence(self, edges: Sequence[Edge]) -> list[list[dict[str, Any]]]:
        """Return the places of each edge, first ones first: path, start_line and chunk_id."""

    @abstractmethod
    def symbols(self) -> list[tuple[str, str, str, str, int, int, int]]:
        """Return id, type, name, path, start, end and start_line of everything but pages, headings and mere names."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store."""

    @abstractmethod
    def _matching(self, rule: Rule, values: Sequence[str]) -> list[Entity]:
        """The entities for which a rule holds with one of the values, by id."""

    @abstractmethod
    def _nodes(self, ids: Iterable[str]) -> Collection[Node]:
        """Those of some entities that have an edge, as the store knows them, each once."""

    @abstractmethod
    def _id(self, node: Node) -> str:
        """The id of one of them."""

    @abstractmethod
    def _step(
        self, frontier: Collection[Node], relations: Sequence[str], direction: Direction
    ) -> Iterable[tuple[Link, Node, Node]]:
        """The edges at some entities with both their ends, each once and in order."""

    @abstractmethod
    def _rows(self, links: Sequence[Link], distance: int) -> list[Edge]:
        """Edges as rows."""

    @abstractmethod
    def _mentions(self, ids: Sequence[str]) -> Iterable[tuple[str, str]]:
        """(entity, chunk) of the chunks that mention some entities, by mentions of kinds that are not hidden."""


def _ahead(before: _Met[Node, Link], after: _Met[Node, Link], meeting: set[Node]) -> _Met[Node, Link]:
    """From what leads to the nodes where two walks meet, and on from there: each node's ways to the goal."""
    ahead: _Met[Node, Link] = defaultdict(list, {node: list(ways) for node, ways in after.items()})
    level = meeting
    while level:
        for there in level:
            for link, here in before.get(there, ()):
                ahead[here].append((link, there))
        level = {here for there in level for _, here in before.get(there, ())}
    return ahead


def _followed(ahead: _Met[Node, Link], here: Node, goal: Node) -> Iterator[tuple[Link, ...]]:
    """Yield the links of every path from here, in their order."""
    if here == goal:
        yield ()
        return
    for link, there in sorted(ahead[here]):
        for rest in _followed(ahead, there, goal):
            yield (link, *rest)
