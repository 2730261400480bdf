"""The retrieval group: indexes over all chunks."""

import dagster as dg

from assets.corpus import chunks
from assets.retries import retried
from pipelines.corpus.scan import load_plan
from pipelines.dense.build import build_vectors
from pipelines.dense.encoder import load_encoder
from pipelines.dense.place import VERSION as DENSE_VERSION
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


@dg.asset(group_name="retrieval", kinds={"pytorch"}, deps=[chunks], code_version=str(DENSE_VERSION))
def chunk_embeddings(context: dg.AssetExecutionContext, workspace: Workspace) -> dg.MaterializeResult[None]:
    """A sentence embedding of every unit, memory-mapped by readers; only texts without one are embedded."""
    layout, settings = workspace.layout(), workspace.settings()
    fingerprints = chunk_fingerprints(layout, load_plan(layout))
    report, tell = workspace.reporter(context.log), workspace.say(context.log)
    with retried(context):
        built = build_vectors(settings, fingerprints, lambda: load_encoder(settings, report, tell), report, tell)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(built.generation),
        metadata={
            "dagster/row_count": built.units,
            "chunks": built.chunks,
            "embedded": built.embedded,
            "unusable": built.unusable,
            "model": settings.embed.model,
            "dimension": built.dimension,
            "seconds": built.seconds,
            "units_per_second": built.embedded / built.seconds if built.seconds else 0.0,
            "bytes": built.bytes,
        },
    )
