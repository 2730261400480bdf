"""The graph group: facts by parsing, the linker's edges, and the knowledge graph."""

from collections.abc import Iterator

import dagster as dg
from dagster import DagsterEventType

from assets.checks import OF_FACTS, check_facts
from assets.corpus import chunks
from assets.extraction import extractions
from assets.partitions import Built, PartitionedRun, PartitionEvents, per_directory
from assets.preview import preview
from assets.retries import retried
from pipelines.code.facts import VERSION as FACTS_VERSION
from pipelines.code.link import VERSION as LINKER_VERSION
from pipelines.code.stage import build_edges, build_facts, current_facts, facts_fingerprint, read_unresolved
from pipelines.corpus.scan import load_plan
from pipelines.graph.build import VERSION as GRAPH_VERSION
from pipelines.graph.stage import make_graph
from pipelines.neo4j_store.schema import VERSION as NEO4J_VERSION
from pipelines.state import NO_NEO4J, chunk_fingerprints, extracted, facts_todo
from resources.workspace import Workspace


@per_directory(
    group_name="graph",
    deps=[chunks],
    code_version=str(FACTS_VERSION),
    check_specs=OF_FACTS,
)
def code_facts(context: dg.AssetExecutionContext, workspace: Workspace) -> PartitionEvents:
    """File-local facts of each directory's Python files, by parsing, and the links of its pages."""
    layout = workspace.layout()
    chunked = chunk_fingerprints(layout, context.partition_keys)
    todo = facts_todo(layout, chunked)

    def make(key: str) -> Built:
        result = build_facts(layout, key, chunked[key])
        metadata = {
            "dagster/row_count": result.symbols,
            "files": result.files,
            "references": result.references,
            "pages": result.pages,
            "links": result.links,
            "symbols_preview": preview(result.preview, ["symbol", "kind", "line"]),
        }
        return Built(result.fingerprint, chunked[key], metadata)

    run = PartitionedRun(context, workspace, chunks.key, DagsterEventType.ASSET_MATERIALIZATION)
    run.build("Parsing", todo, make)
    yield from check_facts(workspace.settings())
    unchanged = {key: version for key, version in chunked.items() if key not in todo}
    yield from run.end({k: Built(facts_fingerprint(v), v, {"reused": True}) for k, v in unchanged.items()})


@dg.asset(group_name="graph", kinds={"parquet"}, deps=[code_facts], code_version=str(LINKER_VERSION))
def code_edges(context: dg.AssetExecutionContext, workspace: Workspace) -> dg.MaterializeResult[None]:
    """The linker: which symbol each reference means, across files; what it cannot tell is counted by reason."""
    layout = workspace.layout()
    facts = current_facts(layout, chunk_fingerprints(layout, load_plan(layout)))
    progress = workspace.reporter(context.log)("Linking", "partitions")
    result = build_edges(layout, workspace.settings().code, facts, progress)
    unresolved = read_unresolved(layout)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(result.fingerprint),
        metadata={
            "dagster/row_count": sum(result.sites.values()),
            "places_by_relation": result.sites,
            "places_by_tier": result.tiers,
            "unresolved": result.unresolved,
            "places_preview": preview(result.preview, ["source", "relation", "target", "tier", "line"]),
            "unresolved_preview": preview(
                unresolved.slice(0, 8).to_pylist(), ["path", "line", "kind", "reason", "name"]
            ),
        },
    )


@dg.asset(group_name="graph", kinds={"duckdb"}, deps=[code_edges, extractions], code_version=str(GRAPH_VERSION))
def knowledge_graph(workspace: Workspace) -> dg.MaterializeResult[None]:
    """Entities, edges and mentions, as Parquet and graph.duckdb; promoted when the invariants hold."""
    layout, settings = workspace.layout(), workspace.settings()
    chunked = chunk_fingerprints(layout, load_plan(layout))
    result = make_graph(layout, chunked, extracted(settings, chunked), settings)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(result.generation),
        metadata={
            "dagster/row_count": sum(result.edges.values()),
            "entities": result.entities,
            "edges": result.edges,
            "edges_by_origin": result.edges_by_origin,
            "override": settings.graph_override or "none",
            "merged_as_reviewed": result.merged,
            "reviewed_but_absent": result.absent,
            "admission": preview(
                [verdict.model_dump(mode="json") for verdict in result.admission.values()],
                ["origin", "recipe", "admitted", "why", "override"],
            ),
            "mentions": result.mentions,
            "edges_preview": preview(result.preview, ["source", "relation", "target", "origin", "binding", "weight"]),
        },
    )


@dg.asset(
    group_name="graph",
    kinds={"neo4j"},
    deps=[knowledge_graph],
    code_version=str(NEO4J_VERSION),
    output_required=False,
)
def neo4j_graph(context: dg.AssetExecutionContext, workspace: Workspace) -> Iterator[dg.MaterializeResult[None]]:
    """The same graph in Neo4j, by the difference to what is there; passed over where no Neo4j is configured."""
    settings = workspace.settings()
    if settings.neo4j_uri is None:
        context.log.warning(f"Skipped: {NO_NEO4J}.")
        return
    from pipelines.neo4j_store.load import load_graph

    layout = workspace.layout()
    chunked = chunk_fingerprints(layout, load_plan(layout))
    with retried(context):
        result = load_graph(settings, chunked, workspace.reporter(context.log), workspace.say(context.log))
    yield dg.MaterializeResult(
        data_version=dg.DataVersion(result.generation),
        metadata={
            "dagster/row_count": sum(result.rows.values()),
            "rows": result.rows,
            "written": result.written,
            "deleted": result.deleted,
            "changes_of_the_server": result.changes,
            "seconds": result.seconds,
            "rows_per_second": result.changed / result.seconds if result.changed else 0.0,
            "snapshot": result.snapshot or "none",
        },
    )
