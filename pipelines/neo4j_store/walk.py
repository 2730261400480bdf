"""Walking the graph that lies in Neo4j, with the answers that DuckDB's gives."""

import weakref
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import pyarrow as pa
from neo4j import READ_ACCESS, Driver

from pipelines.errors import CgragError
from pipelines.graph.store import graph_record
from pipelines.graph.traversal import Changed, Direction, Edge, Entity, Rule, Traversal
from pipelines.graph.walk import spelt_like
from pipelines.layout import Layout
from pipelines.neo4j_store.connect import open_driver, told, values
from pipelines.neo4j_store.load import corpus_name, is_current
from pipelines.neo4j_store.marker import Marker, read_marker
from pipelines.neo4j_store.schema import MARKER, relationship_type
from pipelines.settings import Settings

_LOAD = "Load it:  cgrag run --select neo4j_graph"
_PLACED = "n.path <> ''"
_SHOWN = "EXISTS { (n)-[m:MENTIONED_IN {corpus: $corpus}]->(:Chunk) WHERE NOT m.kind IN $hidden }"
_RULES: dict[Rule, str] = {
    "id": f"n.id = $values[0] AND {_PLACED}",
    "name": f"n.name = $values[0] AND {_PLACED}",
    "end of id": f"(n.id ENDS WITH '::' + $values[0] OR n.id ENDS WITH '/' + $values[0]) AND {_PLACED}",
    "end of name": f"n.name ENDS WITH '.' + $values[0] AND {_PLACED}",
    "loose": f"n.loose = $values[0] AND {_PLACED}",
    "key": f"n.key = $values[0] AND {_PLACED}",
    "unbound": f"n.id IN $values AND {_SHOWN}",
}
_SEEN = "r.corpus = $corpus AND ($origins IS NULL OR any(origin IN r.origins WHERE origin IN $origins))"
_KEYS = "r.relation IN $relations AND " + _SEEN
_EDGE = "[a.id, r.relation, b.id, r.origin, r.binding, r.weight]"
_STEPS = {
    "out": "UNWIND $ids AS id MATCH (a:Entity {corpus: $corpus, id: id})-[r:$any($types)]->(b) "
    f"WHERE {_KEYS} RETURN {_EDGE} AS row",
    "in": "UNWIND $ids AS id MATCH (b:Entity {corpus: $corpus, id: id})<-[r:$any($types)]-(a) "
    f"WHERE {_KEYS} RETURN {_EDGE} AS row",
}
_STEPS["both"] = f"{_STEPS['out']} UNION {_STEPS['in']}"
Row = tuple[Any, ...]
"""source, relation, target, origin, binding, weight"""


def open_neo4j(settings: Settings, origins: Iterable[str] | None = None) -> "Neo4jWalk":
    """Return the graph in Neo4j, which is the home's current one, seen through the edges of some origins.

    Raises:
        CgragError: none is configured, or it does not answer, or holds no or half a graph, or another than the home.
    """
    driver = open_driver(settings)
    try:
        with told(settings), driver.session(database=settings.neo4j_database) as session:
            marker = read_marker(session, corpus_name(settings))
        return Neo4jWalk(driver, settings, _checked(marker, settings), origins)
    except BaseException:
        driver.close()
        raise


def _checked(marker: Marker | None, settings: Settings) -> Marker:
    record = graph_record(Layout(settings.home))
    if record is None:
        raise CgragError(f"{settings.home} has no knowledge graph yet.", "Build it:  cgrag run")
    if marker is None:
        raise CgragError(f"Neo4j has no graph named {corpus_name(settings)} yet.", _LOAD)
    if marker.state != "ready":
        raise CgragError(
            f"The graph {marker.corpus} in Neo4j is being loaded, or its load was cut off.",
            "Wait, or load it again:  cgrag run --select neo4j_graph",
        )
    if not is_current(marker, record["generation"], record["chunks"]):
        raise CgragError(f"The graph {marker.corpus} in Neo4j is another than the home's.", _LOAD)
    return marker


