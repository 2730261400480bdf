"""The corpus group: files, their partitions, and chunks."""

from collections import Counter

import dagster as dg
from dagster import DagsterEventType

from assets.partitions import PartitionLog, directories, sync_keys
from assets.preview import preview
from pipelines.chunking.partition import VERSION as CHUNKS_VERSION
from pipelines.chunking.partition import chunk_partition, partition_fingerprint, stored_fingerprint
from pipelines.corpus.fetch import fetch
from pipelines.corpus.prune import prune
from pipelines.corpus.scan import VERSION as SCAN_VERSION
from pipelines.corpus.scan import load_plan, scan_corpus, store_scan
from pipelines.corpus.spec import held_spec
from pipelines.state import chunks_todo, clear_failure, record_failure
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
    found = scan_corpus(
        held_spec(layout),
        settings,
        workspace.progress(context.log, "Fetching the corpus", "bytes"),
        workspace.progress(context.log, "Reading files", "files"),
    )
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


@dg.asset(
    group_name="corpus",
    kinds={"parquet"},
    deps=[directory_contents],
    partitions_def=directories,
    backfill_policy=dg.BackfillPolicy.single_run(),
    code_version=str(CHUNKS_VERSION),
    output_required=False,
)
def chunks(context: dg.AssetExecutionContext, workspace: Workspace):  # type: ignore[no-untyped-def]
    """Units and packed chunks of each directory, with their text; nothing downstream opens the source again."""
    settings, layout = workspace.settings(), workspace.layout()
    plan = load_plan(layout)
    source = fetch(held_spec(layout), settings)
    progress = workspace.progress(context.log, "Chunking", "partitions")
    log = PartitionLog(context, directory_contents.key, DagsterEventType.ASSET_OBSERVATION)
    todo = chunks_todo(layout, settings, plan, context.partition_keys)
    failed: dict[str, str] = {}
    for done, key in enumerate(todo, 1):
        try:
            result = chunk_partition(source.root, key, plan.partitions[key], settings.chunking, layout)
        except Exception as error:  # any other partition may still succeed; this one says why it did not
            failed[key] = f"{type(error).__name__}: {error}"
            record_failure(layout, "chunks", key, failed[key])
        else:
            clear_failure(layout, "chunks", key)
            metadata = {
                "dagster/row_count": result.chunks,
                "files": result.files,
                "units": result.units,
                "characters": result.characters,
                "problems": dict(result.problems),
                "chunks_preview": preview(result.preview, ["path", "start_line", "end_line", "trail", "text"]),
            }
            version = result.fingerprint
            log.materialized(key, version=version, input_version=version, metadata=metadata)
        progress(done, len(todo))
    context.log.info(
        f"{len(todo) - len(failed)} partitions chunked, {len(context.partition_keys) - len(todo)} unchanged"
    )
    if failed:
        for key in context.partition_keys:  # else the UI would show these as failed too
            if key not in todo and (stored := stored_fingerprint(layout, key)):
                log.materialized(key, version=stored, input_version=stored, metadata={"reused": True})
        raise dg.Failure(
            f"{len(failed)} of {len(todo)} partitions failed; redo them: cgrag resume --failed",
            metadata={"failed": failed},
            allow_retries=False,
        )
    if context.run.asset_selection != {context.asset_key}:
        yield dg.Output(None)  # what is downstream in the same run waits for it
