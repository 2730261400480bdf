"""The retrieval group: indexes over all chunks."""

import dagster as dg

from assets.corpus import chunks
from pipelines.corpus.scan import load_plan
from pipelines.lexical.index import VERSION, build_index
from pipelines.state import chunk_fingerprints
from resources.workspace import Workspace


@dg.asset(group_name="retrieval", kinds={"numpy"}, deps=[chunks], code_version=str(VERSION))
def bm25_index(context: dg.AssetExecutionContext, workspace: Workspace) -> dg.MaterializeResult[None]:
    """BM25F scores of every term in every chunk and file, in bm25s's format, memory-mapped by readers."""
    layout = workspace.layout()
    fingerprints = chunk_fingerprints(layout, load_plan(layout))
    built = build_index(workspace.settings(), fingerprints, workspace.reporter(context.log)("Indexing", "chunks"))
    return dg.MaterializeResult(
        data_version=dg.DataVersion(built.generation),
        metadata={
            "dagster/row_count": built.chunks,
            "files": built.files,
            "terms": built.terms,
            "bytes": built.bytes,
            "partitions": len(fingerprints),
            "terms_preview": dg.MetadataValue.md(" · ".join(f"{term} ({count:,})" for term, count in built.frequent)),
        },
    )
