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
from neo4j.exceptions import DriverError, IncompleteCommit, Neo4jError
from tenacity import RetryCallState, Retrying, retry_if_exception, wait_exponential

from pipelines.corpus.spec import held_spec
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.neo4j_store.connect import connected, explained, values
from pipelines.neo4j_store.lock import fence, locked
from pipelines.neo4j_store.marker import Marker, end_load, read_marker, write_marker
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
    """All that there are."""
    written: dict[str, int] = field(default_factory=lambda: {table.name: 0 for table in TABLES})
    deleted: dict[str, int] = field(default_factory=lambda: {table.name: 0 for table in TABLES})
    changes: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_CHANGES, 0))
    seconds: float = 0.0
    snapshot: str = ""
    """Where the graph is kept that lay there in an older version's way."""

    @property
    def changed(self) -> int:
        return sum(self.written.values()) + sum(self.deleted.values())


class _EndsMissing(Exception):
    """Neo4j took fewer rows than it was given; the argument says of what."""


def corpus_name(settings: Settings) -> str:
    """Return the name of this home's corpus in the database."""
    return settings.neo4j_corpus or held_spec(Layout(settings.home)).name


def load_graph(
    settings: Settings, chunked: Mapping[str, str], report: Reporter, say: Callable[[str], None]
) -> LoadResult:
    """Make Neo4j hold the home's current graph and chunks; `chunked` are the fingerprints of the chunks' partitions.

    Raises:
        CgragError: there is no current graph, Neo4j is not there or refuses, or holds another corpus of this name.
    """
    graph = LocalGraph(Layout(settings.home), chunked)
    try:
        with connected(settings) as driver:
            return Loader(driver, settings, graph, report, say).load()
    finally:
        graph.close()