class Neo4jWalk(Traversal[str, Row]):
    """A step of a walk is one query, whose answer counts only if no load has changed the graph meanwhile."""

    def __init__(self, driver: Driver, settings: Settings, marker: Marker, origins: Iterable[str] | None) -> None:
        super().__init__(origins)
        self._driver, self._settings, self._marker = driver, settings, marker
        self._close = weakref.finalize(self, driver.close)  # at the latest when this is forgotten
        self._relations = sorted(
            {relation for relation, origin in marker.relations if self.origins is None or origin in self.origins}
        )

    @property
    def relations(self) -> list[str]:
        return self._relations

    def near(self, name: str, most: int = 5) -> list[str]:
        query = (
            f"MATCH (n:Entity {{corpus: $corpus}}) WHERE {_PLACED} OR {_SHOWN} RETURN DISTINCT [n.name, n.key] AS row"
        )
        rows = self._read(query, hidden=self.hidden)
        names = pa.table({"name": [name for name, _ in rows], "key": [key for _, key in rows]})
        return spelt_like(name, names, most)

    def evidence(self, edges: Sequence[Edge]) -> list[list[dict[str, Any]]]:
        query = (
            "UNWIND $keys AS key MATCH (a:Entity {corpus: $corpus, id: key[0]})"
            "-[r:$(key[1]) {corpus: $corpus, relation: key[2]}]->(b:Entity {corpus: $corpus, id: key[3]}) "
            "RETURN [a.id, r.relation, b.id, r.evidence_path, r.evidence_line, r.evidence_chunk] AS row"
        )
        keys = [[edge.source, relationship_type(edge.relation), edge.relation, edge.target] for edge in edges]
        found = {tuple(row[:3]): zip(*row[3:], strict=True) for row in self._read(query, keys=keys)}
        places = {
            key: [{"path": path, "start_line": line, "chunk_id": chunk} for path, line, chunk in rows]
            for key, rows in found.items()
        }
        return [places[edge.source, edge.relation, edge.target] for edge in edges]

    def symbols(self) -> list[tuple[str, str, str, str, int, int, int]]:
        query = (
            f"MATCH (n:Entity {{corpus: $corpus}}) WHERE n.type <> 'Concept' AND {_PLACED} "
            "RETURN [n.id, n.type, n.name, n.path, n.start, n.end, n.start_line] AS row"
        )
        return sorted(
            (id, kind, name, path, start, end, line) for id, kind, name, path, start, end, line in self._read(query)
        )

    def close(self) -> None:
        self._close()

    def _matching(self, rule: Rule, values: Sequence[str]) -> list[Entity]:
        query = (
            f"MATCH (n:Entity {{corpus: $corpus}}) WHERE {_RULES[rule]} "
            "RETURN [n.id, n.type, n.name, n.key, n.path, n.start, n.end, n.start_line, n.end_line] AS row"
        )
        return [Entity(*row) for row in sorted(self._read(query, values=list(values), hidden=self.hidden))]

    def _nodes(self, ids: Iterable[str]) -> set[str]:
        return set(ids)

    def _id(self, node: str) -> str:
        return node

    def _step(
        self, frontier: Collection[str], relations: Sequence[str], direction: Direction
    ) -> list[tuple[Row, str, str]]:
        asked = [name for name in self._relations if not relations or name in relations]
        if not frontier or not asked:
            return []
        types = sorted({relationship_type(name) for name in asked})
        rows = self._read(_STEPS[direction], ids=sorted(frontier), types=types, relations=asked, origins=self.origins)
        return [(row, row[0], row[2]) for row in sorted(map(tuple, rows))]

    def _rows(self, links: Sequence[Row], distance: int) -> list[Edge]:
        return [Edge(*(*link, distance)) for link in links]

    def _mentions(self, ids: Sequence[str]) -> list[tuple[str, str]]:
        query = (
            "UNWIND $ids AS id "
            "MATCH (a:Entity {corpus: $corpus, id: id})-[r:MENTIONED_IN {corpus: $corpus}]->(b:Chunk) "
            "WHERE NOT r.kind IN $hidden RETURN DISTINCT [id, b.id] AS row"
        )
        return [(entity, chunk) for entity, chunk in self._read(query, ids=list(ids), hidden=self.hidden)]

    def _read(self, query: str, **parameters: Any) -> list[list[Any]]:
        """Return the rows of a query; the marker is read after them, so that it would show a load that came between."""
        guarded = (
            f"CALL () {{ {query} }} WITH collect(row) AS rows "
            f"OPTIONAL MATCH (m:{MARKER} {{corpus: $corpus}}) RETURN rows, m.state, m.load"
        )
        parameters["corpus"] = self._marker.corpus
        with (
            told(self._settings),
            self._driver.session(database=self._settings.neo4j_database, default_access_mode=READ_ACCESS) as session,
        ):
            ((rows, state, load),) = values(session, guarded, **parameters)
        if (state, load) != ("ready", self._marker.load):
            raise Changed(f"The graph {self._marker.corpus} in Neo4j was changed while it was read.", "Ask again.")
        return list(rows)
