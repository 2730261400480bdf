"""graph.duckdb: the graph's tables in one file, written whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.tables import atomic, read_record

REMEDY = "Build it:  cgrag run --select knowledge_graph"


def write_store(path: Path, tables: Mapping[str, pa.Table], generation: str) -> None:
    """Write the tables and the generation as a DuckDB database that takes the place of `path` when it is whole."""
    with atomic(path) as temporary:
        temporary.unlink()  # DuckDB makes its file itself
        try:
            with duckdb.connect(str(temporary)) as database:
                for name, table in sorted(tables.items()):
                    database.register("rows", table)
                    database.execute(f"CREATE TABLE {name} AS SELECT * FROM rows")  # names are ours
                    database.unregister("rows")
                database.execute("CREATE TABLE generation AS SELECT ? AS id", [generation])
                database.execute("CHECKPOINT")
        finally:
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
    return read_record(layout.graph_record) if layout.graph_store.exists() else None


def open_current(layout: Layout) -> duckdb.DuckDBPyConnection:
    """Return a connection to the current graph that can only read.

    Raises:
        CgragError: there is none, or it is damaged.
    """
    record = graph_record(layout)
    if record is None:
        raise CgragError(f"{layout.home} has no knowledge graph yet.", "Build it:  cgrag run")
    database = open_store(layout.graph_store)
    if database.execute("SELECT id FROM generation").fetchall() != [(record["generation"],)]:
        database.close()
        if graph_record(layout) != record:
            return open_current(layout)  # it was replaced while it was being opened
        raise CgragError("The knowledge graph was cut off while it was being written.", "Build it again:  cgrag run")
    return database
