"""Walking the graph: entities by name, neighbourhoods, and paths between two entities."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.graph.names import name_id, search_key

MOST_PATHS = 20
"""Of equally short paths, those returned."""
Numbers = NDArray[np.int64]
Direction = Literal["in", "out", "both"]
_COLUMNS = 'id, type, name, key, path, start, "end", start_line, end_line'
_PLACED = " WHERE path <> ''"
_EDGE = "source, relation, target, origin, binding, weight"


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
    """A row of `edges`; `number` is its position in the walk, `distance` after how many steps it was first met."""

    number: int
    source: str
    relation: str
    target: str
    origin: str
    binding: str
    weight: int
    distance: int


class Walk:
    """Questions to one graph. Edges come in the order of distance, then source, relation and target.

    Names and evidence are looked up in DuckDB; edges are held as Arrow columns, in the order in which they are stored,
    with an index of both ends, so that a step of a walk costs no query. Only edges with an origin in `origins` are seen
    (all of them where it is None).
    """

    def __init__(self, database: duckdb.DuckDBPyConnection, origins: Iterable[str] | None = None) -> None:
        self._database = database
        self._names = origins is None
        query, values = f"SELECT {_EDGE}, rowid AS row FROM edges", list[Any]()
        if origins is not None:
            query += " WHERE list_has_any(origins, ?)"
            values.append(sorted(origins))
        found: Any = database.sql(query, params=values).to_arrow_table()
        table = found.combine_chunks()
        self._edges = table.drop_columns(["row"])
        self._stored = table["row"]
        ends, self._ids = _coded([*table["source"].chunks, *table["target"].chunks])
        relations, self._relations = _coded(table["relation"].chunks)
        self._codes = {name: code for code, name in enumerate(self._ids)}
        self._relation_of = relations
        self._out = _Index(ends[: table.num_rows], len(self._ids))
        self._in = _Index(ends[table.num_rows :], len(self._ids))

    @property
    def relations(self) -> list[str]:
        """The relations that some edge has."""
        return sorted(self._relations)

    def find(self, name: str) -> list[Entity]:
        """Return the entities of a name: its id, else qualified names, else ends of them (`Class.method`), else keys.

        The first of these that gives any is all that counts, so that an exact name is not drowned by similar ones. What
        is a name and nothing else comes after them, and only where all origins are seen.
        """
        key = search_key(name.rpartition("::")[2])
        for condition, values in (
            ("id = ?", [name]),
            ("name = ?", [name]),
            ("ends_with(id, ?) OR ends_with(id, ?)", [f"::{name}", f"/{name}"]),
            ("ends_with(name, ?)", [f".{name}"]),
            ("replace(replace(lower(name), '_', ''), ' ', '') = ?", [name.lower().replace("_", "").replace(" ", "")]),
            ("key = ?", [key]),
        ):
            if found := self._entities(f"({condition}) AND path <> ''", values):
                break
        return found + (self._entities("id IN (?, ?)", [name, name_id(name)], found) if self._names else [])

    def _entities(self, condition: str, values: list[str], besides: Sequence[Entity] = ()) -> list[Entity]:
        rows = self._database.execute(f"SELECT {_COLUMNS} FROM entities WHERE {condition} ORDER BY id", values)
        return [entity for row in rows.fetchall() if (entity := Entity(*row)) not in besides]

    def near(self, name: str, most: int = 5) -> list[str]:
        """Return the names that are spelt most like one that is not there."""
        query = (
            f"SELECT name FROM (SELECT DISTINCT name, key FROM entities{'' if self._names else _PLACED}) "
            "ORDER BY jaro_winkler_similarity(key, ?) DESC, name LIMIT ?"
        )
        return [str(row[0]) for row in self._database.execute(query, [search_key(name), most]).fetchall()]

    def edges(
        self, ids: Sequence[str], relations: Sequence[str] = (), direction: Direction = "both", hops: int = 1
    ) -> list[Edge]:
        """Return the edges within `hops` steps of some entities, each at the least distance.

        `out` follows edges from source to target, `in` the other way; no relations means all.
        """
        frontier = np.array(sorted({self._codes[name] for name in ids if name in self._codes}), dtype=np.int64)
        seen, met = set(frontier.tolist()), np.zeros(self._edges.num_rows, dtype=bool)
        found: list[Edge] = []
        for distance in range(1, hops + 1):
            numbers = self._step(frontier, relations, direction)
            numbers = numbers[~met[numbers]]
            met[numbers] = True
            found += self._rows(numbers, distance)
            ends = [
                index.ends[numbers] for index, other in ((self._out, "out"), (self._in, "in")) if direction != other
            ]
            fresh = set(np.concatenate(ends).tolist()) - seen
            seen |= fresh
            frontier = np.array(sorted(fresh), dtype=np.int64)
        return found

    def paths(
        self, start: str, goal: str, relations: Sequence[str] = (), direction: Direction = "out", hops: int = 6
    ) -> list[list[Edge]]:
        """Return the shortest paths from one entity to another, of at most `hops` edges; none where there is none."""
        if start == goal or start not in self._codes or goal not in self._codes:
            return []
        first, last = self._codes[start], self._codes[goal]
        reached, before = {first: 0}, dict[int, list[tuple[int, int]]]()
        frontier = {first}
        for distance in range(1, hops + 1):
            fresh: set[int] = set()
            for number in self._step(np.array(sorted(frontier), dtype=np.int64), relations, direction).tolist():
                source, target = int(self._out.ends[number]), int(self._in.ends[number])
                for here, there, way in ((source, target, "in"), (target, source, "out")):
                    if here in frontier and direction != way and reached.setdefault(there, distance) == distance:
                        before.setdefault(there, []).append((here, number))
                        fresh.add(there)
            if last in fresh:
                paths = sorted(_traced(before, first, last))[:MOST_PATHS]
                return [[self._rows(np.array([number]), at)[0] for at, number in enumerate(path, 1)] for path in paths]
            frontier = fresh
        return []

    def _step(self, frontier: Numbers, relations: Sequence[str], direction: Direction) -> Numbers:
        """Return the edges at some entities, in order."""
        sides = [index for index, way in ((self._out, "out"), (self._in, "in")) if direction in (way, "both")]
        numbers = np.unique(np.concatenate([index.at(frontier) for index in sides]))
        if relations:
            wanted = [code for code, name in enumerate(self._relations) if name in relations]
            numbers = numbers[np.isin(self._relation_of[numbers], wanted)]
        return numbers

    def evidence(self, edges: Sequence[Edge]) -> list[list[dict[str, Any]]]:
        """Return the places of each edge, first ones first: path, start_line and chunk_id."""
        stored = self._stored.take(pa.array([edge.number for edge in edges], pa.int64())).to_pylist()
        query = "SELECT rowid, evidence FROM edges WHERE rowid IN (SELECT unnest(?))"
        places = dict(self._database.execute(query, [stored]).fetchall())
        return [places[row] for row in stored]

    def _rows(self, numbers: Numbers, distance: int) -> list[Edge]:
        columns: list[list[Any]] = [column.to_pylist() for column in self._edges.take(pa.array(numbers)).columns]
        distances = [distance] * len(numbers)
        return [Edge(*row) for row in zip(numbers.tolist(), *columns, distances, strict=True)]


def _coded(chunks: Sequence[Any]) -> tuple[Numbers, list[str]]:
    """Return strings as numbers, and what each number stands for."""
    encoded = pa.chunked_array(chunks, pa.string()).combine_chunks().dictionary_encode()
    return encoded.indices.to_numpy(zero_copy_only=False), encoded.dictionary.to_pylist()


class _Index:
    """Which edges have an entity at one end."""

    def __init__(self, ends: Numbers, entities: int) -> None:
        self.ends = ends
        self._order = np.argsort(ends, kind="stable")
        self._starts = np.searchsorted(ends[self._order], np.arange(entities + 1))

    def at(self, entities: Numbers) -> Numbers:
        pieces = [self._order[self._starts[code] : self._starts[code + 1]] for code in entities.tolist()]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)


def _traced(before: dict[int, list[tuple[int, int]]], start: int, goal: int) -> list[list[int]]:
    """Return the edges of every path that `before` holds, up to a bound well above what is shown."""
    paths: list[list[int]] = []
    pending: list[tuple[int, list[int]]] = [(goal, [])]
    while pending and len(paths) < 50 * MOST_PATHS:
        here, path = pending.pop()
        if here == start:
            paths.append(path)
        else:
            pending.extend((previous, [number, *path]) for previous, number in before[here])
    return paths
