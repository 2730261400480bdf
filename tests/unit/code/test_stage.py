"""The stages of facts and edges: what they are built from, what makes them stale, and what they write."""

import pytest

from pipelines.code import stage
from pipelines.code.stage import (
    build_edges,
    build_facts,
    current_facts,
    facts_fingerprint,
    read_facts,
    read_unresolved,
    stored_facts,
)
from pipelines.errors import CgragError
from pipelines.state import chunk_fingerprints, facts_todo
from tests.support import write_tree

TREE = {
    "a/core.py": "class Core:\n    def run(self): return helper()\n\n\ndef helper(): return unknown()\n",
    "a/broken.py": "def (:\n",
    "b/use.py": "from a.core import Core\n\n\ndef main(): Core().run()\n",
    "b/read.md": "# Read\n\nSee [the core](../a/core.py) and `a.core.helper`.\n",
    "notes.txt": "nothing\n",
}


@pytest.fixture
def small(tree, new_home):
    """A home of three partitions, built."""
    write_tree(tree, TREE)
    home = new_home(partition_chunks=0)
    home.build(tree)
    return home


def all_facts(home):
    return current_facts(home.layout, chunk_fingerprints(home.layout, ["a", "b", "."]))


def test_facts_are_of_files_that_parse_and_links_of_pages(small):
    assert {row["path"] for row in small.rows("code_facts")} == {"a/core.py", "b/use.py"}
    assert {row["path"] for row in small.rows("page_links")} == {"b/read.md", "notes.txt"}
    symbols = {file.symbol_id(number) for file in read_facts(small.layout, ["a"]) for number in range(4)}
    assert symbols == {"a/core.py", "a/core.py::Core", "a/core.py::Core.run", "a/core.py::helper"}


def test_what_is_returned_is_what_was_written(small):
    result = build_facts(small.layout, "a", chunk_fingerprints(small.layout, ["a"])["a"])
    assert (result.files, result.symbols, result.pages, result.links) == (1, 4, 0, 0)
    assert result.fingerprint == stored_facts(small.layout, "a")
    assert result.preview[1] == {"symbol": "a/core.py::Core", "kind": "class", "line": 1}
    result = build_facts(small.layout, "b", chunk_fingerprints(small.layout, ["b"])["b"])
    assert (result.files, result.pages, result.links) == (1, 1, 2)


def test_edges_across_files_and_what_is_left_out(small):
    result = build_edges(small.layout, small.settings.code, all_facts(small))
    assert result.sites == {"CALLS": 3, "DEFINED_IN": 4, "IMPORTS": 2, "REFERENCES": 2}
    assert sum(result.tiers.values()) == sum(result.sites.values())
    calls = {(row["source"], row["target"], row["line"]) for row in small.rows("sites") if row["relation"] == "CALLS"}
    assert calls == {
        ("a/core.py::Core.run", "a/core.py::helper", 2),
        ("b/use.py::main", "a/core.py::Core", 4),
        ("b/use.py::main", "a/core.py::Core.run", 4),
    }
    links = {(row["source"], row["target"]) for row in small.rows("links")}
    assert links == {("b/read.md::Read", "a/core.py"), ("b/read.md::Read", "a/core.py::helper")}
    (lost,) = [row for row in read_unresolved(small.layout).to_pylist() if row["kind"] == "call"]
    assert (lost["path"], lost["line"], lost["name"]) == ("a/core.py", 5, "unknown")


def test_the_source_is_not_opened_again(small, tree):
    before = small.graph_hashes()
    for file in tree.rglob("*.*"):
        file.unlink()
    for key, fingerprint in chunk_fingerprints(small.layout, ["a", "b", "."]).items():
        build_facts(small.layout, key, fingerprint)
    assert small.graph_hashes() == before


def test_a_changed_file_makes_the_facts_of_its_partition_stale_and_no_other(small, tree):
    write_tree(tree, {"b/use.py": "def main(): 1\n"})
    before = all_facts(small)
    small.build(tree)
    after = all_facts(small)
    assert {key for key in before if before[key] != after[key]} == {"b"}


@pytest.mark.parametrize("table", ["code_facts", "page_links"])
def test_facts_of_which_a_table_is_gone_or_damaged_are_to_be_built_again(small, table):
    chunked = chunk_fingerprints(small.layout, ["a", "b"])
    assert facts_todo(small.layout, chunked) == []
    small.layout.partition("a", table).unlink()
    small.layout.partition("b", table).write_bytes(b"damaged")
    assert facts_todo(small.layout, chunked) == ["a", "b"]
    assert small.state("code_facts").todo == ["a", "b"]
    small.build_graph()
    assert small.state("code_facts").state == "fresh"


def test_another_version_of_the_parser_makes_all_facts_stale(small, monkeypatch):
    monkeypatch.setattr(stage, "FACTS_VERSION", 99)
    assert small.state("code_facts").todo == [".", "a", "b"]
    assert facts_fingerprint("x") != stored_facts(small.layout, "a")


def test_another_hook_makes_the_edges_stale_but_not_the_facts(small):
    small.settings.code.hooks = {"other.Base": "forward"}
    assert small.state("code_facts").state == "fresh"
    assert small.state("code_edges").state == "stale"
    small.build_graph()
    assert {small.state(name).state for name in ("code_edges", "knowledge_graph")} == {"fresh"}


def test_facts_of_chunks_that_have_changed_since_take_no_part(small, tree, monkeypatch):
    write_tree(tree, {"b/use.py": "# moved down\n\n\n" + TREE["b/use.py"]})
    with monkeypatch.context() as patch:
        patch.setattr("tests.support.facts_todo", lambda *arguments: [])
        small.build(tree)
    assert set(all_facts(small)) == {".", "a"}
    assert not any(name.startswith("b/use.py::") for name in small.entities())
    assert small.state("code_edges").state == "stale"
    small.build_graph()
    assert small.entities()["b/use.py::main"]["start_line"] == 7


def test_edges_need_facts(small):
    small.layout.partition("a", "code_facts").unlink()
    with pytest.raises(CgragError, match="cgrag run"):
        build_edges(small.layout, small.settings.code, {"a": "any"})


def test_progress_counts_partitions(small):
    seen = []
    facts = all_facts(small)
    build_edges(small.layout, small.settings.code, facts, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
