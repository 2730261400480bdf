"""`make bench`: how fast the stages are on the whole corpus, in seconds and against a floor in the same run.

The floors: a stage cannot be faster than reading the files (walk), than Python's own parser on them (chunk), or than
counting the words (index). Seconds drift from machine to machine; the ratios to the floors do not.
"""

import ast
import re
import resource
import statistics
import subprocess
import sys
import warnings
from collections import Counter

from rich.console import Console
from rich.table import Table

from pipelines.chunking.partition import chunk_partition, stored_fingerprint
from pipelines.chunking.python import collector_off
from pipelines.corpus.fetch import Source, fetch
from pipelines.corpus.scan import Plan, read_file, scan, store_scan
from pipelines.corpus.spec import claim_home, parse_spec
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.lexical.index import build_index, load_index
from pipelines.retrieve.rankers import Lexical
from pipelines.retrieve.search import search
from pipelines.settings import DEFAULT_CORPUS, Settings
from tests.bench.timing import command, temporary_home, timed

QUESTIONS = (
    "how is a LoRA adapter loaded at run time",
    "what does LLMEngine.step do",
    "which environment variable chooses the attention backend",
    "how are preempted requests rescheduled",
    "prefix caching",
)


def _python(statement: str) -> float:
    return statistics.median(
        timed(lambda: subprocess.run([sys.executable, "-c", statement], check=True)) for _ in range(3)
    )


def parse_all(source: Source, plan: Plan) -> None:
    """Python's own parser on every Python file: the floor of all that parses."""
    with collector_off(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for files in plan.partitions.values():
            for row in files:
                if row["format"] == "python":
                    try:
                        ast.parse(read_file(source.root, row["path"]))
                    except (SyntaxError, ValueError):
                        continue


def _count_words(source: Source, plan: Plan) -> None:
    word = re.compile(rb"\w+")
    counted: Counter[bytes] = Counter()
    for files in plan.partitions.values():
        for row in files:
            counted.update(word.findall(read_file(source.root, row["path"])))


def main() -> None:
    """Print the table; exit 1 only where a stage fails, never for being slow."""
    table = Table("what", "seconds", "times its floor", "goal")
    with temporary_home() as settings:
        spec = parse_spec(DEFAULT_CORPUS)
        source = fetch(spec, settings)
        layout = Layout(settings.home)
        claim_home(layout, spec)
        found = []
        walk_time = timed(lambda: found.append(scan(source, settings)))
        plan = store_scan(found[0], settings)
        read_time = timed(
            lambda: [read_file(source.root, row["path"]) for rows in plan.partitions.values() for row in rows]
        )
        chunk_time = timed(
            lambda: [
                chunk_partition(source.root, key, files, settings.chunking, layout)
                for key, files in plan.partitions.items()
            ]
        )
        parse_time = timed(lambda: parse_all(source, plan))
        fingerprints = {key: stored_fingerprint(layout, key) or "" for key in plan}
        index_time = timed(lambda: build_index(settings, fingerprints))
        count_time = timed(lambda: _count_words(source, plan))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        table.add_row("walk", f"{walk_time:.2f}", f"{walk_time / read_time:.1f} × reading the files", "")
        table.add_row(
            "chunk", f"{chunk_time:.2f}", f"{chunk_time / parse_time:.1f} × ast.parse of the Python files", ""
        )
        table.add_row("index", f"{index_time:.2f}", f"{index_time / count_time:.1f} × counting the words", "")
        table.add_row("walk + chunk + index", f"{walk_time + chunk_time + index_time:.2f}", "", "20 s")
        table.add_row("peak memory", f"{peak:,.0f} MiB", "", "")

        ranker = Lexical(load_index(settings))
        times = sorted(timed(lambda q=question: search(ranker, q, 5)) for question in QUESTIONS * 40)
        table.add_row("search, warm, p50", f"{times[100] * 1000:.2f} ms", f"p95 {times[190] * 1000:.2f} ms", "5 ms")
        table.add_row("cgrag search, cold", f"{command('search', QUESTIONS[0], home=settings.home):.2f}", "", "2 s")
        table.add_row("cgrag --help", f"{command('--help', home=settings.home):.2f}", "", "0.5 s")
        bare = _python("pass")
        table.add_row("import dagster", f"{_python('import dagster') - bare:.2f}", "", "")
        table.add_row("import the definitions", f"{_python('import cgrag.definitions') - bare:.2f}", "", "")
        table.add_row("cgrag run, all stages", f"{_fresh_run(settings):.2f}", "Dagster and its imports included", "")
        table.add_row("cgrag run, nothing to do", f"{command('run', home=settings.home, repeats=3):.2f}", "", "10 s")
    Console().print(table)


def _fresh_run(settings: Settings) -> float:
    """Seconds of `cgrag run` on the same home with everything but the source removed."""
    for name in ("corpus", "chunks", "index", "graph"):
        subprocess.run(["rm", "-rf", str(settings.home / name)], check=True)
    return command("run", home=settings.home, repeats=1)


if __name__ == "__main__":
    try:
        main()
    except CgragError as error:
        sys.exit(str(error))
