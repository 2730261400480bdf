"""What a home holds, what is stale, missing or failed, by the artifacts' own manifests (Dagster is not asked)."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pipelines.chunking.partition import partition_fingerprint, stored_fingerprint
from pipelines.code.stage import current_facts, edges_inputs, facts_fingerprint, stored_facts
from pipelines.corpus.scan import Plan, Scan, is_scanned, load_plan
from pipelines.errors import CgragError
from pipelines.evaluate.sets import report_inputs, set_inputs, stored_report, stored_sets
from pipelines.extract.ledger import Ledger
from pipelines.extract.overview import overview, totals
from pipelines.extract.recipe import active_recipe
from pipelines.graph.stage import edges_fingerprint, graph_inputs
from pipelines.graph.store import graph_record
from pipelines.layout import Layout
from pipelines.lexical.index import index_inputs, load_index
from pipelines.settings import Settings
from pipelines.tables import digest, read_json, read_manifest, write_json

Freshness = Literal["fresh", "stale", "missing", "failed"]
PARTITIONED_ASSETS = ("chunks", "code_facts", "extractions")
ASSETS = ("corpus_files", "chunks", "bm25_index", "code_facts", "code_edges", "knowledge_graph", "extractions")
ON_REQUEST = ("question_sets", "retrieval_report")
"""Built only when selected by name, or from the UI."""


@dataclass(frozen=True)
class AssetState:
    """State of one asset; `todo` are the partition keys to redo, of a partitioned asset."""

    name: str
    state: Freshness
    detail: str = ""
    todo: list[str] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)
    """Partition key to the reason of its last failure."""

    @property
    def on_request(self) -> bool:
        return self.name in ON_REQUEST


def record_failure(layout: Layout, asset: str, key: str, reason: str, missing: Sequence[str] = ()) -> None:
    """Remember why a partition failed, and which chunks it lacks, until it succeeds or is no longer planned."""
    write_json(layout.failure(asset, key), {"partition": key, "reason": reason, "missing": list(missing)})


def clear_failure(layout: Layout, asset: str, key: str) -> None:
    """Forget the failure of a partition, if there was one."""
    layout.failure(asset, key).unlink(missing_ok=True)


def failures(layout: Layout, asset: str, planned: Plan) -> dict[str, str]:
    """Return {key: reason} of the planned partitions that failed last."""
    found = {}
    for path in sorted((layout.failures / asset).glob("*.json")):
        record = read_json(path, f"Remove {path}.")
        if record and record["partition"] in planned.partitions:
            found[record["partition"]] = record["reason"]
    return found


def missing_chunks(layout: Layout, asset: str, planned: Plan) -> dict[str, list[str]]:
    """Return {key: ids of the chunks that it lacks} of the planned partitions that failed last."""
    records = (read_json(path, f"Remove {path}.") for path in sorted((layout.failures / asset).glob("*.json")))
    return {
        record["partition"]: record.get("missing", [])
        for record in records
        if record and record["partition"] in planned.partitions
    }


def asset_states(settings: Settings, found: Scan | None = None) -> list[AssetState]:
    """Return the state of every asset, in the order they are built.

    With `found`, a scan made just now, corpus_files is compared with it; without, its tables are taken as they are.
    """
    layout = Layout(settings.home)
    if read_manifest(layout.files) is None or not layout.plan.exists():
        return [AssetState(name, "missing", "never built") for name in (*ASSETS, *ON_REQUEST)]
    plan = load_plan(layout)
    corpus = AssetState("corpus_files", "fresh")
    if found is not None and not is_scanned(layout, found, settings):
        corpus = AssetState("corpus_files", "stale", "the corpus or a setting of the walk has changed")
    chunks = _chunks_state(layout, settings, plan)
    index = _index_state(layout, settings, plan)
    graph = _graph_states(layout, settings, plan)
    extractions = _extractions_state(layout, settings, plan)
    return [
        corpus,
        chunks,
        index,
        *graph,
        extractions,
        _sets_state(layout, settings, plan),
        _report_state(layout, settings),
    ]


def facts_todo(layout: Layout, chunks: Mapping[str, str]) -> list[str]:
    """Return the keys whose stored facts are not those of their chunks, {key: fingerprint of the chunks}."""
    return sorted(chunks.keys() - current_facts(layout, chunks))


def _graph_states(layout: Layout, settings: Settings, plan: Plan) -> list[AssetState]:
    chunked = chunk_fingerprints(layout, plan)
    todo = facts_todo(layout, chunked)
    failed = failures(layout, "code_facts", plan)
    facts = any(stored_facts(layout, key) for key in plan)
    waiting = sorted({*todo, *failed})
    state: Freshness = "failed" if failed else "fresh" if not waiting else "stale" if facts else "missing"
    detail = f"{len(waiting)} of {len(plan.partitions)} partitions" if waiting else ""
    wanted = edges_inputs(settings.code, {key: facts_fingerprint(print) for key, print in chunked.items()})
    linked = edges_fingerprint(layout)
    edges = _single("code_edges", linked, digest(wanted))
    record = graph_record(layout)
    inputs = graph_inputs(digest(wanted), chunked)
    current = digest({name: record.get(name) for name in inputs}) if record else None
    return [
        AssetState("code_facts", state, detail, waiting, failed),
        edges,
        _single("knowledge_graph", current, digest(inputs)),
    ]


def _single(name: str, stored: str | None, wanted: str) -> AssetState:
    if stored is None:
        return AssetState(name, "missing", "never built")
    return AssetState(name, "fresh") if stored == wanted else AssetState(name, "stale", "what it is built from changed")


def chunks_todo(layout: Layout, settings: Settings, plan: Plan, keys: Iterable[str]) -> list[str]:
    """Return those of `keys` that are planned and whose stored chunks are not what the plan's files would give."""
    return [
        key
        for key in keys
        if key in plan.partitions
        and stored_fingerprint(layout, key) != partition_fingerprint(plan.partitions[key], settings.chunking)
    ]


