"""The knowledge_graph stage: one graph from all rows, promoted when its invariants hold."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.chunking.python import collector_off
from pipelines.code.stage import current_facts, edges_inputs, read_facts, read_sites
from pipelines.code.tables import sites_of
from pipelines.errors import CgragError
from pipelines.extract.partition import Stored, stored_rows
from pipelines.extract.recipe import active_recipe
from pipelines.extract.taxonomy import Taxonomy
from pipelines.graph.admission import Verdict, admission_inputs, verdicts
from pipelines.graph.build import VERSION, Graph, build_graph
from pipelines.graph.invariants import check_extraction, check_graph
from pipelines.graph.reviewed import Merges, current_merges
from pipelines.graph.store import write_store
from pipelines.graph.tables import generation
from pipelines.layout import Layout
from pipelines.locks import locked
from pipelines.rules import VERSION as RULES_VERSION
from pipelines.settings import Settings
from pipelines.tables import (
    CHUNKS,
    DOCUMENTS,
    OUTLINE,
    agreed_fingerprint,
    counted,
    digest,
    read_tables,
    write_arrow,
    write_json,
)


@dataclass(frozen=True)
class GraphResult:
    """What was built; edges by relation, entities by type."""

    generation: str
    entities: dict[str, int]
    edges: dict[str, int]
    edges_by_origin: dict[str, int]
    mentions: int
    admission: dict[str, Verdict]
    merged: dict[str, str]
    """{id of a name: id of the entity that it was merged into}, as reviewed."""
    absent: list[str]
    """Ids that the reviewed file speaks of, and that the corpus has not."""
    preview: list[dict[str, Any]]


def graph_inputs(
    edges: str, chunks: Mapping[str, str], extractions: Mapping[str, str], settings: Settings
) -> dict[str, Any]:
    """What a graph is built from: the fingerprints of the edges, and of each partition's chunks and extractions.

    Beside these the rules' taxonomy, what its manifest says of the admission of origins, and which names are one.

    Raises:
        CgragError: the active recipe, or the file of reviewed names, cannot be read.
    """
    recipe = active_recipe(settings)
    return {
        "edges": edges,
        "chunks": digest(dict(chunks)),
        "extractions": digest(dict(extractions)),
        "taxonomy": digest(recipe.taxonomy.model_dump(mode="json")),
        "admitted": admission_inputs(verdicts(settings, recipe.id)),
        "reviewed": current_merges(settings).fingerprint,
        "version": (VERSION, RULES_VERSION),
    }


def edges_fingerprint(layout: Layout) -> str | None:
    """The fingerprint of the stored edges, None where there are none that are whole."""
    return agreed_fingerprint(layout.graph / f"{name}.parquet" for name in ("sites", "links", "unresolved"))


def make_graph(layout: Layout, chunks: Mapping[str, str], extractions: Stored, settings: Settings) -> GraphResult:
    """Build the graph of the stored rows; `chunks` are the fingerprints of the partitions.

    The manifest `graph/graph.json` is written last: until then readers have the old generation.

    Raises:
        CgragError: the edges are not built.
        Refused: an invariant does not hold; the old graph stays.
    """
    layout.graph.mkdir(parents=True, exist_ok=True)
    with locked(layout.graph / "lock"):  # two runs at once would mix their files
        return _make(layout, chunks, extractions, settings)


def _make(layout: Layout, chunks: Mapping[str, str], extractions: Stored, settings: Settings) -> GraphResult:
    edges = edges_fingerprint(layout)
    if edges is None:
        raise CgragError("The code edges are not built.", "Build them:  cgrag run")
    if edges != digest(edges_inputs(settings.code, current_facts(layout, chunks))):
        raise CgragError("The code edges are not of the stored chunks.", "Bring them up to date:  cgrag run")
    with collector_off():
        check_extraction(extractions, settings.extract.failed_share, settings.graph_override)
        recipe, merges = active_recipe(settings), current_merges(settings)
        graph = _checked(layout, chunks, sorted(extractions.fingerprints), recipe.taxonomy, merges)
        tables = graph.tables()
        current = generation(tables)
    inputs = graph_inputs(edges, chunks, extractions.fingerprints, settings) | {"reviewed": merges.fingerprint}
    absent = sorted({*merges.members()} - graph.merged.keys() - {*graph.entities["id"].to_pylist()})
    admission = verdicts(settings, recipe.id)
    for name, table in tables.items():
        write_arrow(layout.graph / f"{name}.parquet", table, {"generation": current})
    write_store(layout.graph_store, tables, current)
    types = counted(graph.entities, "type")
    relations, origins = counted(graph.edges, "relation"), counted(graph.edges, "origin")
    record = {
        **inputs,
        "generation": current,
        "symbols": _symbols(graph),
        "entities_by_type": types,
        "edges_by_relation": relations,
        "edges_by_origin": origins,
        "mentions": graph.mentions.num_rows,
        "admission": {origin: verdict.model_dump(mode="json") for origin, verdict in admission.items()},
        "merged": graph.merged,
        "absent": absent,
        "override": settings.graph_override,
    }
    write_json(layout.graph_record, record)
    preview = graph.edges.slice(0, 8).to_pylist()
    mentions = graph.mentions.num_rows
    return GraphResult(current, types, relations, origins, mentions, admission, graph.merged, absent, preview)


def _symbols(graph: Graph) -> int:
    """How many entities the parser found."""
    columns = zip(graph.entities["type"].to_pylist(), graph.entities["path"].to_pylist(), strict=True)
    return sum(kind != "Concept" and path != "" for kind, path in columns)


def _checked(
    layout: Layout, chunked: Mapping[str, str], extracted: Sequence[str], taxonomy: Taxonomy, merges: Merges
) -> Graph:
    """The graph of the stored rows of these partitions, all of whose invariants hold."""
    keys = sorted(chunked)
    facts = read_facts(layout, sorted(current_facts(layout, chunked)))
    documents, outline, chunks = (
        read_tables((layout.partition(key, name) for key in keys), schema)
        for name, schema in (("documents", DOCUMENTS), ("outline", OUTLINE), ("chunks", CHUNKS))
    )
    chunk_rows = chunks.select(["chunk_id", "path", "start", "end", "start_line", "text"]).to_pylist()
    said = [row for key in extracted for row in stored_rows(layout, key)]
    sites = {origin: sites_of(table) for origin, table in read_sites(layout).items()}
    graph = build_graph(facts, documents.to_pylist(), outline.to_pylist(), chunk_rows, sites, said, taxonomy, merges)
    check_graph(graph, chunk_rows, sum(len(file.symbols) for file in facts))
    return graph
