"""The stage of the graph: what makes it stale, what it refuses, and that increments equal a clean build."""

import random
import shutil

import pyarrow as pa
import pytest

from pipelines.chunking.partition import chunk_partition
from pipelines.code.stage import build_facts
from pipelines.corpus.scan import store_scan
from pipelines.errors import CgragError
from pipelines.extract.partition import Stored
from pipelines.graph import stage
from pipelines.graph.build import Graph
from pipelines.graph.invariants import Refused
from pipelines.graph.look_up import open_graph
from pipelines.graph.stage import make_graph
from pipelines.graph.store import graph_record, read_generation
from pipelines.state import chunk_fingerprints, graph_counts
from pipelines.tables import write_json
from tests.support import write_tree

TREE = {
    "a/core.py": "class Core:\n    def run(self): return helper()\n\n\ndef helper(): return LIMIT\n\n\nLIMIT = 1\n",
    "b/use.py": "from a.core import Core\n\n\nclass Use(Core):\n    def go(self): self.run()\n",
    "b/read.md": "# Read\n\nSee [the core](../a/core.py).\n\n## More\n\nof `a.core.helper`\n",
}


@pytest.fixture
def small(tree, new_home):
    write_tree(tree, TREE)
    home = new_home(partition_chunks=0)
    home.build(tree)
    return home


def make(home):
    return make_graph(home.layout, chunk_fingerprints(home.layout, ["a", "b"]), Stored(), home.settings)


def test_ids_names_and_lines_of_entities(small):
    rows = small.entities()
    shown = {name: (row["type"], row["name"], row["key"], row["start_line"], row["end_line"])
             for name, row in rows.items()}  # fmt: skip
    assert shown == {
        "a/core.py": ("Module", "a/core.py", "core", 1, 8),
        "a/core.py::Core": ("Class", "Core", "core", 1, 2),
        "a/core.py::Core.run": ("Function", "Core.run", "run", 2, 2),
        "a/core.py::helper": ("Function", "helper", "helper", 5, 5),
        "a/core.py::LIMIT": ("Variable", "LIMIT", "limit", 8, 8),
        "b/use.py": ("Module", "b/use.py", "use", 1, 5),
        "b/use.py::Use": ("Class", "Use", "use", 4, 5),
        "b/use.py::Use.go": ("Function", "Use.go", "go", 5, 5),
        "b/read.md": ("Concept", "b/read.md", "read", 1, 7),
        "b/read.md::Read": ("Concept", "Read", "read", 1, 7),
        "b/read.md::Read > More": ("Concept", "More", "more", 5, 7),
    }


def test_the_record_and_the_result_agree_with_the_tables(small):
    result = make(small)
    record = graph_record(small.layout)
    assert record["generation"] == result.generation == read_generation(small.layout.graph_store)
    assert result.edges == record["edges_by_relation"]
    assert sum(result.edges.values()) == len(small.rows("edges"))
    assert result.mentions == len(small.rows("mentions"))
    assert graph_counts(small.settings) == {
        "symbols": 8,
        "entities": 11,
        "edges": result.edges,
        "edges_by_origin": result.edges_by_origin,
        "mentions": result.mentions,
        "admission": [
            {"origin": v.origin, "recipe": v.recipe, "admitted": v.admitted, "why": v.why, "override": v.override}
            for v in result.admission.values()
        ],
        "merged": {},
        "absent": [],
    }


def test_building_again_is_the_same_generation(small):
    before = small.graph_hashes()
    make(small)
    assert small.graph_hashes() == before


def test_the_store_holds_what_the_tables_hold(small):
    walk = open_graph(small.settings)
    found = {(edge.source, edge.relation, edge.target) for entity in small.entities() for edge in walk.edges([entity])}
    assert found == {(row["source"], row["relation"], row["target"]) for row in small.rows("edges")}