def _chunks_state(layout: Layout, settings: Settings, plan: Plan) -> AssetState:
    failed = failures(layout, "chunks", plan)
    missing, stale = [], []
    for key, files in plan.partitions.items():
        stored = stored_fingerprint(layout, key)
        if stored is None:
            missing.append(key)
        elif stored != partition_fingerprint(files, settings.chunking):
            stale.append(key)
    todo = sorted({*missing, *stale, *failed})
    state: Freshness = "fresh"
    if todo:
        state = "failed" if failed else "stale" if stale or len(missing) < len(plan.partitions) else "missing"
    detail = ", ".join(
        f"{len(keys)} {word}" for keys, word in ((failed, "failed"), (missing, "missing"), (stale, "stale")) if keys
    )
    return AssetState("chunks", state, f"{detail} of {len(plan.partitions)} partitions" if detail else "", todo, failed)


def _index_state(layout: Layout, settings: Settings, plan: Plan) -> AssetState:
    try:
        manifest = read_json(layout.bm25, "")
        if manifest is None:
            return AssetState("bm25_index", "missing", "never built")
        wanted = index_inputs(settings, chunk_fingerprints(layout, plan))
        changed = [name for name, value in wanted.items() if manifest.get(name) != value]
        if changed:
            return AssetState("bm25_index", "stale", f"{', '.join(changed)} changed")
        load_index(settings)
    except CgragError:  # a damaged index is a missing one: the next run builds it again
        return AssetState("bm25_index", "missing", "damaged")
    return AssetState("bm25_index", "fresh")


