"""Bringing the graph in Neo4j up to the home's: one loader at a time, only what differs, and never half a graph unseen.

A load takes the corpus's lock, marks the graph as loading, deletes and writes what differs in batches, each a
transaction, and marks it as ready. Whatever interrupts it, the next one finds by the rows' hashes what is left to do.
"""

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from neo4j import Driver
from neo4j.exceptions import DriverError, Neo4jError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from pipelines.corpus.spec import held_spec
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.neo4j_store.connect import connected, explained, values
from pipelines.neo4j_store.lock import locked
from pipelines.neo4j_store.marker import Marker, read_marker, write_marker
from pipelines.neo4j_store.remove import delete_nodes
from pipelines.neo4j_store.rows import PARTS, TABLES, LocalGraph
from pipelines.neo4j_store.schema import VERSION, create_schema
from pipelines.neo4j_store.snapshot import write_snapshot
from pipelines.progress import Reporter
from pipelines.settings import Settings

RETRY_SECONDS = 30.0
"""So long without a batch that succeeds, a load asks a database again that is overloaded, locked or away."""
_CHANGES = (
    *("nodes_created", "nodes_deleted", "relationships_created", "relationships_deleted"),
    *("properties_set", "labels_added", "labels_removed"),
)
Parts = dict[str, dict[str, str]]


@dataclass
class LoadResult:
    """What a load did, by table; `changes` are the server's own counters, `seconds` without waiting for the lock."""

    generation: str
    rows: dict[str, int]
    written: dict[str, int] = field(default_factory=dict)
    deleted: dict[str, int] = field(default_factory=dict)
    changes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_CHANGES, 0))
    seconds: float = 0.0
    snapshot: str = ""
    """Where the graph is kept that lay there in an older version's way."""

    @property
    def changed(self) -> int:
        return sum(self.written.values()) + sum(self.deleted.values())


def corpus_name(settings: Settings) -> str:
    """Return the name of this home's corpus in the database."""
    return settings.neo4j_corpus or held_spec(Layout(settings.home)).name


def load_graph(
    settings: Settings, chunked: Mapping[str, str], report: Reporter, log: Callable[[str], None]
) -> LoadResult:
    """Make Neo4j hold the home's current graph and chunks; `chunked` are the fingerprints of the chunks' partitions.

    Raises:
        CgragError: there is no current graph, Neo4j is not there or refuses, or holds another corpus of this name.
    """
    graph = LocalGraph(Layout(settings.home), chunked)
    try:
        with connected(settings) as driver:
            return Loader(driver, settings, graph, report, log).load()
    finally:
        graph.close()


