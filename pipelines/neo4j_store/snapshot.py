"""A copy of what a database has of a corpus, and its way back."""

import json
import uuid
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import CgragError
from pipelines.layout import Layout, file_name
from pipelines.neo4j_store.connect import connected, values
from pipelines.neo4j_store.lock import fence, locked
from pipelines.neo4j_store.marker import Marker, end_load, marker_of, properties_of, read_marker, write_marker
from pipelines.neo4j_store.remove import delete_nodes
from pipelines.neo4j_store.schema import NODES, VERSION, create_schema
from pipelines.progress import Reporter
from pipelines.settings import Settings
from pipelines.tables import atomic, read_manifest

_ROWS = pa.schema(
    [
        pa.field("labels", pa.list_(pa.string())),  # of a node; of a relationship those of its ends
        pa.field("type", pa.string()),  # of a relationship, "" of a node
        pa.field("start", pa.string()),
        pa.field("end", pa.string()),
        pa.field("properties", pa.string()),  # JSON
    ]
)
_BATCH = 4000


def take_snapshot(settings: Settings, corpus: str, report: Reporter) -> Path:
    """Write what the database has of a corpus to a file below the home, and return where.

    Raises:
        CgragError: Neo4j is not there, has no whole graph of that name, or a property that no file can keep.
    """
    with (
        connected(settings) as driver,
        driver.session(database=settings.neo4j_database) as session,
        locked(driver, settings.neo4j_database, corpus),
    ):
        marker = read_marker(session, corpus)
        if marker is None or marker.state != "ready":
            state = "half a" if marker else "no"
            raise CgragError(f"Neo4j has {state} graph named {corpus}.", "Load it:  cgrag run --select neo4j_graph")
        return write_snapshot(session, settings, marker, report)


def write_snapshot(session: Any, settings: Settings, marker: Marker, report: Reporter) -> Path:
    """Write a whole graph to a file below the home, and return where; a former one of the same graph is replaced."""
    name = f"{file_name(marker.corpus)}-{marker.generation[:12]}-v{marker.version}.parquet"
    path = Layout(settings.home).neo4j_snapshots / name
    manifest = json.dumps({"marker": properties_of(marker)["properties"]}, sort_keys=True)
    schema = _ROWS.with_metadata({"cgrag": manifest})
    with atomic(path) as temporary, pq.ParquetWriter(temporary, schema, compression="zstd") as writer:
        progress, done = report("Keeping a snapshot", "rows"), 0
        found = _read(session, marker.corpus)
        while rows := list(islice(found, _BATCH)):
            writer.write_table(pa.Table.from_pylist(rows, schema))
            done += len(rows)
            progress(done, None)
    return path


def _read(session: Any, corpus: str) -> Iterator[dict[str, Any]]:
    for label in NODES:
        query = f"MATCH (n:{label} {{corpus: $corpus}}) RETURN labels(n), properties(n) ORDER BY n.id"
        for labels, properties in session.run(query, {"corpus": corpus}):
            yield {"labels": sorted(labels), "type": "", "start": "", "end": "", "properties": _json(properties)}
    for label in NODES:
        query = (
            f"MATCH (a:{label} {{corpus: $corpus}})-[r]->(b {{corpus: $corpus}}) "
            f"WITH a, r, b, [label IN labels(b) WHERE label IN $labels] AS ends WHERE size(ends) = 1 "
            "RETURN a.id, type(r), b.id, ends[0], properties(r)"
        )
        for start, kind, end, of_end, properties in session.run(query, {"corpus": corpus, "labels": list(NODES)}):
            yield {
                "labels": [label, of_end], "type": kind, "start": start, "end": end, "properties": _json(properties),
            }  # fmt: skip


def _json(properties: dict[str, Any]) -> str:
    try:
        odd = [name for name, value in properties.items() if isinstance(value, tuple)]
        if odd:  # points and durations are tuples, which JSON would make lists of
            raise TypeError(f"{odd[0]} is a {type(properties[odd[0]]).__name__}")
        return json.dumps(properties, sort_keys=True)
    except TypeError as error:
        raise CgragError(
            f"{properties.get('id') or properties} in Neo4j has a property that a snapshot cannot keep: {error}.",
            "Only text, numbers, booleans and lists of these can be kept; remove the property.",
        ) from error


def restore_snapshot(settings: Settings, path: Path, report: Reporter) -> Marker:
    """Make the database hold what a snapshot has of its corpus, and return its marker.

    Raises:
        CgragError: the file is no snapshot, Neo4j is not there, or has another corpus of this name.
    """
    manifest = read_manifest(path)
    if manifest is None or "marker" not in manifest:
        raise CgragError(f"{path} is no snapshot of a graph in Neo4j.", "Take one:  cgrag neo4j snapshot")
    if manifest["marker"]["version"] > VERSION:
        raise CgragError(f"{path} was taken by a newer version of cgrag.", "Restore it with that one.")
    kept = marker_of(manifest["marker"])
    with connected(settings) as driver, driver.session(database=settings.neo4j_database) as session:
        create_schema(session)
        with locked(driver, settings.neo4j_database, kept.corpus):
            there = read_marker(session, kept.corpus)
            if there and there.source != kept.source:
                raise CgragError(
                    f"Neo4j holds another graph named {kept.corpus}, of {there.source}.",
                    f"Remove it first:  cgrag neo4j remove {kept.corpus}",
                )
            restored = replace(kept, load=uuid.uuid4().hex)
            write_marker(session, replace(restored, state="loading", parts={}, generation=""))
            delete_nodes(session, restored.corpus, restored.load)
            progress = report("Restoring", "rows")
            file = pq.ParquetFile(path)
            done, total = 0, file.metadata.num_rows
            for batch in file.iter_batches(_BATCH):
                rows = [{**row, "properties": json.loads(row["properties"])} for row in batch.to_pylist()]
                session.execute_write(_write, restored, rows)
                done += len(rows)
                progress(done, total)
            session.execute_write(end_load, restored)
    return restored


def _write(transaction: Any, marker: Marker, rows: list[dict[str, Any]]) -> None:
    fence(transaction, marker.corpus, marker.load)
    nodes = [row for row in rows if not row["type"]]
    values(transaction, "UNWIND $rows AS row CREATE (n:$(row.labels)) SET n = row.properties", rows=nodes)
    for start, end in product(NODES, NODES):
        between = [row for row in rows if row["type"] and row["labels"] == [start, end]]
        query = (
            f"UNWIND $rows AS row MATCH (a:{start} {{corpus: $corpus, id: row.start}}) "
            f"MATCH (b:{end} {{corpus: $corpus, id: row.end}}) "
            "CREATE (a)-[r:$(row.type)]->(b) SET r = row.properties RETURN count(r)"
        )
        found = values(transaction, query, rows=between, corpus=marker.corpus)[0][0] if between else 0
        if found != len(between):
            raise CgragError(
                f"{len(between) - found:,} relationships of the snapshot have no ends.", "Take another one."
            )
