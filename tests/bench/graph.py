"""`make bench`: how fast the code graph of the whole corpus is parsed, linked, built, changed and asked.

The floor of parsing is `ast.parse` of the same files in the same run, that of the graph is hashing its rows. After some
edits of a copy of the source (a file changed, one renamed, one deleted) all rows are compared with a clean build's.
"""

import random
import resource
import shutil
import statistics
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

from pipelines.chunking.partition import chunk_partition
from pipelines.code.stage import build_edges, build_facts, current_facts
from pipelines.communities.stage import make_communities
from pipelines.corpus.fetch import Source, fetch
from pipelines.corpus.prune import prune
from pipelines.corpus.scan import Plan, scan, store_scan
from pipelines.corpus.spec import parse_spec
from pipelines.errors import CgragError
from pipelines.extract.partition import Stored
from pipelines.graph.look_up import open_graph
from pipelines.graph.stage import make_graph
from pipelines.graph.store import read_generation
from pipelines.graph.tables import GRAPH, generation
from pipelines.layout import Layout
from pipelines.settings import DEFAULT_CORPUS, Settings
from pipelines.state import chunk_fingerprints, chunks_todo, facts_todo
from pipelines.tables import read_table
from tests.bench.pipeline import parse_all
from tests.bench.timing import command, temporary_home, timed

SEED = 5


class Build:
    """The stages up to the graph on one home, each with what has changed only."""

    def __init__(self, settings: Settings, root: Path) -> None:
        self.settings = settings
        self.layout = Layout(settings.home)
        self.source = Source(root, "vllm")

    def chunk(self) -> Plan:
        plan = store_scan(scan(self.source, self.settings), self.settings)
        prune(self.layout, plan)
        for key in chunks_todo(self.layout, self.settings, plan, plan):
            chunk_partition(self.source.root, key, plan.partitions[key], self.settings.chunking, self.layout)
        self.chunked = chunk_fingerprints(self.layout, plan)
        return plan

    def facts(self) -> None:
        for key in facts_todo(self.layout, self.chunked):
            build_facts(self.layout, key, self.chunked[key])

    def link(self) -> None:
        build_edges(self.layout, self.settings.code, current_facts(self.layout, self.chunked))

    def graph(self) -> None:
        make_graph(self.layout, self.chunked, Stored(), self.settings)


def edit(root: Path, kind: str, chance: random.Random) -> None:
    """Change, rename or delete a Python file at random."""
    path = chance.choice(sorted(root.rglob("*.py")))
    if kind == "change":
        lines = path.read_text().splitlines(keepends=True)
        path.write_text("".join(lines[: len(lines) // 2]) + "\n\n\ndef added():\n    return added()\n")
    elif kind == "rename":
        path.rename(path.with_name(f"{path.stem}_renamed.py"))
    else:
        path.unlink()


def main() -> None:
    """Print the table; exit 1 where a stage fails or increments differ from a clean build, never for being slow."""
    table = Table("what", "seconds", "beside", "goal")
    with temporary_home() as settings, temporary_home() as other:
        root = settings.home / "copy"
        shutil.copytree(fetch(parse_spec(DEFAULT_CORPUS), settings).root, root)
        build = Build(settings, root)
        plan = build.chunk()
        floor = timed(lambda: parse_all(build.source, plan))
        facts = timed(build.facts)
        link = timed(build.link)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row("parse", f"{facts:.2f}", f"{facts / floor:.1f} × ast.parse of the same files", "")
        table.add_row("link", f"{link:.2f}", f"{link / floor:.1f} × the same", "")
        table.add_row("parse + link", f"{facts + link:.2f}", f"peak memory {peak:,.0f} MiB", "15 s")
        graph = timed(build.graph)
        tables = {name: read_table(build.layout.graph / f"{name}.parquet", schema) for name, schema in GRAPH.items()}
        hashing = timed(lambda: generation(tables))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row("graph", f"{graph:.2f}", f"{graph / hashing:.1f} × hashing its rows", "8 s")
        table.add_row("peak memory with the graph", f"{peak:,.0f} MiB", "", "")

        dividing = timed(lambda: make_communities(settings))
        table.add_row("communities", f"{dividing:.2f}", "", "10 s")

        walk = open_graph(settings)
        chance = random.Random(SEED)
        names = chance.sample(tables["entities"]["id"].to_pylist(), 200)
        times = sorted(timed(lambda name=name: walk.edges([name], hops=2)) * 1000 for name in names)
        told = f"p95 {times[189]:.2f} ms, seed {SEED}"
        table.add_row("two hops, 200 symbols, p50", f"{statistics.median(times):.2f} ms", told, "p95 20 ms")
        cold = command("graph", "LoRARequest", home=settings.home)
        table.add_row("cgrag graph, cold", f"{cold:.2f}", "", "1 s")

        for kind in ("change", "rename", "delete", "change"):
            edit(root, kind, chance)
            chunking = timed(build.chunk)
            again = timed(build.facts) + timed(build.link)
            table.add_row(f"{kind} a file: parse + link", f"{again:.2f}", f"walk + chunk {chunking:.2f}", "5 s")
        build.graph()
        clean = Build(other, root)
        for stage in (clean.chunk, clean.facts, clean.link, clean.graph):
            stage()
        same = read_generation(build.layout.graph_store) == read_generation(clean.layout.graph_store)
        table.add_row("after all edits", "equal" if same else "NOT EQUAL", "to a clean build", "equal")
    Console().print(table)
    if not same:
        sys.exit(1)


if __name__ == "__main__":
    try:
        main()
    except CgragError as error:
        sys.exit(str(error))
