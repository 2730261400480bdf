"""What all tests share: the nasty cases, a home that can be filled, read back and compared, and the command line."""

import io
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cgrag import Corpus
from pipelines.chunking.partition import chunk_partition
from pipelines.code.stage import build_edges, build_facts, current_facts
from pipelines.code.tables import CODE_FACTS, PAGE_LINKS, SITES, UNRESOLVED
from pipelines.corpus.decode import decode
from pipelines.corpus.fetch import fetch
from pipelines.corpus.prune import prune
from pipelines.corpus.scan import Scan, load_plan, scan_corpus, store_scan
from pipelines.corpus.spec import parse_spec
from pipelines.graph.stage import make_graph
from pipelines.graph.store import graph_record, read_generation
from pipelines.graph.tables import GRAPH
from pipelines.layout import Layout
from pipelines.lexical.index import build_index
from pipelines.retrieve.search import Result
from pipelines.settings import PROJECT, Settings
from pipelines.state import AssetState, asset_states, chunk_fingerprints, chunks_todo, extracted, facts_todo
from pipelines.tables import FILES, PARTITIONED, SKIPPED, read_table, row_hash

CASES = Path(__file__).parent / "cases"
SCHEMAS = {"files": FILES, "skipped": SKIPPED, **PARTITIONED}
LINKED = {"sites": SITES, "links": SITES, "unresolved": UNRESOLVED, **GRAPH}
GRAPH_SCHEMAS = {"code_facts": CODE_FACTS, "page_links": PAGE_LINKS, **LINKED}
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Case:
    """One folder of tests/cases."""

    folder: Path
    expected: dict[str, Any]
    """The `data` of its case.json."""

    def copy_to(self, target: Path, part: str = "tree") -> Path:
        """Make `target` equal to the folder `part` of the case, whatever it held before."""
        shutil.rmtree(target, ignore_errors=True)
        return Path(shutil.copytree(self.folder / part, target))

    def set_up(self, target: Path, *arguments: str) -> Path:
        """Run the case's setup.py for `target`."""
        subprocess.run([sys.executable, self.folder / "setup.py", target, *arguments], check=True, cwd=target.parent)
        return target


def case(name: str) -> Case:
    """Return the case whose folder begins with `name`, e.g. "c01"."""
    folder = next(CASES.glob(f"{name}-*"))
    return Case(folder, json.loads((folder / "case.json").read_bytes())["expect"].get("data", {}))


class Home:
    """One CGRAG_HOME: what is built in it, and what is then stored."""

    def __init__(self, path: Path, **settings: Any) -> None:
        self.settings = Settings(home=path, **settings)
        self.layout = Layout(self.settings.home)

    def scan(self, corpus: Path | str) -> Scan:
        return scan_corpus(parse_spec(str(corpus)), self.settings)

    def build(self, corpus: Path | str) -> Scan:
        """Build what is missing or stale, without Dagster."""
        found = self.scan(corpus)
        self.build_scan(found, corpus)
        return found

    def build_scan(self, found: Scan, corpus: Path | str) -> None:
        """The same from a scan made before, so that a test can change files between listing and reading."""
        plan = store_scan(found, self.settings)
        prune(self.layout, plan)
        root = fetch(parse_spec(str(corpus)), self.settings).root
        for key in chunks_todo(self.layout, self.settings, plan, plan):
            chunk_partition(root, key, plan.partitions[key], self.settings.chunking, self.layout)
        build_index(self.settings, chunk_fingerprints(self.layout, plan))
        self.build_graph()

    def build_graph(self) -> None:
        """Build what is missing or stale of facts, edges and graph."""
        plan = load_plan(self.layout)
        chunked = chunk_fingerprints(self.layout, plan)
        for key in facts_todo(self.layout, chunked):
            build_facts(self.layout, key, chunked[key])
        for name, make in (
            ("code_edges", lambda: build_edges(self.layout, self.settings.code, current_facts(self.layout, chunked))),
            (
                "knowledge_graph",
                lambda: make_graph(self.layout, chunked, extracted(self.settings, chunked), self.settings),
            ),
        ):
            if self.state(name).state != "fresh":
                make()

    def state(self, asset: str, found: Scan | None = None) -> AssetState:
        return next(state for state in asset_states(self.settings, found) if state.name == asset)

    def table(self, name: str) -> pa.Table:
        """Everything that is stored of one table, of all partitions."""
        schema = (SCHEMAS | GRAPH_SCHEMAS)[name]
        if name in LINKED:
            paths = [self.layout.graph / f"{name}.parquet"]
        elif name in PARTITIONED or name in GRAPH_SCHEMAS:
            paths = [self.layout.partition(key, name) for key in load_plan(self.layout)]
        else:
            paths = [self.layout.files if name == "files" else self.layout.skipped]
        stored = [read_table(path, schema) for path in paths if path.exists()]
        return pa.concat_tables([schema.empty_table(), *stored])

    def rows(self, name: str, path: str | None = None) -> Rows:
        """Rows of a table, of one corpus file if `path` is given."""
        return [row for row in self.table(name).to_pylist() if path is None or row["path"] == path]

    def hashes(self) -> dict[str, str]:
        """{table: hash of its rows}, equal for two homes that hold the same."""
        return {name: row_hash(self.table(name)) for name in SCHEMAS}

    def graph_hashes(self) -> dict[str, str]:
        """The same of the tables of code and graph, and the graph's generation, as readers see it."""
        hashes = {name: row_hash(self.table(name)) for name in GRAPH_SCHEMAS}
        record = graph_record(self.layout)
        generation = read_generation(self.layout.graph_store)
        assert record is not None and record["generation"] == generation
        return {**hashes, "generation": generation}

    def edges(self, *relations: str) -> set[tuple[str, str]]:
        """(source, target) of the graph's edges of some relations, of all if none is given."""
        rows = self.rows("edges")
        return {(row["source"], row["target"]) for row in rows if not relations or row["relation"] in relations}

    def entities(self) -> dict[str, dict[str, Any]]:
        """{id: row}"""
        return {row["id"]: row for row in self.rows("entities")}

    def search(self, question: str, k: int = 5) -> list[Result]:
        corpus = Corpus(self.settings.home)
        corpus.settings = self.settings
        return corpus.search(question, k)

    def paths(self, question: str, k: int = 5) -> list[str]:
        return [result.path for result in self.search(question, k)]

    def skipped(self) -> dict[str, tuple[str, str]]:
        """{path: (reason, detail)}"""
        return {row["path"]: (row["reason"], row["detail"]) for row in self.rows("skipped")}

    def problems(self) -> dict[str, str]:
        """{path: why its own parser was not used, or it was not read}"""
        return {row["path"]: row["problem"] for row in self.rows("documents") if row["problem"]}

    def definitions(self, path: str) -> dict[str, dict[str, Any]]:
        """{qualified name: row} of the functions and classes of a file."""
        return {row["name"]: row for row in self.rows("outline", path) if row["kind"] != "heading"}

    def headings(self, path: str) -> Rows:
        rows = [row for row in self.rows("outline", path) if row["kind"] == "heading"]
        return sorted(rows, key=lambda row: row["start"])


