"""The communities part of the graph group: what belongs together."""

import dagster as dg

from assets.graph import knowledge_graph
from assets.preview import preview
from pipelines.communities.build import VERSION
from pipelines.communities.plots import draw
from pipelines.communities.stage import make_communities
from pipelines.evaluate.report import data_uri
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
