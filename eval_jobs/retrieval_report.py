"""The eval group: question sets, the retrieval report, and the job that makes both."""

import dagster as dg

from assets.graph import knowledge_graph
from assets.preview import preview
from assets.retrieval import bm25_index, chunk_embeddings
from pipelines.corpus.scan import load_plan
from pipelines.evaluate.report import data_uri
from pipelines.evaluate.sets import VERSION, make_report, make_sets
from pipelines.evaluate.synthetic import VERSION as SYNTHETIC_VERSION
from pipelines.state import chunk_fingerprints
from pipelines.tables import digest
from resources.workspace import Workspace


@dg.asset(group_name="eval", kinds={"json"}, deps=[bm25_index], code_version=str(SYNTHETIC_VERSION))
def question_sets(workspace: Workspace) -> dg.MaterializeResult[None]:
    """The synthetic questions that the corpus's own docs give, and the file that CGRAG_QUESTIONS names."""
    layout = workspace.layout()
    sets = make_sets(workspace.settings(), chunk_fingerprints(layout, load_plan(layout)))
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": sum(stored.questions for stored in sets),
            "sets_preview": preview(map(vars, sets), ["name", "questions", "splits"]),
            "folder": dg.MetadataValue.path(layout.questions),
        }
    )


@dg.asset(
    group_name="eval",
    kinds={"html"},
    deps=[question_sets, bm25_index, chunk_embeddings, knowledge_graph],
    code_version=str(VERSION),
)
def retrieval_report(context: dg.AssetExecutionContext, workspace: Workspace) -> dg.MaterializeResult[None]:
    """Recall of every mode and arm that is built, with intervals: report.html, .md and .json under reports/."""
    made = make_report(workspace.settings(), workspace.reporter(context.log)("Asking", "questions"))
    sets = made.document["sets"]
    rows = [{"set": asked["set"], **row} for asked in sets for row in asked["rows"] if row["split"] == "all"]
    columns = ["set", "mode", "arm", "k", "recall", "low", "high", "hit", "minus_matched"]
    return dg.MaterializeResult(
        data_version=dg.DataVersion(digest(made.document)),
        metadata={
            "dagster/row_count": sum(asked["questions"] for asked in sets),
            "plots": dg.MetadataValue.md(
                "\n\n".join(f"{name}\n\n![recall]({data_uri(png)})" for name, png in made.pictures.items())
            ),
            "table": preview(rows, columns),
            "misses": {asked["set"]: len(asked["misses"]) for asked in sets},
            "findings": {asked["set"]: len(asked["findings"]) for asked in sets},
            "report": dg.MetadataValue.path(made.folder / "report.html"),
        },
    )


evaluation = dg.define_asset_job("evaluation", selection=[question_sets, retrieval_report])