class Loader:
    """One load of one graph, through a driver."""

    def __init__(
        self,
        driver: Driver,
        settings: Settings,
        graph: LocalGraph,
        report: Reporter,
        log: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._driver, self._settings, self._graph = driver, settings, graph
        self._report, self._log, self._clock, self._sleep = report, log, clock, sleep
        self._corpus = corpus_name(settings)
        self._source = held_spec(Layout(settings.home)).text
        self._moved = clock()
        self._sent = self._done = self._total = 0

    def load(self) -> LoadResult:
        """Load, and begin again where the database is overloaded or away for a while; raises as `load_graph` does."""
        retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            wait=wait_exponential(multiplier=0.5, max=5),
            stop=lambda _: self._clock() - self._moved > RETRY_SECONDS,
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(self._attempt)
        except (Neo4jError, DriverError) as error:
            why = explained(error, self._settings)
            left = self._total - self._done
            far = f"\n{self._sent:,} rows were done; {left:,} are left to the next load." if self._total else ""
            raise CgragError(why.problem + far, why.remedy) from error

    def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Neo4jError | DriverError):
            self._log(f"{explained(error, self._settings).problem} Trying again.")

    def _attempt(self) -> LoadResult:
        with self._driver.session(database=self._settings.neo4j_database) as session:
            marker = self._marker(session)
            if marker and self._is_current(marker) and stored_counts(session, self._corpus) == marker.counts:
                return LoadResult(marker.generation, marker.counts)
            self._graph.prepare()
            result = LoadResult(self._graph.generation, self._graph.counts())
            if marker and marker.state == "loading":
                self._log("Another load is under way, or one was cut off: waiting for the lock.")
            create_schema(session)
            asked = self._clock()
            with locked(self._driver, self._settings.neo4j_database, self._corpus) as alive:
                started = self._clock()
                self._moved += started - asked  # waiting for another loader is no failure
                self._load(_Writer(session, self._corpus, alive, self._moves), self._marker(session), result)
                result.seconds = self._clock() - started
        return result

    def _marker(self, session: Any) -> Marker | None:
        marker = read_marker(session, self._corpus)
        if marker and marker.source != self._source:
            raise CgragError(
                f"Neo4j already holds a graph named {self._corpus}, of {marker.source}.",
                f"Name this one otherwise, by CGRAG_NEO4J_CORPUS, or remove that:  cgrag neo4j remove {self._corpus}",
            )
        return marker

    def _is_current(self, marker: Marker) -> bool:
        return is_current(marker, self._graph.generation, self._graph.chunks)

    def _moves(self, rows: int) -> None:
        self._sent += rows
        self._done += rows
        self._moved = self._clock()

    def _load(self, writer: "_Writer", marker: Marker | None, result: LoadResult) -> None:
        session = writer.session
        if marker and marker.version < VERSION:
            result.snapshot = self._migrate(session, marker)
            marker = None
        parts, known = self._graph.parts(), marker.parts if marker else {}
        if marker and marker.state == "ready" and stored_counts(session, self._corpus) != marker.counts:
            self._log("Somebody else has changed the graph in Neo4j: comparing all of it.")
            known = {}
        changed = changed_parts(parts, known)
        loading = Marker(
            corpus=self._corpus,
            source=self._source,
            version=VERSION,
            state="loading",
            load=uuid.uuid4().hex,
            generation="",
            chunks="",
            parts={name: known.get(name, {}) | dict.fromkeys(keys, "") for name, keys in changed.items()},
            counts={},
            relations=[],
        )
        if any(changed.values()):
            write_marker(session, loading)
            self._compare(session, changed, result)
            self._total, self._done = result.changed, 0
            self._change(writer, result)
        ready = replace(
            loading,
            state="ready",
            generation=self._graph.generation,
            chunks=self._graph.chunks,
            parts=parts,
            counts=result.rows,
            relations=self._graph.relations(),
        )
        write_marker(session, ready)

    def _migrate(self, session: Any, marker: Marker) -> str:
        """Keep what is stored in an older version's way, and clear its place; return where it is kept."""
        kept = write_snapshot(session, self._settings, marker, self._report) if marker.state == "ready" else None
        delete_nodes(session, self._corpus)
        return str(kept or "")

    def _compare(self, session: Any, changed: Mapping[str, list[str]], result: LoadResult) -> None:
        for table in TABLES:
            parts = changed[table.name]
            stored = values(session, table.stored, corpus=self._corpus, parts=parts) if parts else []
            counts = self._graph.compare(table, parts, stored)
            result.written[table.name], result.deleted[table.name] = counts

    def _change(self, writer: "_Writer", result: LoadResult) -> None:
        progress = self._report("Loading into Neo4j", "rows")
        for table in reversed(TABLES):
            for rows in self._graph.deleted(table):
                writer.send(table.delete, rows, result.changes)
                progress(self._done, self._total)
        for table in TABLES:
            for rows in self._graph.written(table):
                found = writer.send(table.write, rows, result.changes)
                if found != len(rows):
                    raise CgragError(
                        f"Of {len(rows):,} rows of {table.name} Neo4j took {found:,}: the others' ends are not there.",
                        "Somebody else may be changing the graph; load again:  cgrag run --select neo4j_graph",
                    )
                progress(self._done, self._total)


class _Writer:
    """Sends rows in batches, each a transaction, for as long as the lock is held."""

    def __init__(self, session: Any, corpus: str, alive: Callable[[], None], moves: Callable[[int], None]) -> None:
        self.session = session
        self._corpus, self._alive, self._moves = corpus, alive, moves

    def send(self, query: str, rows: list[dict[str, Any]], changes: dict[str, int]) -> int:
        """Return the number that the query returns, 0 where it returns none; adds to the counters."""

        def work(transaction: Any) -> tuple[int, Any]:
            answer = transaction.run(query, {"corpus": self._corpus, "rows": rows})
            record = answer.single()
            return (record[0] if record else 0), answer.consume().counters

        self._alive()
        found, counters = self.session.execute_write(work)
        for name in changes:
            changes[name] += getattr(counters, name)
        self._moves(len(rows))
        return int(found)


def changed_parts(parts: Parts, known: Parts) -> dict[str, list[str]]:
    """Return the parts of each table that are not as known; where nothing is known, all that there can be.

    >>> changed_parts({"edge": {"00": "a", "01": "b"}}, {"edge": {"00": "a", "01": "", "ff": "c"}})
    {'edge': ['01', 'ff']}
    """
    if not known:
        return {name: list(PARTS) for name in parts}
    return {
        name: sorted(part for part in hashes.keys() | known[name].keys() if hashes.get(part) != known[name].get(part))
        for name, hashes in parts.items()
    }


def is_current(marker: Marker, generation: str, chunks: str) -> bool:
    """Whether a database holds just this graph, whole."""
    found = (marker.state, marker.version, marker.generation, marker.chunks)
    return found == ("ready", VERSION, generation, chunks)


def stored_counts(session: Any, corpus: str) -> dict[str, int]:
    """Return {table: how many the database has of it}."""
    query = " ".join(f"CALL () {{ {table.count} AS {table.name} }}" for table in TABLES)
    names = ", ".join(table.name for table in TABLES)
    found = values(session, f"{query} RETURN {names}", corpus=corpus)
    return dict(zip((table.name for table in TABLES), found[0], strict=True)) if found else {}


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, Neo4jError | DriverError) and error.is_retryable()
