"""The one Definitions that workspace.yaml loads."""

import warnings

import dagster as dg

from cgrag.collecting import collect_seldom

collect_seldom()
warnings.filterwarnings("ignore", category=dg.BetaWarning)  # of backfill_policy, which we mean

from assets import automation, checks, communities, corpus, extraction, graph, retrieval  # noqa: E402
from eval_jobs import checks as eval_checks  # noqa: E402
from eval_jobs import extraction_report, retrieval_report  # noqa: E402
from resources.workspace import Workspace  # noqa: E402

defs = dg.Definitions(
    assets=[
        corpus.corpus_files,
        corpus.directory_contents,
        corpus.chunks,
        retrieval.bm25_index,
        retrieval.chunk_embeddings,
        graph.code_facts,
        graph.code_edges,
        graph.knowledge_graph,
        communities.communities,
        communities.community_summaries,
        graph.neo4j_graph,
        extraction.extractions,
        retrieval_report.question_sets,
        retrieval_report.retrieval_report,
        extraction_report.extraction_report,
    ],
    asset_checks=dg.load_asset_checks_from_modules([checks, eval_checks]),
    sensors=[automation.corpus_changes, automation.graph_follows],
    schedules=[automation.nightly_extraction],
    jobs=[retrieval_report.evaluation],
    resources={"workspace": Workspace()},
    executor=dg.in_process_executor,  # a process per step costs seconds, and a run has few steps
)
