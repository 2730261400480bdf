"""What runs by itself once switched on: what the corpus changes, what follows from it, and the night's extraction.

Each decides by what is stored, not by what it did before, so that it may fire twice, miss a night, or meet a run that
somebody has started: it asks for nothing while a run is under way, for nothing where nothing has changed, and for the
same thing once only, unless it has changed again.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import dagster as dg

from assets.partitions import directories, ranges
from pipelines.changes import CorpusChange, corpus_change
from pipelines.corpus.scan import load_plan
from pipelines.dense.build import dense_inputs
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.lexical.index import index_inputs
from pipelines.settings import Settings
from pipelines.state import asset_states, chunk_fingerprints, extracted
from pipelines.tables import digest
from resources.runs import CHANGE_TAG, backfill_under_way, runs_under_way, was_lost
from resources.workspace import Workspace

PER_DIRECTORY = ("chunks", "code_facts", "extractions")
INDEXES = ("bm25_index", "chunk_embeddings")
GRAPHS = ("code_edges", "knowledge_graph", "communities", "neo4j_graph")
"""Those of the whole corpus, in the order in which they are built from one another."""
Answer = dg.SensorResult | dg.SkipReason


@dg.sensor(
    target=dg.AssetSelection.assets("corpus_files", *PER_DIRECTORY),
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.STOPPED,
)
def corpus_changes(context: dg.SensorEvaluationContext, workspace: Workspace) -> Answer:
    """Chunks and facts of the directories whose files have changed, new and removed partitions; asks no model."""
    if busy := _under_way(context.instance):
        return dg.SkipReason(busy)
    try:
        change = corpus_change(workspace.settings())
    except CgragError as error:
        return dg.SkipReason(str(error))
    if not change:
        return dg.SkipReason(f"Nothing has changed. {change.note}".strip())
    asked = _Asked(context.cursor)
    if asked.fingerprint == change.fingerprint and not was_lost(context.instance, str(asked.number)):
        return dg.SkipReason(f"Asked for already, and not done: see the runs tagged cgrag/change={asked.number}.")
    asked = asked.next(change.fingerprint)
    present = context.instance.get_dynamic_partitions(str(directories.name))
    added = [key for key in (*change.changed, *change.waiting) if key not in present]
    removed = [key for key in change.removed if key in present]
    ordered = [*(key for key in present if key not in removed), *added]
    return dg.SensorResult(
        run_requests=_requests(asked, change, ordered, "none"),
        dynamic_partitions_requests=[
            *([directories.build_add_request(added)] if added else []),
            *([directories.build_delete_request(removed)] if removed else []),
        ],
        cursor=asked.cursor,
    )


@dg.sensor(
    target=dg.AssetSelection.assets(*INDEXES, *GRAPHS),
    minimum_interval_seconds=30,
    default_status=dg.DefaultSensorStatus.STOPPED,
)
def graph_follows(context: dg.SensorEvaluationContext, workspace: Workspace) -> Answer:
    """Indexes, edges, graph and Neo4j, once what they are built from has changed and no run is under way."""
    if busy := _under_way(context.instance):
        return dg.SkipReason(busy)
    settings = workspace.settings()
    states = asset_states(settings, names=(*INDEXES, *GRAPHS))
    stale = [state for state in states if state.state in ("stale", "missing") and not state.on_request]
    if not stale or not Layout(settings.home).plan.exists():
        return dg.SkipReason("All is up to date.")
    asked, print_of = _Asked(context.cursor), digest([[state.name, state.detail] for state in stale], _stored(settings))
    if asked.fingerprint == print_of and not was_lost(context.instance, f"graph-{asked.number}"):
        return dg.SkipReason(f"Asked for already, and not done: see its run, tagged cgrag/change=graph-{asked.number}.")
    asked = asked.next(print_of)
    waiting = [state.name for state in stale]
    first = min((GRAPHS.index(name) for name in waiting if name in GRAPHS), default=len(GRAPHS))
    names = [name for name in waiting if name in INDEXES] + list(GRAPHS[first:])
    request = dg.RunRequest(
        run_key=f"{asked.fingerprint}:{asked.number}",
        asset_selection=[dg.AssetKey(name) for name in names],
        tags={CHANGE_TAG: f"graph-{asked.number}"},
    )
    return dg.SensorResult(run_requests=[request], cursor=asked.cursor)


@dg.schedule(
    cron_schedule="0 2 * * *",
    target=dg.AssetSelection.assets("corpus_files", *PER_DIRECTORY),
    default_status=dg.DefaultScheduleStatus.STOPPED,
)
def nightly_extraction(
    context: dg.ScheduleEvaluationContext, workspace: Workspace
) -> list[dg.RunRequest] | dg.SkipReason:
    """Every night: what has changed is chunked, and the model asked about every chunk without an answer."""
    if busy := _under_way(context.instance, but_of_sensors=True):  # dagster.yaml puts this one's behind theirs
        return dg.SkipReason(busy)
    settings, name = workspace.settings(), str(directories.name)
    try:
        change = corpus_change(settings)
    except CgragError as error:
        return dg.SkipReason(str(error))
    keys = {*change.changed, *change.waiting, *change.unanswered}
    if not keys and not change:
        return dg.SkipReason("Nothing has changed, and every chunk has its answer.")
    added = keys - set(context.instance.get_dynamic_partitions(name))
    if added:
        context.instance.add_dynamic_partitions(name, sorted(added))
    asked = _Asked(None).next(context.scheduled_execution_time.isoformat())
    ordered = context.instance.get_dynamic_partitions(name)
    return _requests(asked, change, ordered, "pending")


class _Asked:
    """What was asked for last: the fingerprint of the change, and its number, a part of the run keys."""

    def __init__(self, cursor: str | None) -> None:
        stored = json.loads(cursor) if cursor else {}
        self.number = int(stored.get("number", 0))
        self.fingerprint = str(stored.get("fingerprint", ""))

    def next(self, fingerprint: str) -> "_Asked":
        """The next one. The same change again, after another, has another number: it is another run."""
        following = _Asked(None)
        following.number, following.fingerprint = self.number + 1, fingerprint
        return following

    @property
    def cursor(self) -> str:
        return json.dumps({"number": self.number, "fingerprint": self.fingerprint})


def _requests(asked: _Asked, change: CorpusChange, ordered: Sequence[str], ask: str) -> list[dg.RunRequest]:
    """A run for the walk of the corpus, and for each asset and range of directories one of its own.

    dagster.yaml lets one run at a time have the tag, and priorities say which: each finds what those before it made.
    """
    derived = {*change.changed, *change.waiting}
    steps: list[tuple[str, Iterable[str]]] = [
        ("chunks", change.changed),
        ("code_facts", derived),
        ("extractions", derived | set(change.unanswered if ask == "pending" else ())),
    ]
    requests = [_request(asked, "corpus_files", 9)] if change.files or change.removed else []
    for priority, (name, keys) in zip((8, 7, 6), steps, strict=True):
        config = {"ops": {name: {"config": {"ask": ask}}}} if name == "extractions" else {}
        for first, last in ranges(ordered, keys):
            tags = {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last}
            requests.append(_request(asked, name, priority, tags, config))
    return requests


def _request(
    asked: _Asked, name: str, priority: int, tags: Mapping[str, str] | None = None, config: Any = None
) -> dg.RunRequest:
    range = "...".join((tags or {}).values())
    return dg.RunRequest(
        run_key=f"{asked.fingerprint}:{asked.number}:{name}:{range}",
        asset_selection=[dg.AssetKey(name)],
        tags={CHANGE_TAG: str(asked.number), "dagster/priority": str(priority), **(tags or {})},
        run_config=config or {},
    )


def _under_way(instance: dg.DagsterInstance, but_of_sensors: bool = False) -> str:
    """Which run or backfill is under way, in words; "" where none is."""
    for run in runs_under_way(instance):
        if not (but_of_sensors and CHANGE_TAG in run.tags):
            return f"Run {run.run_id[:8]} is under way; looking again after it."
    backfill = backfill_under_way(instance)
    return f"Backfill {backfill} is under way; looking again after it." if backfill else ""


def _stored(settings: Settings) -> str:
    """What the assets of the whole corpus would be built from."""
    layout = Layout(settings.home)
    chunked = chunk_fingerprints(layout, load_plan(layout))
    inputs = [index_inputs(settings, chunked), dense_inputs(settings, chunked), settings.code.model_dump()]
    return digest(inputs, dict(extracted(settings, chunked).fingerprints))