def titles_at(home: Home, path: str, *more: str) -> Rows:
    """The headings of a file in the words of case.json."""
    return [{name: row[name] for name in (*more, "title", "start")} for row in home.headings(path)]


def text_of(file: Path) -> str:
    """A file's text as the product defines it."""
    return decode(file.read_bytes(), python=file.suffix == ".py").text


def assert_exact(home: Home, root: Path) -> None:
    """Every chunk is `text[start:end]` of its file, on the lines it says, and no two of a file are the same piece."""
    for path in {row["path"] for row in home.rows("files")}:
        rows = home.rows("chunks", path)
        text = text_of(root / path)
        numbers = line_numbers(text)
        for row in rows:
            assert text[row["start"] : row["end"]] == row["text"]
            assert (row["start_line"], row["end_line"]) == (numbers[row["start"]], numbers[row["end"] - 1])
        assert len({row["start"] for row in rows}) == len({row["chunk_id"] for row in rows}) == len(rows)


def line_numbers(text: str) -> list[int]:
    """The 1-based line of each character, counted one at a time."""
    numbers, line = [], 1
    for at, character in enumerate(text):
        numbers.append(line)
        line += character == "\n" or (character == "\r" and text[at + 1 : at + 2] != "\n")
    return numbers


def line_of(text: str, offset: int) -> int:
    return line_numbers(text)[offset]


def assert_covered(text: str, rows: Rows) -> None:
    """Every character that is not blank is in exactly one of the rows."""
    times = [0] * len(text)
    for row in rows:
        span = slice(row["start"], row["end"])
        times[span] = [number + 1 for number in times[span]]
    wrong = [at for at, character in enumerate(text) if not character.isspace() and times[at] != 1]
    assert not wrong, [(at, text[at], times[at]) for at in wrong[:5]]


def as_defined(rows: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Outline rows in the words of case.json, but for the kind."""
    return sorted(
        (
            {
                "qualname": name,
                "def_line": row["name_line"],
                "first_line": row["start_line"],
                "end_line": row["end_line"],
                "start": row["start"],
                "end": row["end"],
            }
            for name, row in rows.items()
        ),
        key=lambda row: row["start"],
    )


def without_kind(rows: Rows) -> Rows:
    return [{name: value for name, value in row.items() if name != "kind"} for row in rows]


@dataclass(frozen=True)
class Said:
    """What a command returned and printed."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def hits(self) -> list[str]:
        """Paths of the results of `search --json`."""
        return [row["path"] for row in self.json["results"]]


Cli = Callable[..., Said]


def run_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str, stdin: bytes) -> Said:
    """Run `cgrag` in this process, as its entry point does."""
    from cgrag.cli import main

    capsys.readouterr()
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", ["cgrag", *words])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code: int | str | None = 0
        try:
            main()
        except SystemExit as end:
            code = end.code
    captured = capsys.readouterr()
    assert "Traceback" not in captured.err
    assert isinstance(code, int | None)
    return Said(code or 0, captured.out, captured.err)


def run_process(*words: str | bytes, home: Path, stdin: bytes = b"", **environment: str) -> Said:
    """Run `cgrag` as a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", "from cgrag.cli import main; main()", *words],
        input=stdin,
        capture_output=True,
        env=os.environ | {"CGRAG_HOME": str(home), "PYTHONPATH": str(PROJECT)} | environment,
        check=False,
        timeout=120,
    )
    assert b"Traceback" not in done.stderr, done.stderr.decode(errors="replace")
    return Said(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))


def write_tree(root: Path, files: Mapping[str, str]) -> Path:
    """Write text files below `root`; what is there stays."""
    for path, text in files.items():
        file = root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode())
    return root


def git(folder: Path, *words: str) -> str:
    """Run git as a nobody in particular."""
    identity = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    identity += ["-c", "core.excludesFile=/dev/null"]
    command = ["git", "-C", str(folder), *identity, *words]
    return subprocess.run(command, check=True, capture_output=True).stdout.decode(errors="surrogateescape")
