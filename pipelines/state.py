"""What a home holds, what is stale, missing or failed, by the artifacts' own manifests (Dagster is not asked)."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from pipelines.chunking.partition import partition_fingerprint, stored_fingerprint
from pipelines.code.stage import current_facts, edges_inputs, facts_fingerprint, stored_facts
from pipelines.communities.stage import communities_inputs, current_tables
from pipelines.corpus.scan import Plan, Scan, is_scanned, load_plan
from pipelines.dense.build import dense_inputs
from pipelines.dense.encoder import model_of
from pipelines.dense.index import stored_vectors
from pipelines.dense.place import place_of, stored_records
from pipelines.errors import CgragError
from pipelines.evaluate.extraction_stored import report_inputs as extraction_report_inputs
from pipelines.evaluate.extraction_stored import stored_extraction_report
from pipelines.evaluate.sets import report_inputs, set_inputs, stored_report, stored_sets
from pipelines.extract.ledger import Ledger
from pipelines.extract.overview import overview, totals
from pipelines.extract.partition import Stored, stored_extractions
from pipelines.extract.recipe import active_recipe
from pipelines.graph.stage import edges_fingerprint, graph_inputs
from pipelines.graph.store import graph_record, read_generation
from pipelines.layout import Layout
from pipelines.lexical.index import index_inputs, load_index
from pipelines.settings import Settings
from pipelines.summaries.recipe import summary_recipe
from pipelines.summaries.stored import stored_answers, summaries_inputs
from pipelines.summaries.tables import summaries_file
from pipelines.tables import digest, read_json, read_manifest, read_record, write_json

Freshness = Literal["fresh", "stale", "missing", "failed", "skipped"]
PARTITIONED_ASSETS = ("chunks", "code_facts", "extractions")
"""Those whose partitions may fail one by one."""
EVERY = (
    *("corpus_files", "chunks", "bm25_index", "chunk_embeddings", "code_facts", "code_edges", "extractions"),
    *("knowledge_graph", "communities", "community_summaries", "neo4j_graph"),
    *("question_sets", "retrieval_report", "extraction_report"),
)
"""All assets, in the order in which they are built."""
ON_REQUEST = ("question_sets", "retrieval_report", "extraction_report")
"""Built only when selected by name, or from the UI."""
OPTIONAL = ("chunk_embeddings", "community_summaries")
"""Built when selected by name; from then on every run brings them up to date."""
ASSETS = tuple(name for name in EVERY if name not in (*ON_REQUEST, *OPTIONAL))
NO_NEO4J = "no Neo4j is configured (NEO4J_URI)"


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
        """Whether it is built only when it is named, as it is now."""
        return self.name in ON_REQUEST or (self.name in OPTIONAL and self.state == "missing")


def record_failure(layout: Layout, asset: str, key: str, reason: str, missing: Sequence[str] = ()) -> None:
    """Remember why a partition failed, and which chunks it lacks, until it succeeds or is no longer planned."""
    write_json(layout.failure(asset, key), {"partition": key, "reason": reason, "missing": list(missing)})


def clear_failure(layout: Layout, asset: str, key: str) -> None:
    """Forget the failure of a partition, if there was one."""
    layout.failure(asset, key).unlink(missing_ok=True)


def failures(layout: Layout, asset: str, planned: Plan) -> dict[str, str]:
    """Return {key: reason} of the planned partitions that failed last."""
    return {record["partition"]: record["reason"] for record in _failure_records(layout, asset, planned)}


def missing_chunks(layout: Layout, asset: str, planned: Plan) -> dict[str, list[str]]:
    """Return {key: ids of the chunks that it lacks} of the planned partitions that failed last."""
    return {record["partition"]: record.get("missing", []) for record in _failure_records(layout, asset, planned)}


def _failure_records(layout: Layout, asset: str, planned: Plan) -> Iterator[dict[str, Any]]:
    for path in sorted((layout.failures / asset).glob("*.json")):
        record = read_json(path, f"Remove {path}.")
        if record and record["partition"] in planned.partitions:
            yield record


class _Home:
    """What a home holds, each part read once however many assets are asked about; its corpus has been walked."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.layout = Layout(settings.home)
        self.plan = load_plan(self.layout)

    @cached_property
    def chunked(self) -> dict[str, str]:
        return chunk_fingerprints(self.layout, self.plan)

    @cached_property
    def edges_wanted(self) -> str:
        """The fingerprint that edges of the stored chunks have."""
        facts = {key: facts_fingerprint(chunks) for key, chunks in self.chunked.items()}
        return digest(edges_inputs(self.settings.code, facts))


