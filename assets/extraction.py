"""The extraction part of the graph group: what a model says about the chunks of each directory."""

from collections.abc import Iterator
from typing import Any, Literal

import dagster as dg
from dagster import DagsterEventType
from pydantic import Field

from assets.corpus import chunks
from assets.partitions import Built, PartitionedRun, PartitionEvents, per_directory
from assets.preview import preview
from pipelines.corpus.scan import load_plan
from pipelines.extract.partition import VERSION, PartitionResult
from pipelines.extract.session import Session
from pipelines.settings import ExtractSettings
from pipelines.state import chunk_fingerprints, failures
from resources.workspace import Workspace

OF_EXTRACTIONS = [
    dg.AssetCheckSpec(
        "few_extractions_failed",
        asset="extractions",
        description="Of the chunks that were asked about, no larger share failed than CGRAG_EXTRACT__FAILED_SHARE.",
    ),
    dg.AssetCheckSpec(
        "names_are_grounded",
        asset="extractions",
        description="Nine of ten names in the answers stand in their chunk; those that do not were dropped.",
    ),
    dg.AssetCheckSpec(
        "no_answer_is_cut_off",
        asset="extractions",
        description="No chunk is without a result because its answer was longer than CGRAG_EXTRACT__MAX_TOKENS.",
    ),
    dg.AssetCheckSpec(
        "answers_say_something",
        asset="extractions",
        description="Of the edges answered, one in ten at most is a repeat, a loop, a walk down the list or a recital.",
    ),
]
"""Evaluated by `extractions` itself, whose runs return no output that a separate check could wait for."""
_GROUNDED_SHARE = 0.9
_DEGENERATE_SHARE = 0.1


class Asking(dg.Config):
    """What a run asks the model about; a chunk that has a result is never asked about again."""

    ask: Literal["pending", "listed", "none"] = "pending"
    """pending: every chunk of its partitions without a result; listed: of these, `chunks`; none: read the ledger."""
    chunks: list[str] = Field(default_factory=list)


@per_directory(
    group_name="graph",
    deps=[chunks],
    code_version=str(VERSION),
    check_specs=OF_EXTRACTIONS,
    pool="llm",
)
def extractions(context: dg.AssetExecutionContext, config: Asking, workspace: Workspace) -> PartitionEvents:
    """Entities and relations that a model finds in each chunk, out of the ledger; what it lacks is asked first."""
    settings, layout = workspace.settings(), workspace.layout()
    plan = load_plan(layout)
    reporter = workspace.reporter(context.log)
    run = PartitionedRun(context, workspace, chunks.key, DagsterEventType.ASSET_MATERIALIZATION)
    prints = chunk_fingerprints(layout, plan)
    failed = failures(layout, "extractions", plan)
    with Session(settings, plan, context.partition_keys, config.ask, config.chunks, failed, reporter) as session:
        run.build("Extracting", session.todo, lambda key: _built(*session.extract(key), prints.get(key, "")))
        yield from _check(session.finish(), settings.extract)
        for note in session.notes:
            context.log.warning(note)
    unchanged = set(session.chunked) - set(session.todo) - set(failures(layout, "extractions", plan))
    yield from run.end({key: Built(prints[key], prints[key], {"reused": True}) for key in sorted(unchanged)})


def _built(result: PartitionResult, reused: int, chunks: str) -> Built:
    ok = len(result.having("ok"))
    metadata = {
        "dagster/row_count": len(result.rows),
        "ok": ok,
        "failed": result.problems,
        "pending": len(result.having("pending")),
        "reused": reused,
        "entities": sum(len(row["entities"]) for row in result.rows),
        "relations": sum(len(row["relations"]) for row in result.rows),
        "ungrounded": sum(row["ungrounded"] for row in result.rows),
        "refused_relations": sum(row["refused"] for row in result.rows),
        "prompt_tokens": result.prompt_tokens,
        "completion_tokens": result.completion_tokens,
        "seconds_per_chunk": result.seconds / ok if ok else 0.0,
        "extractions_preview": preview(
            (row for row in result.rows if row["entities"]), ["path", "status", "entities", "relations"]
        ),
    }
    return Built(result.fingerprint, chunks, metadata)


def _check(found: dict[str, Any], settings: ExtractSettings) -> Iterator[dg.AssetCheckResult]:
    """Evaluate OF_EXTRACTIONS on all that is stored."""
    asked = found["ok"] + found["failed"]
    share = found["failed"] / asked if asked else 0.0
    outcomes = [
        (share <= settings.failed_share, {"asked": asked, "failed": found["failed"], "failed_share": share}),
        (
            found["grounded_share"] >= _GROUNDED_SHARE,
            {name: found[name] for name in ("grounded_share", "last_resort_share")},
        ),
        (found["truncated"] == 0, {"truncated": found["truncated"]}),
        (
            sum(found["degenerate"].values()) <= _DEGENERATE_SHARE * found["answered_edges"],
            {"edges": found["answered_edges"], "degenerate": found["degenerate"]},
        ),
    ]
    for spec, (passed, metadata) in zip(OF_EXTRACTIONS, outcomes, strict=True):
        severity = dg.AssetCheckSeverity.ERROR if spec is OF_EXTRACTIONS[0] else dg.AssetCheckSeverity.WARN
        yield dg.AssetCheckResult(check_name=spec.name, passed=passed, severity=severity, metadata=metadata)