def test_a_graph_is_stale_after_its_edges_and_missing_without_its_store(small, tree):
    assert small.state("knowledge_graph").state == "fresh"
    write_tree(tree, {"b/use.py": "def other(): 1\n"})
    found = small.scan(tree)
    small.layout.graph_store.unlink()
    assert small.state("knowledge_graph").state == "missing"
    small.build_scan(found, tree)
    assert small.state("knowledge_graph").state == "fresh"
    assert "b/use.py::other" in small.entities()


def test_a_damaged_record_is_no_graph(small):
    small.layout.graph_record.write_text("{")
    assert graph_record(small.layout) is None
    assert small.state("knowledge_graph").state == "missing"
    assert graph_counts(small.settings)["entities"] == 0
    with pytest.raises(CgragError, match="cgrag run"):
        open_graph(small.settings)


def test_a_graph_needs_edges(small):
    (small.layout.graph / "links.parquet").unlink()
    assert small.state("code_edges").state == "missing"
    with pytest.raises(CgragError, match="The code edges are not built"):
        make(small)


def without(name, condition):
    """A builder whose graph lacks some rows of a table."""
    really_build = stage.build_graph

    def build(*arguments):
        tables = really_build(*arguments).tables()
        rows = [row for row in tables[name].to_pylist() if not condition(row)]
        return Graph(**tables | {name: pa.Table.from_pylist(rows, tables[name].schema)})

    return build


@pytest.mark.parametrize(
    ("invariant", "name", "condition"),
    [
        ("ends", "entities", lambda row: row["name"] == "helper"),
        ("empty", "edges", lambda row: row["relation"] == "DEFINED_IN"),
        ("empty", "edges", lambda row: True),
    ],
)
def test_a_refused_graph_leaves_the_last_one_to_be_read(small, tree, monkeypatch, invariant, name, condition):
    before = small.graph_hashes()
    write_tree(tree, {"b/use.py": "from a.core import helper\n\n\ndef more(): helper()\n"})
    monkeypatch.setattr(stage, "build_graph", without(name, condition))
    with pytest.raises(Refused, match="The last graph stays in place") as error:
        small.build(tree)
    assert error.value.invariant == invariant
    after = small.graph_hashes()
    assert [after[table] for table in ("entities", "edges", "mentions", "generation")] == [
        before[table] for table in ("entities", "edges", "mentions", "generation")
    ]
    assert [entity.id for entity in open_graph(small.settings).find("Use.go")] == ["b/use.py::Use.go"]
    assert small.state("knowledge_graph").state == "stale"
    monkeypatch.undo()
    small.build_graph()
    assert open_graph(small.settings).find("Use.go") == []


def test_a_build_that_stops_half_way_is_made_up_for(small, tree, monkeypatch):
    def stop(*arguments):
        raise OSError("no space left")

    write_tree(tree, {"b/use.py": "def later(): 1\n"})
    with monkeypatch.context() as patch:
        patch.setattr(stage, "write_store", stop)
        with pytest.raises(OSError, match="no space"):
            small.build(tree)
    assert [entity.id for entity in open_graph(small.settings).find("Use.go")] == ["b/use.py::Use.go"]
    assert small.state("knowledge_graph").state == "stale"
    small.build_graph()
    assert "b/use.py::later" in small.entities()
    assert small.state("knowledge_graph").state == "fresh"


def test_an_empty_corpus_is_an_empty_graph(tree, home):
    home.build(tree)
    assert [home.rows(name) for name in ("entities", "edges", "mentions")] == [[], [], []]
    assert home.state("knowledge_graph").state == "fresh"
    assert open_graph(home.settings).find("anything") == []


def test_an_emptied_corpus_is_one_too(small, tree):
    shutil.rmtree(tree / "a")
    shutil.rmtree(tree / "b")
    small.build(tree)
    assert [small.rows(name) for name in ("entities", "edges", "mentions")] == [[], [], []]