def _opened(settings: Settings) -> _Home | None:
    """What the home holds; None before its corpus has been walked."""
    layout = Layout(settings.home)
    return _Home(settings) if read_manifest(layout.files) is not None and layout.plan.exists() else None


def asset_states(settings: Settings, found: Scan | None = None, names: Iterable[str] = EVERY) -> list[AssetState]:
    """Return the states of assets, of all in the order they are built unless told.

    With `found`, a scan made just now, corpus_files is compared with it; without, its tables are taken as they are.
    """
    home = _opened(settings)

    def state(name: str) -> AssetState:
        if name == "neo4j_graph" and settings.neo4j_uri is None:
            return AssetState(name, "skipped", NO_NEO4J)
        if home is None:
            return AssetState(name, "missing", "never built")
        return _corpus_state(home, found) if name == "corpus_files" else _STATES[name](home)

    return [state(name) for name in names]


def _corpus_state(home: _Home, found: Scan | None) -> AssetState:
    if found is not None and not is_scanned(home.layout, found, home.settings):
        return AssetState("corpus_files", "stale", "the corpus or a setting of the walk has changed")
    return AssetState("corpus_files", "fresh")


def chunks_todo(layout: Layout, settings: Settings, plan: Plan, keys: Iterable[str]) -> list[str]:
    """Return those of `keys` that are planned and whose stored chunks are not what the plan's files would give."""
    planned = [key for key in keys if key in plan.partitions]
    return _unlike_plan(settings, plan, planned, chunk_fingerprints(layout, planned))


def _unlike_plan(settings: Settings, plan: Plan, keys: Iterable[str], chunked: Mapping[str, str]) -> list[str]:
    wanted = ((key, partition_fingerprint(plan.partitions[key], settings.chunking)) for key in keys)
    return [key for key, fingerprint in wanted if chunked.get(key) != fingerprint]


def _chunks_state(home: _Home) -> AssetState:
    failed = failures(home.layout, "chunks", home.plan)
    unlike = _unlike_plan(home.settings, home.plan, home.plan, home.chunked)
    missing = [key for key in unlike if key not in home.chunked]
    stale = [key for key in unlike if key in home.chunked]
    return _of_partitions("chunks", home.plan, failed, missing, stale, sorted({*unlike, *failed}))


def _of_partitions(
    name: str, plan: Plan, failed: dict[str, str], missing: Sequence[str], stale: Sequence[str], todo: list[str]
) -> AssetState:
    """The state of a partitioned asset from its partitions'."""
    kinds = ((failed, "failed"), (missing, "missing"), (stale, "stale"))
    told = ", ".join(f"{len(keys)} {word}" for keys, word in kinds if keys)
    state: Freshness = "fresh"
    if told:
        state = "failed" if failed else "stale" if stale or len(missing) < len(plan.partitions) else "missing"
    return AssetState(name, state, f"{told} of {len(plan.partitions)} partitions" if told else "", todo, failed)


def _index_state(home: _Home) -> AssetState:
    manifest = read_record(home.layout.bm25)
    if manifest is None:
        return AssetState("bm25_index", "missing", "damaged" if home.layout.bm25.exists() else "never built")
    state = _compared("bm25_index", manifest, index_inputs(home.settings, home.chunked))
    if state.state == "fresh":
        try:
            load_index(home.settings)
        except CgragError:  # a damaged index is a missing one: the next run builds it again
            return AssetState("bm25_index", "missing", "damaged")
    return state


def _dense_state(home: _Home) -> AssetState:
    """That of the settings' model: another model's vectors are kept, and are another matter."""
    name, place = "chunk_embeddings", place_of(home.layout, model_of(home.settings))
    if not place.manifest.exists():
        return AssetState(name, "missing", "never built with this model" if any(stored_records(home.layout)) else "")
    try:
        stored_vectors(home.settings)
    except CgragError:
        return AssetState(name, "stale", "damaged")
    return _compared(name, place.record() or {}, dense_inputs(home.settings, home.chunked))