def _extractions_state(layout: Layout, settings: Settings, plan: Plan) -> AssetState:
    """Stale is a table that lacks what the ledger has; chunks that no model was asked about make none stale."""
    failed = failures(layout, "extractions", plan)
    try:
        recipe = active_recipe(settings)
        with Ledger(layout, recipe.id, settings.extract) as ledger:
            found = overview(layout, plan, settings, recipe, ledger, exact=False)
    except CgragError as error:
        return AssetState("extractions", "stale", error.problem, failed=failed)
    missing = sorted(set(plan.partitions) - {key for key, partition in found.items() if partition.stored})
    stale = [key for key, partition in found.items() if partition.stored and not partition.current]
    todo = [key for key, partition in found.items() if not partition.current]
    state: Freshness = "fresh"
    if failed or missing or stale:
        state = "failed" if failed else "stale" if stale or len(missing) < len(plan.partitions) else "missing"
    detail = ", ".join(
        f"{len(keys)} {word}" for keys, word in ((failed, "failed"), (missing, "missing"), (stale, "stale")) if keys
    )
    return AssetState(
        "extractions", state, f"{detail} of {len(plan.partitions)} partitions" if detail else "", todo, failed
    )


def _sets_state(layout: Layout, settings: Settings, plan: Plan) -> AssetState:
    stored = stored_sets(layout)
    if stored is None or not all((layout.questions / name).exists() for name in stored["sets"]):
        return AssetState("question_sets", "missing", "never built" if stored is None else "a file is gone")
    try:
        wanted = set_inputs(settings, chunk_fingerprints(layout, plan))
    except CgragError as error:
        return AssetState("question_sets", "stale", error.problem)
    changed = [name for name, value in wanted.items() if stored.get(name) != value]
    return AssetState("question_sets", "stale" if changed else "fresh", f"{', '.join(changed)} changed" * bool(changed))


def _report_state(layout: Layout, settings: Settings) -> AssetState:
    stored = stored_report(layout)
    if stored is None or not (layout.reports / "report.html").exists():
        return AssetState("retrieval_report", "missing", "never built")
    try:
        wanted = report_inputs(settings)
    except CgragError as error:
        return AssetState("retrieval_report", "stale", error.problem)
    changed = [name for name, value in wanted.items() if stored["inputs"].get(name) != value]
    state: Freshness = "stale" if changed else "fresh"
    return AssetState("retrieval_report", state, f"{', '.join(changed)} changed" * bool(changed))


def chunk_fingerprints(layout: Layout, keys: Iterable[str]) -> dict[str, str]:
    """Return {key: fingerprint} of those of the keys whose chunks are stored."""
    stored = ((key, stored_fingerprint(layout, key)) for key in keys)
    return {key: fingerprint for key, fingerprint in stored if fingerprint}


def counts(settings: Settings) -> dict[str, Any]:
    """Return how many files, skipped entries, partitions and chunks are stored."""
    import pyarrow.parquet as pq

    layout = Layout(settings.home)
    if read_manifest(layout.files) is None or not layout.plan.exists():
        return {"files": 0, "skipped": 0, "partitions": 0, "chunks": 0}
    plan = load_plan(layout)
    stored = [layout.partition(key, "chunks") for key in chunk_fingerprints(layout, plan)]
    return {
        "files": sum(len(files) for files in plan.partitions.values()),
        "skipped": pq.read_metadata(layout.skipped).num_rows,
        "partitions": len(plan.partitions),
        "chunks": sum(pq.read_metadata(path).num_rows for path in stored),
    }


def graph_counts(settings: Settings) -> dict[str, Any]:
    """Return how many symbols, entities, edges (by relation) and mentions the current graph has."""
    record = graph_record(Layout(settings.home))
    if record is None:
        return {"symbols": 0, "entities": 0, "edges": {}, "mentions": 0}
    entities = record["entities_by_type"]
    return {
        "symbols": sum(number for kind, number in entities.items() if kind != "Concept"),
        "entities": sum(entities.values()),
        "edges": record["edges_by_relation"],
        "mentions": record["mentions"],
    }


def extraction_counts(settings: Settings) -> dict[str, Any]:
    """Return how many chunks a model was to be asked about, with what came of them; zeros where nothing is built."""
    layout = Layout(settings.home)
    built = read_manifest(layout.files) is not None and layout.plan.exists()
    plan = load_plan(layout) if built else Plan({})
    recipe = active_recipe(settings)
    with Ledger(layout, recipe.id, settings.extract) as ledger:
        return totals(overview(layout, plan, settings, recipe, ledger), ledger)
