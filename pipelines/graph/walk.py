"""Walking the graph that lies in DuckDB."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.graph.names import search_key
from pipelines.graph.traversal import Direction, Edge, Entity, Rule, Traversal

Numbers = NDArray[np.int64]
LOOSE = "replace(replace(lower(name), '_', ''), ' ', '')"
"""A name without what people leave out of it."""
_COLUMNS = 'id, type, name, key, path, start, "end", start_line, end_line'
_PLACED = "path <> ''"
_SEEN = "id IN (SELECT entity FROM mentions WHERE NOT list_contains(${}::VARCHAR[], kind))"
_RULES: dict[Rule, str] = {
    "id": f"{_PLACED} AND id = $1",
    "name": f"{_PLACED} AND name = $1",
    "end of id": f"{_PLACED} AND (ends_with(id, '::' || $1) OR ends_with(id, '/' || $1))",
    "end of name": f"{_PLACED} AND ends_with(name, '.' || $1)",
    "loose": f"{_PLACED} AND {LOOSE} = $1",
    "key": f"{_PLACED} AND key = $1",
    "unbound": f"id IN ($1, $2) AND {_SEEN.format(3)}",
}
_EDGE = "source, relation, target, origin, binding, weight"


class Walk(Traversal[int, int]):
    """Names, mentions and evidence are looked up in DuckDB; edges are held as Arrow columns, in the order in which they
    are stored, with an index of both ends, so that a step of a walk costs no query.
    """

    def __init__(self, database: duckdb.DuckDBPyConnection, origins: Iterable[str] | None = None) -> None:
        super().__init__(origins)
        self._database = database
        query, values = f"SELECT {_EDGE} FROM edges", list[Any]()
        if self.origins is not None:
            query += " WHERE list_has_any(origins, ?)"
            values.append(self.origins)
        found: Any = database.sql(query, params=values).to_arrow_table()
        self._edges = table = found.combine_chunks()
        ends, self._ids = _coded([*table["source"].chunks, *table["target"].chunks])
        relations, self._relations = _coded(table["relation"].chunks)
        self._codes = {name: code for code, name in enumerate(self._ids)}
        self._relation_of = relations
        self._out = _Index(ends[: table.num_rows], len(self._ids))
        self._in = _Index(ends[table.num_rows :], len(self._ids))

    @property
    def relations(self) -> list[str]:
        return sorted(self._relations)

    def near(self, name: str, most: int = 5) -> list[str]:
        query = f"SELECT name, key FROM entities WHERE {_PLACED} OR {_SEEN.format(1)}"
        names = self._database.sql(query, params=[self.hidden]).to_arrow_table()
        return spelt_like(name, names, most)

    def evidence(self, edges: Sequence[Edge]) -> list[list[dict[str, Any]]]:
        keys = [(edge.source, edge.relation, edge.target) for edge in edges]
        query = (
            "SELECT source, relation, target, evidence FROM edges SEMI JOIN (SELECT unnest($1) AS source, "
            "unnest($2) AS relation, unnest($3) AS target) USING (source, relation, target)"
        )
        columns = [list(column) for column in zip(*keys, strict=True)] or [[], [], []]
        places = {tuple(key): places for *key, places in self._run(query, columns)}
        return [places[key] for key in keys]

    def symbols(self) -> list[tuple[str, str, str, str, int, int, int]]:
        query = 'SELECT id, type, name, path, start, "end", start_line FROM entities'
        return self._database.execute(f"{query} WHERE type <> 'Concept' AND {_PLACED} ORDER BY id").fetchall()

    def close(self) -> None:
        self._database.close()

    def _matching(self, rule: Rule, values: Sequence[str]) -> list[Entity]:
        given = [*values, self.hidden] if rule == "unbound" else values
        rows = self._run(f"SELECT {_COLUMNS} FROM entities WHERE {_RULES[rule]} ORDER BY id", given)
        return [Entity(*row) for row in rows]

    def _run(self, query: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
        return self._database.execute(query, list(values)).fetchall()

    def _nodes(self, ids: Iterable[str]) -> set[int]:
        return {self._codes[name] for name in ids if name in self._codes}

    def _id(self, node: int) -> str:
        return self._ids[node]

    def _step(
        self, frontier: Collection[int], relations: Sequence[str], direction: Direction
    ) -> Iterator[tuple[int, int, int]]:
        sides = [index for index, way in ((self._out, "out"), (self._in, "in")) if direction in (way, "both")]
        numbers = np.unique(np.concatenate([index.at(frontier) for index in sides]))
        if relations:
            wanted = [code for code, name in enumerate(self._relations) if name in relations]
            numbers = numbers[np.isin(self._relation_of[numbers], wanted)]
        ends = (index.ends[numbers].tolist() for index in (self._out, self._in))
        return zip(numbers.tolist(), *ends, strict=True)

    def _rows(self, links: Sequence[int], distance: int) -> list[Edge]:
        taken = self._edges.take(pa.array(links, pa.int64()))
        columns: list[list[Any]] = [column.to_pylist() for column in taken.columns]
        return [Edge(*(*row, distance)) for row in zip(*columns, strict=True)]

    def _mentions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        return [(entity, chunk) for entity in ids for chunk in self._mentioned.get(entity, ())]

    @cached_property
    def _mentioned(self) -> dict[str, list[str]]:
        shown = "NOT list_contains($1::VARCHAR[], kind)"
        query = f"SELECT entity, list(DISTINCT chunk_id) FROM mentions WHERE {shown} GROUP BY entity"
        return dict(self._run(query, [self.hidden]))


def spelt_like(name: str, names: pa.Table, most: int) -> list[str]:
    """Return those of some names (`name`, `key`) whose keys are most like that of another."""
    with duckdb.connect() as database:
        database.register("names", names)
        query = "SELECT name FROM (SELECT DISTINCT name, key FROM names) ORDER BY jaro_winkler_similarity(key, ?) DESC"
        found = database.execute(f"{query}, name LIMIT ?", [search_key(name), most]).fetchall()
    return [str(row[0]) for row in found]


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

    def at(self, entities: Collection[int]) -> Numbers:
        pieces = [self._order[self._starts[code] : self._starts[code + 1]] for code in entities]
        return np.concatenate(pieces) if pieces else np.empty(0, dtype=np.int64)
