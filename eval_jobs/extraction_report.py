"""The eval group's report on extraction: what rules and the recipe of the settings are worth on annotated chunks."""

import dagster as dg

from assets.extraction import extractions
from assets.graph import knowledge_graph
from pipelines.evaluate.extraction_report import document, evaluate_extraction, store_report
from pipelines.evaluate.extraction_stored import VERSION
from pipelines.evaluate.extraction_table import CODE, DOCS, as_markdown, cells
from pipelines.tables import digest
from resources.workspace import Workspace


@dg.asset(group_name="eval", kinds={"json"}, deps=[knowledge_graph, extractions], code_version=str(VERSION))
def extraction_report(context: dg.AssetExecutionContext, workspace: Workspace) -> dg.MaterializeResult[None]:
    """Precision and recall beside rules, co-occurrence and chance, of what the ledger has: it asks no model.

    `cgrag evaluate-extraction` asks the model about the annotated chunks first.
    """
    settings = workspace.settings()
    found = evaluate_extraction(settings, ask=False, report=workspace.reporter(context.log))
    file = store_report(settings, found)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(digest(document(found))),
        metadata={
            "dagster/row_count": found.docs[0].chunks + found.code[0].chunks,
            "docs": dg.MetadataValue.md(as_markdown([cells(scores, DOCS) for scores in found.docs], DOCS)),
            "code": dg.MetadataValue.md(as_markdown([cells(scores, CODE) for scores in found.code], CODE)),
            "admission": {measured.recipe: measured.verdict.why for measured in found.recipes},
            "degenerate": {measured.recipe: measured.degenerate for measured in found.recipes},
            "without_answer": {measured.recipe: measured.problems for measured in found.recipes},
            "annotators_agree": found.agreement,
            "report": dg.MetadataValue.path(file),
        },
    )