def test_a_corpus_of_docs_is_a_graph_of_pages_and_headings(tree, home):
    write_tree(tree, {"a.md": "# A\n\n[b](b.md#sub)\n", "b.md": "# B\n\n## Sub\n\nwords\n", "c.txt": "plain\n"})
    home.build(tree)
    assert set(home.entities()) == {"a.md", "a.md::A", "b.md", "b.md::B", "b.md::B > Sub", "c.txt"}
    assert {row["type"] for row in home.rows("entities")} == {"Concept"}
    assert home.edges("REFERENCES") == {("a.md::A", "b.md::B > Sub")}
    assert home.edges("CALLS", "IMPORTS", "INHERITS_FROM") == set()


# increments

TEXTS = {
    "py": [
        "def f(): return g()\n",
        "from a.one import f\n\n\ndef g(): f()\n",
        "from . import two\nfrom b.two import *\n\n\nclass A:\n    def m(self): return f(g())\n",
        "import a.one\nfrom b.two import A\n\n\nclass B(A):\n    def m(self): a.one.f(super().m())\n",
        "def broken(:\n",
        "",
        "x = {'A': 'a.one:f'}\n",
    ],
    "md": ["# T\n\n[one](../a/one.py) `a.one.f`\n", "# T\n\n## U\n\n[t](../b/t.md#t) `B.m`\n", "", "words\n"],
}
PATHS = ["a/one.py", "a/__init__.py", "b/two.py", "b/__init__.py", "c/d/three.py", "b/t.md", "t.md"]


def change(tree, chance):
    """Write, rename or delete a file at random."""
    present = [path for path in PATHS if (tree / path).exists()]
    path = chance.choice(PATHS)
    kind = chance.choice(["write", "write", "write", "rename", "delete"])
    if kind == "write" or not present:
        write_tree(tree, {path: chance.choice(TEXTS[path.rpartition(".")[2]])})
    elif kind == "delete":
        (tree / chance.choice(present)).unlink()
    else:
        old = chance.choice(present)
        new = chance.choice([name for name in PATHS if name.endswith(old[-3:])])
        (tree / new).parent.mkdir(parents=True, exist_ok=True)
        (tree / old).rename(tree / new)


@pytest.mark.parametrize("seed", range(6))
def test_any_sequence_of_changes_equals_a_clean_build(seed, tree, new_home):
    chance = random.Random(seed)
    home = new_home(partition_chunks=chance.choice([0, 400]))
    for path in PATHS:
        write_tree(tree, {path: chance.choice(TEXTS[path.rpartition(".")[2]])})
    home.build(tree)
    for _ in range(4):
        for _ in range(chance.randint(1, 3)):
            change(tree, chance)
        home.build(tree)
    clean = new_home()
    clean.build(tree)
    assert home.graph_hashes() == clean.graph_hashes()
    assert home.hashes() == clean.hashes()


def test_a_graph_of_other_chunks_edges_is_refused(small, tree):
    write_tree(tree, {"a/core.py": "\n" + TREE["a/core.py"]})
    plan = store_scan(small.scan(tree), small.settings)
    chunk_partition(tree, "a", plan.partitions["a"], small.settings.chunking, small.layout)
    build_facts(small.layout, "a", chunk_fingerprints(small.layout, ["a"])["a"])
    before = graph_record(small.layout)
    with pytest.raises(CgragError, match="edges are not of the stored chunks"):
        make(small)
    assert graph_record(small.layout) == before


def test_a_graph_that_was_cut_off_between_its_files_is_built_again(small):
    record = graph_record(small.layout)
    write_json(small.layout.graph_record, record | {"generation": "another"})
    assert small.state("knowledge_graph").state == "stale"
    with pytest.raises(CgragError, match="cut off while it was being written"):
        open_graph(small.settings)
    small.build_graph()
    assert graph_record(small.layout) == record
    assert open_graph(small.settings).find("helper")


def test_a_heading_is_mentioned_where_it_stands(small, tree):
    write_tree(tree, {"b/read.md": "# The `Foo` class\n\ntext\n\nThe Foo class does it.\n"})
    small.build(tree)
    (row,) = (row for row in small.rows("mentions") if row["entity"] == "b/read.md::The Foo class")
    assert (row["start"], row["text"], row["line"]) == (2, "The", 1)
