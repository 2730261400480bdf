"""The communities stage: the current graph divided, stored beside it."""

from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.chunking.python import collector_off
from pipelines.communities.build import VERSION, Built, build_communities
from pipelines.communities.tables import TABLES
from pipelines.errors import CgragError
from pipelines.graph.admission import admitted
from pipelines.graph.store import graph_record, open_current
from pipelines.graph.tables import generation
from pipelines.layout import Layout
from pipelines.locks import locked
from pipelines.settings import Settings
from pipelines.tables import read_manifest, read_record, read_table, write_arrow, write_json

REMEDY = "Build them:  cgrag run --select communities"


@dataclass(frozen=True)
class CommunitiesResult:
    """What was built."""

    generation: str
    """A hash of the rows."""
    built: Built


def communities_inputs(settings: Settings, graph: dict[str, Any] | None) -> dict[str, Any]:
    """What communities are built from: the graph (its record), which origins count, and the settings."""
    return {
        "graph": graph["generation"] if graph else "",
        "origins": list(admitted(graph)),
        "settings": settings.communities.model_dump(),
        "version": VERSION,
    }


def make_communities(settings: Settings) -> CommunitiesResult:
    """Divide the current graph. The manifest communities.json is written last: until then readers refuse the tables.

    Raises:
        CgragError: there is no graph, or it was cut off while it was being written.
    """
    layout = Layout(settings.home)
    layout.communities.mkdir(parents=True, exist_ok=True)
    with locked(layout.communities / "lock"), collector_off():
        with open_current(layout) as graph:
            ((current,),) = graph.execute("SELECT id FROM generation").fetchall()
            record = (graph_record(layout) or {}) | {"generation": current}  # it may be another's by now
            entities = graph.sql("SELECT id, type, name, path FROM entities").to_arrow_table().to_pylist()
            edges = graph.sql("SELECT source, relation, target, origin, weight FROM edges").to_arrow_table().to_pylist()
        built = build_communities(entities, edges, admitted(record), settings.communities)
        tables = built.tables()
        rows = generation(tables)
        layout.communities_record.unlink(missing_ok=True)
        for name, table in tables.items():
            write_arrow(layout.communities / f"{name}.parquet", table, {"generation": rows})
        told = {"generation": rows, "modularity": built.modularity}
        write_json(layout.communities_record, communities_inputs(settings, record) | told)
    return CommunitiesResult(rows, built)


def current_tables(settings: Settings) -> tuple[dict[str, Any], dict[str, pa.Table]]:
    """Return the record and the tables of the communities, which are of the current graph and of these settings.

    Raises:
        CgragError: they are not, are not built, or were cut off while they were being written.
    """
    layout = Layout(settings.home)
    record = read_record(layout.communities_record)
    if record is None:
        raise CgragError("The communities are not built.", REMEDY)
    wanted = communities_inputs(settings, graph_record(layout))
    changed = [name for name, value in wanted.items() if record.get(name) != value]
    if changed:
        told = {"graph": "of another graph than the current one", "settings": "of other CGRAG_COMMUNITIES__… settings"}
        raise CgragError(
            f"The communities are {told.get(changed[0], 'not what would be built now')}.",
            "Bring them up to date:  cgrag run --select communities",
        )
    tables = {}
    for name, schema in TABLES.items():
        file = layout.communities / f"{name}.parquet"
        tables[name] = read_table(file, schema, REMEDY)
        if (read_manifest(file) or {}).get("generation") != record["generation"]:
            raise CgragError(f"{file} is of other communities than {layout.communities_record}.", REMEDY)
    return record, tables
