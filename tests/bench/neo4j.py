"""`make bench-neo4j`: the whole corpus in a real Neo4j beside DuckDB, in one run.

Loaded, loaded again with nothing new, loaded after an edit of a copy of the source, walked at random on both stores,
and killed at three random moments. The home is that of the settings, whose graph must be built; the server is the one
of NEO4J_URI (then no kills), else one of our own from NEO4J_HOME. Exit 1 where stores differ, never for being slow.
"""

import random
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from pipelines.corpus.fetch import fetch
from pipelines.corpus.scan import load_plan
from pipelines.corpus.spec import claim_home, held_spec, parse_spec
from pipelines.errors import CgragError
from pipelines.graph.admission import KNOWN
from pipelines.graph.look_up import open_graph
from pipelines.graph.traversal import Traversal
from pipelines.layout import Layout
from pipelines.neo4j_store.connect import connected
from pipelines.neo4j_store.load import Loader, LoadResult, load_graph
from pipelines.neo4j_store.remove import remove_corpus
from pipelines.neo4j_store.rows import LocalGraph
from pipelines.progress import Progress, no_report
from pipelines.settings import Settings, load_settings
from pipelines.state import chunk_fingerprints
from tests.bench.graph import Build, edit
from tests.neo4j_server import ABSENT, Server, can_start, database_rows, given_server, home_rows, own_server

SEED = 5
WALKS = 200


