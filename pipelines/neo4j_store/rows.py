"""The rows of a home's graph as Neo4j gets them, each with a hash, in parts of files that lie together."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.errors import CgragError
from pipelines.graph.store import graph_record, open_current
from pipelines.graph.tables import ENTITIES
from pipelines.graph.walk import LOOSE
from pipelines.layout import Layout
from pipelines.neo4j_store.schema import FALLBACK, NODES, PLAIN, RESERVED_TYPES
from pipelines.tables import CHUNKS, DOCUMENTS, digest, read_tables

PARTS = tuple(f"{number:02x}" for number in range(256))
"""What belongs to a file is in the file's part, so that an edit touches few."""
_LONGEST = 7500
_PART = "substr(md5({}), 1, 2)"
_ENTITY_PART = _PART.format("CASE WHEN path = '' THEN id ELSE path END")
_RESERVED_LABELS = ", ".join(f"'{label}'" for label in NODES)
_RESERVED_TYPES = ", ".join(f"'{name}'" for name in RESERVED_TYPES)


@dataclass(frozen=True)
class Table:
    """How the rows of one table are found here and there; Cypher gets them as `$rows`, at most `batch` at once."""

    name: str
    keys: tuple[str, ...]
    rows: str
    """SQL: keys, part, labels (of a node) or type (of a relationship), and properties."""
    stored: str
    """Cypher: keys and hash of what the database has of `$parts`; no hash where something else is missing."""
    write: str
    """Cypher: makes the nodes or relationships what the rows say, and returns how many found their ends."""
    delete: str
    """Cypher: deletes those with the keys of the rows."""
    count: str
    """Cypher: returns how many there are."""
    batch: int = 4000


def _properties(*columns: str, **computed: str) -> str:
    parts = [*(f'"{name}": "{name}"' for name in columns), *(f'"{name}": {value}' for name, value in computed.items())]
    return "{" + ", ".join(parts) + "}"


def _node(
    label: str, rows: str, joined: str = "", stored: str = "n.hash", counted: str = "", batch: int = 4000
) -> Table:
    return Table(
        label.lower(),
        ("id",),
        rows,
        f"MATCH (n:{label} {{corpus: $corpus}}) WHERE n.part IN $parts AND n.hash IS NOT NULL RETURN n.id, {stored}",
        f"UNWIND $rows AS row MERGE (n:{label} {{corpus: $corpus, id: row.id}}) "
        f"REMOVE n:$([label IN labels(n) WHERE label = n.type AND label <> '{label}']) "
        "SET n:$(row.labels), n += row.properties, n.corpus = $corpus, n.part = row.part, n.hash = row.hash "
        f"{joined}RETURN count(n)",
        f"UNWIND $rows AS row MATCH (n:{label} {{corpus: $corpus, id: row.id}}) OPTIONAL MATCH (n)-[r]-() DELETE r, n",
        f"MATCH (n:{label} {{corpus: $corpus}}){counted} WHERE n.hash IS NOT NULL RETURN count(n)",
        batch,
    )


