"""graph.duckdb: the graph's tables in one file, written whole or not at all."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.tables import read_json

REMEDY = "Build it:  cgrag run --select knowledge_graph"


def write_store(path: Path, tables: Mapping[str, pa.Table], generation: str) -> None:
    """Write the tables and the generation as a DuckDB database that takes the place of `path` when it is whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    try:
        with duckdb.connect(str(temporary)) as database:
            for name, table in sorted(tables.items()):
                database.register("rows", table)
                database.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")  # names are ours
                database.unregister("rows")
            database.execute("CREATE TABLE generation AS SELECT ? AS id", [generation])
            database.execute("CHECKPOINT")
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
        temporary.with_name(f"{temporary.name}.wal").unlink(missing_ok=True)


def open_store(path: Path) -> duckdb.DuckDBPyConnection:
    """Return a connection that can only read.

    The file is attached to a database in memory: connected to by its name, it would be the last graph for as long as
    anybody in this process has that one open.

    Raises:
        CgragError: there is no graph, or the file is damaged.
    """
    if not path.exists():
        raise CgragError("The knowledge graph is not built.", REMEDY)
    database = duckdb.connect()
    try:
        name = str(path).replace("'", "''")
        database.execute(f"ATTACH '{name}' AS graph (READ_ONLY)")
        database.execute("USE graph")
        return database
    except duckdb.Error as error:
        database.close()
        raise CgragError(f"{path} is damaged: {error}", f"Remove it, and build it again:  {REMEDY}") from error


def read_generation(path: Path) -> str:
    """Return the generation of the graph in a file."""
    with open_store(path) as database:
        row = database.execute("SELECT id FROM generation").fetchone()
    return str(row[0]) if row else ""


def graph_record(layout: Layout) -> dict[str, Any] | None:
    """Return what is recorded of the current graph, None where there is none that is sound."""
    try:
        record = read_json(layout.graph_record, REMEDY)
    except CgragError:
        return None
    return record if isinstance(record, dict) and layout.graph_store.exists() else None