def facts_todo(layout: Layout, chunks: Mapping[str, str]) -> list[str]:
    """Return the keys whose stored facts are not those of their chunks, {key: fingerprint of the chunks}."""
    return sorted(chunks.keys() - current_facts(layout, chunks))


def _facts_state(home: _Home) -> AssetState:
    failed = failures(home.layout, "code_facts", home.plan)
    waiting = sorted({*facts_todo(home.layout, home.chunked), *failed})
    state: Freshness = "fresh"
    if waiting:
        stored = any(stored_facts(home.layout, key) for key in home.plan)
        state = "failed" if failed else "stale" if stored else "missing"
    detail = f"{len(waiting)} of {len(home.plan.partitions)} partitions" if waiting else ""
    return AssetState("code_facts", state, detail, waiting, failed)


def _edges_state(home: _Home) -> AssetState:
    return _single("code_edges", edges_fingerprint(home.layout), home.edges_wanted)


def _graph_state(home: _Home) -> AssetState:
    record = graph_record(home.layout)
    try:
        said = extracted(home.settings, home.chunked)
        inputs = graph_inputs(home.edges_wanted, home.chunked, said.fingerprints, home.settings)
    except CgragError as error:
        return AssetState("knowledge_graph", "stale", error.problem)
    if record and record["generation"] != read_generation(home.layout.graph_store):
        return AssetState("knowledge_graph", "stale", "cut off while it was being written")
    stored = digest({name: record.get(name) for name in inputs}) if record else None
    return _single("knowledge_graph", stored, digest(inputs))


def _communities_state(home: _Home) -> AssetState:
    name, record = "communities", read_record(home.layout.communities_record)
    if record is None:
        return AssetState(name, "missing", "never built")
    state = _compared(name, record, communities_inputs(home.settings, graph_record(home.layout)))
    if state.state == "fresh":
        try:
            current_tables(home.settings)
        except CgragError:
            return AssetState(name, "stale", "damaged")
    return state


def _summaries_state(home: _Home) -> AssetState:
    """Stale is a table that lacks what the ledger has; summaries that no model was asked for make none stale."""
    name, file = "community_summaries", summaries_file(home.layout)
    manifest, record = read_manifest(file), read_record(home.layout.communities_record) or {}
    if manifest is None:
        return AssetState(name, "missing", "damaged" if file.exists() else "never built")
    state = _compared(name, manifest, summaries_inputs(home.settings, record.get("generation", "")))
    if state.state == "fresh" and manifest["answers"] != stored_answers(home.settings, summary_recipe(home.settings)):
        return AssetState(name, "stale", "the ledger has other answers")
    return state


def _neo4j_state(home: _Home) -> AssetState:
    """What the database says."""
    from pipelines.neo4j_store.state import NEVER, neo4j_problem

    problem = neo4j_problem(home.settings, graph_record(home.layout))
    return AssetState("neo4j_graph", "missing" if problem == NEVER else "stale" if problem else "fresh", problem)


def _single(name: str, stored: str | None, wanted: str) -> AssetState:
    if stored is None:
        return AssetState(name, "missing", "never built")
    return AssetState(name, "fresh") if stored == wanted else AssetState(name, "stale", "what it is built from changed")


def _extractions_state(home: _Home) -> AssetState:
    """Stale is a table that lacks what the ledger has; chunks that no model was asked about make none stale."""
    settings, layout, plan = home.settings, home.layout, home.plan
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
    return _of_partitions("extractions", plan, failed, missing, stale, todo)


def _sets_state(home: _Home) -> AssetState:
    stored = stored_sets(home.layout)
    if stored is None or not all((home.layout.questions / name).exists() for name in stored["sets"]):
        return AssetState("question_sets", "missing", "never built" if stored is None else "a file is gone")
    try:
        return _compared("question_sets", stored, set_inputs(home.settings, home.chunked))
    except CgragError as error:
        return AssetState("question_sets", "stale", error.problem)