_FROM = "-[r:FROM_DOCUMENT {corpus: $corpus}]->"
_BETWEEN = "MATCH (a:Entity {corpus: $corpus, id: row.source}) MATCH (b:Entity {corpus: $corpus, id: row.target})"
_RELATION = "{corpus: $corpus, relation: row.relation}"
_MENTION = "MATCH (a:Entity {corpus: $corpus, id: row.entity}) MATCH (b:Chunk {corpus: $corpus, id: row.chunk_id})"
_MENTIONED = "r:MENTIONED_IN {corpus: $corpus, kind: row.kind, start: row.start, end: row.end}"
_SET = "SET r += row.properties, r.corpus = $corpus, r.hash = row.hash RETURN count(r)"
TABLES = (
    _node(
        "Document",
        f"SELECT path AS id, {_PART.format('path')} AS part, []::VARCHAR[] AS labels, "
        + _properties("path", "sha256", "characters", "lines", "parser", "problem", "chunks", id="path")
        + " AS properties FROM documents",
    ),
    _node(
        "Chunk",
        f"SELECT chunk_id AS id, path AS document, {_PART.format('path')} AS part, []::VARCHAR[] AS labels, "
        + _properties(*(name for name in CHUNKS.names if name != "chunk_id"), id="chunk_id")
        + " AS properties FROM chunks",
        joined=f"WITH n, row MATCH (d:Document {{corpus: $corpus, id: row.document}}) MERGE (n){_FROM}(d) ",
        counted="-[:FROM_DOCUMENT {corpus: $corpus}]->(:Document)",
        stored="CASE WHEN EXISTS { (n)-[:FROM_DOCUMENT {corpus: $corpus}]->(:Document) } THEN n.hash END",
        batch=1000,
    ),
    _node(
        "Entity",
        f"SELECT id, {_ENTITY_PART} AS part, CASE WHEN regexp_full_match(type, '{PLAIN}') AND type NOT IN "
        f"({_RESERVED_LABELS}) THEN [type] ELSE [] END AS labels, "
        + _properties(*ENTITIES.names, loose=LOOSE)
        + " AS properties FROM entities",
    ),
    Table(
        "edge",
        ("source", "relation", "target"),
        "SELECT source, relation, target, part, "
        f"CASE WHEN regexp_full_match(relation, '{PLAIN}') AND relation NOT IN ({_RESERVED_TYPES}) "
        f"THEN relation ELSE '{FALLBACK}' END AS type, "
        + _properties(
            *("relation", "origin", "origins", "binding", "weight"),
            evidence_path="list_transform(evidence, lambda place: place.path)",
            evidence_line="list_transform(evidence, lambda place: place.start_line)",
            evidence_chunk="list_transform(evidence, lambda place: place.chunk_id)",
        )
        + f" AS properties FROM edges JOIN (SELECT id AS source, {_ENTITY_PART} AS part FROM entities) USING (source)",
        "MATCH (a:Entity {corpus: $corpus}) WHERE a.part IN $parts MATCH (a)-[r {corpus: $corpus}]->(b:Entity) "
        "WHERE r.hash IS NOT NULL RETURN a.id, r.relation, b.id, r.hash",
        f"UNWIND $rows AS row {_BETWEEN} MERGE (a)-[r:$(row.type) {_RELATION}]->(b) {_SET}",
        f"UNWIND $rows AS row {_BETWEEN} MATCH (a)-[r {_RELATION}]->(b) DELETE r",
        "MATCH (:Entity {corpus: $corpus})-[r {corpus: $corpus}]->(:Entity) WHERE r.hash IS NOT NULL RETURN count(r)",
    ),
    Table(
        "mention",
        ("entity", "chunk_id", "kind", "start", "end"),
        "SELECT entity, chunk_id, kind, start, \"end\", part, 'MENTIONED_IN' AS type, "
        + _properties("kind", "start", "end", "line", "text")
        + f" AS properties FROM mentions "
        f"JOIN (SELECT chunk_id, {_PART.format('path')} AS part FROM chunks) USING (chunk_id)",
        "MATCH (b:Chunk {corpus: $corpus}) WHERE b.part IN $parts "
        "MATCH (a:Entity)-[r:MENTIONED_IN {corpus: $corpus}]->(b) WHERE r.hash IS NOT NULL "
        "RETURN a.id, b.id, r.kind, r.start, r.end, r.hash",
        f"UNWIND $rows AS row {_MENTION} MERGE (a)-[{_MENTIONED}]->(b) {_SET}",
        f"UNWIND $rows AS row {_MENTION} MATCH (a)-[{_MENTIONED}]->(b) DELETE r",
        "MATCH (:Entity {corpus: $corpus})-[r:MENTIONED_IN {corpus: $corpus}]->(:Chunk) "
        "WHERE r.hash IS NOT NULL RETURN count(r)",
    ),
)
"""In the order in which they are written; what is to go goes in the other."""