class Bench:
    """One corpus in one database, and the table of what was measured."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.table = Table("what", "seconds", "beside")
        self.equal = True

    def load(self, settings: Settings) -> LoadResult:
        chunked = _chunked(settings)
        return load_graph(settings, chunked, no_report, lambda text: None)

    def compare(self, settings: Settings, what: str) -> None:
        """Compare all rows of both stores."""
        name = settings.neo4j_corpus or held_spec(Layout(settings.home)).name
        same = database_rows(self.server, name) == home_rows(Layout(settings.home), _chunked(settings))
        self.table.add_row(what, "equal" if same else "NOT EQUAL", "every row of both stores")
        self.equal &= same

    def loads(self, settings: Settings) -> None:
        first = self.load(settings)
        rows = sum(first.rows.values())
        rate = f"{rows:,} rows, {rows / first.seconds:,.0f} rows/s; {_told(first)}"
        self.table.add_row("load all of it", f"{first.seconds:.1f}", rate)
        started = time.perf_counter()
        again = self.load(settings)
        self.table.add_row("again, nothing new", f"{time.perf_counter() - started:.1f}", _told(again))
        self.equal &= not any(again.changes.values())
        self.compare(settings, "rows")

    def walks(self, settings: Settings) -> None:
        """The same random walks on both stores."""
        chance = random.Random(SEED)
        stores = [open_graph(settings, KNOWN, store) for store in ("duckdb", "neo4j")]
        ids = [row[0] for row in stores[0].symbols()]
        asked = [_walk(chance, ids) for _ in range(WALKS)]
        answers = [[walk(store) for walk in asked] for store in stores]
        same = answers[0] == answers[1]
        self.equal &= same
        found = sum(len(answer) for answer in answers[0])
        self.table.add_row(f"{WALKS} random walks", "equal" if same else "NOT EQUAL", f"{found:,} rows, seed {SEED}")
        hops = chance.sample(ids, WALKS)
        for name, store in zip(("duckdb", "neo4j"), stores, strict=True):
            for warm in (True, False):
                times = sorted(_milliseconds(lambda id=id, store=store: store.edges([id], hops=2)) for id in hops)
                if not warm:
                    told = f"p95 {times[int(WALKS * 0.95)]:.1f} ms, {WALKS} symbols, all relations, both directions"
                    self.table.add_row(f"two hops, {name}, p50", f"{statistics.median(times):.1f} ms", told)
            store.close()

    def edits(self, folder: Path) -> None:
        """A copy of the source beside it, a file of which is changed, renamed and deleted."""
        settings = self.server.settings(home=folder / "home", neo4j_corpus="edited")
        root = folder / "copy"
        shutil.copytree(fetch(parse_spec("pypi:vllm==0.10.1"), load_settings()).root, root)
        build = Build(settings, root)
        claim_home(build.layout, parse_spec(str(root)))
        chance = random.Random(SEED)
        for kind in ("", "change", "rename", "delete"):
            if kind:
                edit(root, kind, chance)
            for stage in (build.chunk, build.facts, build.link, build.graph):
                stage()
            result = self.load(settings)
            if kind:
                share = f"{result.changed:,} of {sum(result.rows.values()):,} rows; {_told(result)}"
                self.table.add_row(f"{kind} a file", f"{result.seconds:.1f}", share)
        self.compare(settings, "rows after the edits")
        remove_corpus(settings, "edited")

    def kills(self, settings: Settings) -> None:
        """The server killed at three random moments of a load, and started again each time."""
        chance = random.Random(SEED)
        settings = settings.model_copy(update={"neo4j_corpus": "killed"})
        moments = [chance.uniform(0.02, 0.95) for _ in range(3)]
        for moment in moments:
            graph = LocalGraph(Layout(settings.home), _chunked(settings))
            try:
                with connected(settings) as driver:
                    report = _killer(self.server, moment)
                    Loader(driver, settings, graph, report, lambda text: None, sleep=_Stop.instead).load()
            except _Stop as stop:
                told = f"at {moment:.0%}, {stop}"
            finally:
                graph.close()
            self.server.start()
            problem = open_problem(settings)
            self.table.add_row("killed", "", f"{told}; a reader is told: {problem}")
        result = self.load(settings)
        self.table.add_row("load after the kills", f"{result.seconds:.1f}", _told(result))
        self.compare(settings, "rows after the kills")
        remove_corpus(settings, "killed")


class _Stop(Exception):
    """In place of waiting until the server is back."""

    @classmethod
    def instead(cls, seconds: float) -> None:
        raise cls("the load ended")


def _killer(server: Server, moment: float) -> Callable[[str, str], Progress]:
    def report(doing: str, unit: str) -> Progress:
        def progress(done: int, total: int | None) -> None:
            if total and done / total >= moment and server.process is not None:
                server.kill()

        return progress

    return report


def open_problem(settings: Settings) -> str:
    """What a reader is told, "nothing" where the graph can be walked."""
    try:
        open_graph(settings, store="neo4j").close()
    except CgragError as error:
        return error.problem
    return "nothing"


def _walk(chance: random.Random, ids: list[str]) -> Callable[[Traversal[Any, Any]], list[Any]]:
    """A question at random: edges, paths or chunks, from up to three symbols, by some relations, up to three steps."""
    kind, starts = chance.choice(["edges", "paths", "chunks"]), chance.sample(ids, chance.randint(1, 3))
    known = ["CALLS", "INHERITS_FROM", "IMPORTS", "REFERENCES", "DEFINED_IN"]
    relations, direction = chance.sample(known, chance.randint(1, 3)), chance.choice(["in", "out", "both"])
    hops = chance.randint(1, 3 if len(relations) < 3 else 2)
    if kind == "paths":
        goal = chance.choice(ids)
        return lambda store: store.paths(starts[0], goal, relations, "both", 6)
    if kind == "chunks":
        return lambda store: store.chunks(starts, relations, direction, hops)
    return lambda store: store.edges(starts, relations, direction, hops)


def _chunked(settings: Settings) -> dict[str, str]:
    layout = Layout(settings.home)
    return chunk_fingerprints(layout, load_plan(layout))


def _milliseconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return (time.perf_counter() - started) * 1000


def _told(result: LoadResult) -> str:
    counted = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in result.changes.items() if count)
    return f"the server counts {counted or 'no change'}"


def main() -> None:
    """Print the table."""
    server = given_server()
    with tempfile.TemporaryDirectory() as name:
        if server is None:
            if not can_start():
                sys.exit(ABSENT)
            server = own_server(Path(name) / "neo4j")
            server.start()
        try:
            bench = Bench(server)
            settings = server.settings(home=load_settings().home, neo4j_corpus="bench")
            bench.loads(settings)
            bench.walks(settings)
            remove_corpus(settings, "bench")
            bench.edits(Path(name))
            if server.folder:
                bench.kills(settings)
            Console(width=180).print(bench.table)
        finally:
            server.stop()
    if not bench.equal:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except CgragError as error:
        sys.exit(str(error))