def _report_state(home: _Home) -> AssetState:
    stored = stored_report(home.layout)
    if stored is None or not (home.layout.reports / "report.html").exists():
        return AssetState("retrieval_report", "missing", "never built")
    return _compared("retrieval_report", stored["inputs"], report_inputs(home.settings))


def _extraction_report_state(home: _Home) -> AssetState:
    stored = stored_extraction_report(home.layout)
    if stored is None:
        return AssetState("extraction_report", "missing", "never built")
    try:
        wanted = extraction_report_inputs(home.settings, home.chunked)
    except CgragError as error:
        return AssetState("extraction_report", "stale", error.problem)
    return _compared("extraction_report", stored.get("inputs", {}), wanted)


def _compared(name: str, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> AssetState:
    """Whether what an asset was built from is what it would be built from now."""
    changed = [part for part, value in wanted.items() if stored.get(part) != value]
    return AssetState(name, "stale", f"{', '.join(changed)} changed") if changed else AssetState(name, "fresh")


_STATES: dict[str, Callable[[_Home], AssetState]] = {
    "chunks": _chunks_state,
    "bm25_index": _index_state,
    "chunk_embeddings": _dense_state,
    "code_facts": _facts_state,
    "code_edges": _edges_state,
    "extractions": _extractions_state,
    "knowledge_graph": _graph_state,
    "communities": _communities_state,
    "community_summaries": _summaries_state,
    "neo4j_graph": _neo4j_state,
    "question_sets": _sets_state,
    "retrieval_report": _report_state,
    "extraction_report": _extraction_report_state,
}


def chunk_fingerprints(layout: Layout, keys: Iterable[str]) -> dict[str, str]:
    """Return {key: fingerprint} of those of the keys whose chunks are stored."""
    stored = ((key, stored_fingerprint(layout, key)) for key in keys)
    return {key: fingerprint for key, fingerprint in stored if fingerprint}


def counts(settings: Settings) -> dict[str, Any]:
    """Return how many files, skipped entries, partitions, units and chunks are stored."""
    import pyarrow.parquet as pq

    home = _opened(settings)
    if home is None:
        return {"files": 0, "skipped": 0, "partitions": 0, "units": 0, "chunks": 0}

    def stored(table: str) -> int:
        return sum(pq.read_metadata(home.layout.partition(key, table)).num_rows for key in home.chunked)

    return {
        "files": sum(len(files) for files in home.plan.partitions.values()),
        "skipped": pq.read_metadata(home.layout.skipped).num_rows,
        "partitions": len(home.plan.partitions),
        "units": stored("units"),
        "chunks": stored("chunks"),
    }


def extracted(settings: Settings, chunks: Mapping[str, str]) -> Stored:
    """Return what is stored of the active recipe's answers; `chunks` are the fingerprints of the partitions' chunks.

    Raises:
        CgragError: there is no such recipe.
    """
    return stored_extractions(Layout(settings.home), active_recipe(settings), settings.extract, chunks)


def graph_counts(settings: Settings) -> dict[str, Any]:
    """Return how many symbols, entities, edges (by relation) and mentions the current graph has."""
    record = graph_record(Layout(settings.home))
    if record is None:
        empty = {"symbols": 0, "entities": 0, "edges": {}, "edges_by_origin": {}, "mentions": 0, "admission": []}
        return empty | {"merged": {}, "absent": []}
    return {
        "symbols": record.get("symbols", 0),
        "entities": sum(record["entities_by_type"].values()),
        "edges": record["edges_by_relation"],
        "edges_by_origin": record.get("edges_by_origin", {}),
        "mentions": record["mentions"],
        "admission": [
            {name: verdict[name] for name in ("origin", "recipe", "admitted", "why", "override")}
            for verdict in record.get("admission", {}).values()
        ],
        "merged": record.get("merged", {}),
        "absent": record.get("absent", []),
    }


def extraction_counts(settings: Settings) -> dict[str, Any]:
    """Return how many chunks a model was to be asked about, with what came of them; zeros where nothing is built."""
    home = _opened(settings)
    layout, plan = Layout(settings.home), home.plan if home else Plan({})
    recipe = active_recipe(settings)
    with Ledger(layout, recipe.id, settings.extract) as ledger:
        return totals(overview(layout, plan, settings, recipe, ledger), ledger)