class LocalGraph:
    """The current graph and chunks of a home, as rows for Neo4j; but for what it is of, to be asked after `prepare`.

    Raises:
        CgragError: there is no graph, or it is older than the chunks (`chunked`, fingerprints by partition).
    """

    def __init__(self, layout: Layout, chunked: Mapping[str, str]) -> None:
        self._layout, self._chunked = layout, dict(sorted(chunked.items()))
        self._prepared = False
        self._database = open_current(layout)
        self.generation = str(self._all("SELECT id FROM generation")[0][0])
        self.chunks = digest(self._chunked)
        self.check()

    def prepare(self) -> None:
        """Make the rows, once."""
        if self._prepared:
            return
        for name, schema in (("documents", DOCUMENTS), ("chunks", CHUNKS)):
            rows = read_tables((self._layout.partition(key, name) for key in self._chunked), schema)
            self._database.register(name, rows)
        for table in TABLES:
            keys = ", ".join(f'"{key}"' for key in table.keys)
            hashed = f"SELECT *, substr(md5(to_json(made)::VARCHAR), 1, 16) AS hash FROM ({table.rows}) AS made"
            self._database.execute(f"CREATE TABLE memory.{table.name} AS {hashed} ORDER BY {keys}")
        self._prepared = True
        longest = (
            f"SELECT id FROM entities WHERE strlen(id) > {_LONGEST} OR strlen(name) > {_LONGEST} ORDER BY id LIMIT 1"
        )
        for (id,) in self._all(longest):
            raise CgragError(
                f"The entity {id[:80]}… has a name of over {_LONGEST:,} bytes, which Neo4j's indexes do not take.",
                "Shorten it in the source, or leave that file out of the corpus.",
            )

    def check(self) -> None:
        """See that this is still the home's graph, of the chunks that it has.

        Raises:
            CgragError: it is another.
        """
        record = graph_record(self._layout) or {}
        if (record.get("generation"), record.get("chunks")) != (self.generation, self.chunks):
            raise CgragError(
                "The knowledge graph is not that of the chunks, or was built anew.", "Run again:  cgrag run"
            )

    def close(self) -> None:
        self._database.close()

    def parts(self) -> dict[str, dict[str, str]]:
        """Return {table: {part: hash of its rows}}."""
        query = "SELECT part, md5(string_agg(hash, '' ORDER BY hash)) FROM memory.{} GROUP BY part ORDER BY part"
        return {table.name: dict(self._all(query.format(table.name))) for table in TABLES}

    def counts(self) -> dict[str, int]:
        """Return {table: rows}."""
        return {table.name: int(self._all(f"SELECT count(*) FROM memory.{table.name}")[0][0]) for table in TABLES}

    def relations(self) -> list[tuple[str, str]]:
        """Return (relation, origin) of all edges."""
        query = "SELECT DISTINCT relation, unnest(origins) AS origin FROM edges ORDER BY relation, origin"
        return [(relation, origin) for relation, origin in self._all(query)]

    def compare(self, table: Table, parts: list[str], stored: list[list[Any]]) -> int:
        """Compare some parts of a table with what is stored of them (keys and hash).

        Returns how many rows are to be written or deleted; what is stored twice is both.
        """
        keys = ", ".join(f'"{key}"' for key in table.keys)
        columns = list(zip(*stored, strict=True)) or [() for _ in (*table.keys, "hash")]
        types = [pa.int64() if key in ("start", "end") else pa.string() for key in (*table.keys, "hash")]
        arrays = [pa.array(column, kind) for column, kind in zip(columns, types, strict=True)]
        self._database.register("stored", pa.Table.from_arrays(arrays, [*table.keys, "hash"]))
        try:
            self._database.execute(
                f"CREATE OR REPLACE TABLE memory.there AS SELECT {keys}, any_value(hash) AS hash, count(*) AS times "
                f"FROM stored GROUP BY {keys}"
            )
        finally:
            self._database.unregister("stored")
        self._database.execute(
            f"CREATE OR REPLACE TABLE memory.{table.name}_deleted AS SELECT {keys} FROM memory.there AS t "
            f"WHERE times > 1 OR NOT EXISTS (SELECT 1 FROM memory.{table.name} AS h WHERE {_same(table)})"
        )
        self._database.execute(
            f"CREATE OR REPLACE TABLE memory.{table.name}_written AS SELECT * FROM memory.{table.name} AS h "
            "WHERE part IN (SELECT unnest($1)) AND NOT EXISTS "
            f"(SELECT 1 FROM memory.there AS t WHERE {_same(table)} AND t.hash = h.hash AND times = 1)",
            [parts],
        )
        query = f"SELECT count(*) FROM memory.{table.name}_"
        return sum(int(self._all(query + kind)[0][0]) for kind in ("written", "deleted"))

    def written(self, table: Table) -> Iterator[list[dict[str, Any]]]:
        """Yield the rows to write, after `compare`, in batches sorted by their keys."""
        yield from self._batches(f"{table.name}_written", table)

    def deleted(self, table: Table) -> Iterator[list[dict[str, Any]]]:
        """Yield the keys of the rows to delete, after `compare`."""
        yield from self._batches(f"{table.name}_deleted", table)

    def _batches(self, name: str, table: Table) -> Iterator[list[dict[str, Any]]]:
        keys = ", ".join(f'"{key}"' for key in table.keys)
        with self._database.cursor() as cursor:
            for batch in cursor.sql(f"SELECT * FROM memory.{name} ORDER BY {keys}").to_arrow_reader(table.batch):
                yield batch.to_pylist()

    def _all(self, query: str) -> list[tuple[Any, ...]]:
        return self._database.execute(query).fetchall()


def _same(table: Table) -> str:
    return " AND ".join(f't."{key}" = h."{key}"' for key in table.keys)