class Loader:
    """One load of one graph, through a driver; `say` tells people what it waits for and meets."""

    def __init__(
        self,
        driver: Driver,
        settings: Settings,
        graph: LocalGraph,
        report: Reporter,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._driver, self._settings, self._graph = driver, settings, graph
        self._report, self._say, self._clock, self._sleep = report, say, clock, sleep
        self._corpus = corpus_name(settings)
        self._source = held_spec(Layout(settings.home)).text
        self._result = LoadResult(graph.generation, {})
        self._left: int | None = None
        self._failing: float | None = None

    def load(self) -> LoadResult:
        """Load, and begin again where the database is overloaded or away for a while; raises as `load_graph` does."""
        retrying = Retrying(
            retry=retry_if_exception(_may_pass),
            wait=wait_exponential(multiplier=0.5, max=5),
            stop=self._is_given_up,
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            return retrying(self._attempt)
        except (Neo4jError, DriverError) as error:
            why = explained(error, self._settings)
            far = ""
            if self._left is not None:
                far = f"\n{self._result.changed:,} rows were done; {self._left:,} are left to the next load."
            raise type(why)(why.problem + far, why.remedy) from error

    def _is_given_up(self, state: RetryCallState) -> bool:
        """After RETRY_SECONDS of failures without a batch that succeeded."""
        self._failing = self._clock() if self._failing is None else self._failing
        return self._clock() - self._failing > RETRY_SECONDS

    def _tell(self, state: RetryCallState) -> None:
        error = state.outcome.exception() if state.outcome else None
        if isinstance(error, Neo4jError | DriverError):
            self._say(f"{explained(error, self._settings).problem} Trying again.")

    def _attempt(self) -> LoadResult:
        result = self._result
        with self._driver.session(database=self._settings.neo4j_database) as session:
            marker = self._marker(session)
            if self._is_there(session, marker):
                return result
            self._graph.prepare()
            if marker and marker.state == "loading":
                self._say("Another load is under way, or one was cut off: waiting for the lock.")
            create_schema(session)
            with locked(self._driver, self._settings.neo4j_database, self._corpus):
                marker = self._marker(session)
                if self._is_there(session, marker):
                    return result
                self._graph.check()
                started = self._clock()
                try:
                    self._load(session, marker)
                finally:
                    result.seconds += self._clock() - started
        return result

    def _marker(self, session: Any) -> Marker | None:
        marker = read_marker(session, self._corpus)
        if marker and marker.source != self._source:
            raise CgragError(
                f"Neo4j already holds a graph named {self._corpus}, of {marker.source}.",
                f"Name this one otherwise, by CGRAG_NEO4J_CORPUS, or remove that:  cgrag neo4j remove {self._corpus}",
            )
        return marker

    def _is_there(self, session: Any, marker: Marker | None) -> bool:
        """Whether there is nothing to do."""
        if marker is None or not is_current(marker, self._graph.generation, self._graph.chunks):
            return False
        self._result.rows = marker.counts
        return stored_counts(session, self._corpus) == marker.counts

    def _load(self, session: Any, marker: Marker | None) -> None:
        if marker and marker.version < VERSION:
            self._migrate(session, marker)
            marker = None
        known = marker.parts if marker else {}
        if marker and marker.state == "ready" and stored_counts(session, self._corpus) != marker.counts:
            known = {}
        if self._bring(session, known):
            return
        self._say("Somebody else has changed the graph in Neo4j: comparing all of it.")
        if not self._bring(session, {}):
            raise CgragError(
                f"Neo4j has {stored_counts(session, self._corpus)} of {self._corpus} and should have "
                f"{self._graph.counts()}: somebody else is changing it.",
                "Load it again when that has ended:  cgrag run --select neo4j_graph",
            )

    def _migrate(self, session: Any, marker: Marker) -> None:
        """Keep what is stored in an older version's way, and clear its place."""
        if marker.state == "ready":
            self._result.snapshot = str(write_snapshot(session, self._settings, marker, self._report))
            self._say(f"An older version stored the graph in Neo4j; it is kept as {self._result.snapshot}")
        marker = replace(marker, state="loading", load=uuid.uuid4().hex, parts={})
        write_marker(session, marker)
        delete_nodes(session, self._corpus, marker.load)

    def _bring(self, session: Any, known: Parts) -> bool:
        """Write what differs from what is known to be there; return whether all of it is there then."""
        parts, counts = self._graph.parts(), self._graph.counts()
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
        write_marker(session, loading)
        self._result.rows = counts
        self._left = self._compare(session, changed)
        try:
            self._change(session, loading.load)
        except _EndsMissing:
            return False
        if stored_counts(session, self._corpus) != counts:
            return False
        generation, chunks, relations = self._graph.generation, self._graph.chunks, self._graph.relations()
        ready = replace(
            loading,
            state="ready",
            generation=generation,
            chunks=chunks,
            parts=parts,
            counts=counts,
            relations=relations,
        )
        session.execute_write(end_load, ready)
        return True

    def _compare(self, session: Any, changed: Mapping[str, list[str]]) -> int:
        """Find what differs in some parts, and return how many rows that are."""
        differing = 0
        for table in TABLES:
            parts = changed[table.name]
            stored = values(session, table.stored, corpus=self._corpus, parts=parts) if parts else []
            differing += self._graph.compare(table, parts, stored)
        return differing

    def _change(self, session: Any, load: str) -> None:
        progress = self._report("Loading into Neo4j", "rows")
        total = self._left or 0
        for table in reversed(TABLES):
            for rows in self._graph.deleted(table):
                self._send(session, load, table.delete, rows)
                self._result.deleted[table.name] += len(rows)
                progress(total - (self._left or 0), total)
        for table in TABLES:
            for rows in self._graph.written(table):
                if self._send(session, load, table.write, rows) != len(rows):
                    raise _EndsMissing(table.name)
                self._result.written[table.name] += len(rows)
                progress(total - (self._left or 0), total)

    def _send(self, session: Any, load: str, query: str, rows: list[dict[str, Any]]) -> int:
        """Send a batch as a transaction of its own; return the number that the query returns, if it does."""

        def work(transaction: Any) -> tuple[int, Any]:
            fence(transaction, self._corpus, load)
            answer = transaction.run(query, {"corpus": self._corpus, "rows": rows})
            record = answer.single()
            return (record[0] if record else 0), answer.consume().counters

        found, counters = session.execute_write(work)
        for name in _CHANGES:
            self._result.changes[name] += getattr(counters, name)
        self._left = (self._left or 0) - len(rows)
        self._failing = None
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
    """Whether the same may go well later; a commit whose answer was lost may be repeated, as every batch may."""
    return isinstance(error, Neo4jError | DriverError) and (error.is_retryable() or isinstance(error, IncompleteCommit))
