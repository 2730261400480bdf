"""The corpus group: files, their partitions, and chunks."""

from collections import Counter

import dagster as dg
from dagster import DagsterEventType

from assets.checks import OF_CHUNKS, check_chunks
from assets.partitions import Built, PartitionedRun, PartitionEvents, directories, per_directory, sync_keys
from assets.preview import preview
from assets.retries import retried
from pipelines.changes import check_there
from pipelines.chunking.partition import VERSION as CHUNKS_VERSION
from pipelines.chunking.partition import PartitionResult, chunk_partition, partition_fingerprint
from pipelines.corpus.fetch import fetch
from pipelines.corpus.prune import prune
from pipelines.corpus.scan import VERSION as SCAN_VERSION
from pipelines.corpus.scan import load_plan, scan_corpus, store_scan
from pipelines.corpus.spec import held_spec
from pipelines.state import chunk_fingerprints, chunks_todo
from resources.runs import CHANGE_TAG
from resources.workspace import Workspace

directory_contents = dg.AssetSpec(
    "directory_contents",
    deps=["corpus_files"],
    partitions_def=directories,
    group_name="corpus",
    kinds={"file"},
    description="The files of one partition, as the last walk found them. Observed by corpus_files: "
    "a changed directory makes its own partitions stale, and no other.",
)


@dg.asset(group_name="corpus", kinds={"parquet"}, code_version=str(SCAN_VERSION))
def corpus_files(context: dg.AssetExecutionContext, workspace: Workspace) -> dg.MaterializeResult[None]:
    """Every file of the corpus, or why it is left out, and the plan of partitions."""
    settings, layout = workspace.settings(), workspace.layout()
    with retried(context):
        found = scan_corpus(held_spec(layout), settings, workspace.reporter(context.log))
    if CHANGE_TAG in context.run.tags:  # nobody's own doing
        check_there(layout, found, settings)
    plan = store_scan(found, settings)
    added, removed = sync_keys(context.instance, plan)
    prune(layout, plan)
    for key, files in plan.partitions.items():
        version = partition_fingerprint(files, settings.chunking)
        tags = {"dagster/data_version": version}
        context.log_event(dg.AssetObservation(directory_contents.key, partition=key, tags=tags))
    reasons = Counter(row["reason"] for row in found.skipped)
    return dg.MaterializeResult(
        data_version=dg.DataVersion(found.fingerprint),
        metadata={
            "dagster/row_count": len(found.files),
            "corpus": found.name,
            "note": found.note or "none",
            "skipped": len(found.skipped),
            "skipped_by_reason": dict(sorted(reasons.items())),
            "bytes": sum(row["bytes"] for row in found.files),
            "partitions": len(plan.partitions),
            "partitions_added": len(added),
            "partitions_removed": removed,
            "files_preview": preview(found.files[:5], ["path", "bytes", "format", "encoding"]),
            "skipped_preview": preview(found.skipped[:20], ["path", "reason", "detail"]),
        },
    )


@per_directory(
    group_name="corpus",
    deps=[directory_contents],
    code_version=str(CHUNKS_VERSION),
    check_specs=OF_CHUNKS,
)
def chunks(context: dg.AssetExecutionContext, workspace: Workspace) -> PartitionEvents:
    """Units and packed chunks of each directory, with their text; nothing downstream opens the source again."""
    settings, layout = workspace.settings(), workspace.layout()
    plan = load_plan(layout)
    root = fetch(held_spec(layout), settings).root
    todo = chunks_todo(layout, settings, plan, context.partition_keys)

    def make(key: str) -> Built:
        return _built(chunk_partition(root, key, plan.partitions[key], settings.chunking, layout))

    run = PartitionedRun(context, workspace, directory_contents.key, DagsterEventType.ASSET_OBSERVATION)
    run.build("Chunking", todo, make)
    yield from check_chunks(settings)
    prints = chunk_fingerprints(layout, set(context.partition_keys) - set(todo))
    yield from run.end({key: Built(version, version, {"reused": True}) for key, version in prints.items()})


def _built(result: PartitionResult) -> Built:
    metadata = {
        "dagster/row_count": result.chunks,
        "files": result.files,
        "units": result.units,
        "characters": result.characters,
        "problems": dict(result.problems),
        "chunks_preview": preview(result.preview, ["path", "start_line", "end_line", "trail", "text"]),
    }
    return Built(result.fingerprint, result.fingerprint, metadata)
