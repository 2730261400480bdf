"""The communities part of the graph group: what belongs together, and what a model says about it."""

from typing import Literal

import dagster as dg

from assets.graph import knowledge_graph
from assets.preview import preview
from pipelines.communities.build import VERSION
from pipelines.communities.plots import draw
from pipelines.communities.stage import make_communities
from pipelines.evaluate.report import data_uri
from pipelines.summaries.stage import make_summaries
from pipelines.summaries.stored import VERSION as SUMMARIES_VERSION
from pipelines.tables import counted
from resources.workspace import Workspace


@dg.asset(group_name="graph", kinds={"parquet"}, deps=[knowledge_graph], code_version=str(VERSION))
def communities(workspace: Workspace) -> dg.MaterializeResult[None]:
    """The graph divided by hierarchical Leiden: levels, parents, members, names; the same rows for the same graph."""
    result = make_communities(workspace.settings())
    rows = result.built.communities.to_pylist()
    levels = counted(result.built.communities, "level")
    return dg.MaterializeResult(
        data_version=dg.DataVersion(result.generation),
        metadata={
            "dagster/row_count": len(rows),
            "communities_by_level": {str(level): count for level, count in levels.items()},
            "modularity_by_level": {str(level): value for level, value in enumerate(result.built.modularity)},
            "largest": max((row["size"] for row in rows), default=0),
            "units": result.built.units,
            "alone": result.built.alone,
            "plot": dg.MetadataValue.md(f"![communities]({data_uri(draw(rows))})"),
            "communities_preview": preview(rows[:12], ["size", "name", "words", "central"]),
        },
    )


class Summarising(dg.Config):
    """What a run asks the model; what was answered once is never asked again."""

    ask: Literal["pending", "none"] = "pending"
    """pending: about every community without a summary; none: the table is brought up to what the ledger has."""


@dg.asset(group_name="graph", kinds={"parquet"}, deps=[communities], code_version=str(SUMMARIES_VERSION), pool="llm")
def community_summaries(
    context: dg.AssetExecutionContext, config: Summarising, workspace: Workspace
) -> dg.MaterializeResult[None]:
    """What a model says of the largest communities, citing file and line; out of the ledger, what it lacks is asked."""
    report = workspace.reporter(context.log)
    result = make_summaries(workspace.settings(), ask=config.ask == "pending", report=report)
    for note in result.notes:
        context.log.warning(note)
    told = [row for row in result.rows if row["status"] == "ok"]
    return dg.MaterializeResult(
        data_version=dg.DataVersion(result.fingerprint),
        metadata={
            "dagster/row_count": len(result.rows),
            "statuses": result.statuses,
            "asked": result.asked,
            "triples": sum(row["triples"] for row in result.rows),
            "sentences_dropped": sum(row["dropped"] for row in told),
            "citations_moved": sum(row["moved"] for row in told),
            "prompt_tokens": result.prompt_tokens,
            "completion_tokens": result.completion_tokens,
            "summaries_preview": preview(told[:12], ["title", "text", "cited"]),
        },
    )
