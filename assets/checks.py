"""Asset checks: what must hold of the stored tables."""

import dagster as dg

from pipelines.chunking.verify import unaccounted_files, wrong_offsets
from pipelines.code.verify import edges_of_no_file, files_without_facts
from pipelines.communities.stored import load_communities, not_nested
from pipelines.corpus.fetch import fetch
from pipelines.corpus.scan import load_plan
from pipelines.corpus.spec import held_spec
from pipelines.dense.encoder import usable
from pipelines.dense.index import stored_vectors
from pipelines.graph.store import graph_record, read_generation
from pipelines.layout import Layout
from pipelines.lexical.index import load_index
from pipelines.settings import Settings
from pipelines.state import counts
from pipelines.summaries.stored import stored_counts
from resources.workspace import Workspace

OF_CHUNKS = [
    dg.AssetCheckSpec(
        "every_file_is_chunked_or_explained",
        asset="chunks",
        description="Every file of corpus_files has chunks, or is blank, or says why it has none.",
    ),
    dg.AssetCheckSpec(
        "offsets_are_exact",
        asset="chunks",
        description="On a sample of 300 chunks, the source's text between the offsets is the chunk's text.",
    ),
]
"""Evaluated by `chunks` itself, whose runs return no output that a separate check could wait for."""


OF_FACTS = [
    dg.AssetCheckSpec(
        "every_parsed_file_has_facts",
        asset="code_facts",
        description="Every Python file that was parsed into chunks has facts.",
    )
]
"""Evaluated by `code_facts` itself, for the same reason."""


def check_facts(settings: Settings) -> list[dg.AssetCheckResult]:
    """Evaluate OF_FACTS on all that is stored."""
    layout = Layout(settings.home)
    lost = files_without_facts(layout, load_plan(layout))
    return [dg.AssetCheckResult(check_name=OF_FACTS[0].name, passed=not lost, metadata={"files": lost[:50]})]


def check_chunks(settings: Settings) -> list[dg.AssetCheckResult]:
    """Evaluate OF_CHUNKS on all that is stored."""
    layout = Layout(settings.home)
    plan = load_plan(layout)
    lost = unaccounted_files(layout, plan)
    checked, wrong = wrong_offsets(fetch(held_spec(layout), settings).root, layout, plan, sample=300)
    return [
        dg.AssetCheckResult(
            check_name=OF_CHUNKS[0].name, passed=not lost, metadata={"unaccounted": lost[:50], "count": len(lost)}
        ),
        dg.AssetCheckResult(
            check_name=OF_CHUNKS[1].name, passed=not wrong, metadata={"checked": checked, "wrong": wrong[:50]}
        ),
    ]


@dg.asset_check(asset="corpus_files")
def corpus_is_not_empty(workspace: Workspace) -> dg.AssetCheckResult:
    """The corpus has files; an empty one is legal, and worth a word."""
    plan = load_plan(workspace.layout())
    files = sum(len(rows) for rows in plan.partitions.values())
    return dg.AssetCheckResult(passed=files > 0, severity=dg.AssetCheckSeverity.WARN, metadata={"files": files})


@dg.asset_check(asset="code_edges")
def every_edge_is_between_files_of_the_corpus(workspace: Workspace) -> dg.AssetCheckResult:
    """Both ends of every place that makes an edge lie in a file of the corpus."""
    lost = edges_of_no_file(workspace.layout(), load_plan(workspace.layout()))
    return dg.AssetCheckResult(passed=not lost, metadata={"ends": lost[:50], "count": len(lost)})


@dg.asset_check(asset="knowledge_graph")
def store_holds_the_promoted_graph(workspace: Workspace) -> dg.AssetCheckResult:
    """graph.duckdb is of the generation that graph.json names (the invariants were checked before promotion)."""
    record = graph_record(workspace.layout())
    stored = read_generation(workspace.layout().graph_store)
    promoted = record["generation"] if record else ""
    return dg.AssetCheckResult(passed=stored == promoted, metadata={"stored": stored, "promoted": promoted})


@dg.asset_check(asset="knowledge_graph")
def edges_have_earned_their_place(workspace: Workspace) -> dg.AssetCheckResult:
    """The rules and the model whose edges the graph has are admitted, so that searches follow them.

    Co-occurrence is what they are compared with: it is told, and may be left out.
    """
    record = graph_record(workspace.layout()) or {}
    said = {
        origin: verdict
        for origin, verdict in record.get("admission", {}).items()
        if record["edges_by_origin"].get(origin)
    }
    left_out = [origin for origin, verdict in said.items() if not verdict["admitted"] and origin != "cooccurrence"]
    return dg.AssetCheckResult(
        passed=not left_out,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={origin: f"{verdict['recipe']}: {verdict['why']}" for origin, verdict in said.items()},
    )


@dg.asset_check(asset="communities")
def communities_are_nested(workspace: Workspace) -> dg.AssetCheckResult:
    """Every member of a community is a member of its parent, and no entity is in two of one level."""
    wrong = not_nested(load_communities(workspace.settings()))
    return dg.AssetCheckResult(passed=not wrong, metadata={"communities": wrong[:50], "count": len(wrong)})


@dg.asset_check(asset="community_summaries")
def no_summary_failed(workspace: Workspace) -> dg.AssetCheckResult:
    """Every community that the model was asked about has a summary; those it was not asked about wait."""
    found = stored_counts(workspace.settings())
    return dg.AssetCheckResult(passed=not found["failed"], severity=dg.AssetCheckSeverity.WARN, metadata=found)


@dg.asset_check(asset="neo4j_graph")
def neo4j_holds_the_graph(workspace: Workspace) -> dg.AssetCheckResult:
    """Neo4j says that it holds the promoted graph, and has as many nodes and relationships of each kind."""
    from pipelines.neo4j_store.state import neo4j_problem

    problem = neo4j_problem(workspace.settings(), graph_record(workspace.layout()))
    remedy = "Load it again:  cgrag run --select neo4j_graph"
    return dg.AssetCheckResult(passed=not problem, metadata={"problem": f"{problem}\n{remedy}" if problem else "none"})


@dg.asset_check(asset="bm25_index")
def index_has_every_chunk(workspace: Workspace) -> dg.AssetCheckResult:
    """The index holds as many chunks as the tables."""
    stored = counts(workspace.settings())["chunks"]
    indexed = len(load_index(workspace.settings()))
    return dg.AssetCheckResult(passed=stored == indexed, metadata={"stored": stored, "indexed": indexed})


@dg.asset_check(asset="chunk_embeddings")
def every_unit_has_a_vector(workspace: Workspace) -> dg.AssetCheckResult:
    """The matrix has a row for every unit, and not more than one in a hundred is unusable: zero, or no number."""
    vectors = stored_vectors(workspace.settings())
    unusable = int((~usable(vectors)).sum())
    units = counts(workspace.settings())["units"]
    return dg.AssetCheckResult(
        passed=len(vectors) == units and unusable * 100 <= units,
        metadata={"units": units, "vectors": len(vectors), "unusable": unusable},
    )
