"""The graph as a pure function of rows, and what it refuses to be."""

import random
from dataclasses import replace

import pyarrow as pa
import pytest

from pipelines.graph.build import MOST_EVIDENCE, build_graph
from pipelines.graph.invariants import Refused, check_graph
from pipelines.graph.names import search_key
from pipelines.graph.tables import EDGES, MENTIONS, generation
from tests.unit.graph.conftest import TREE, inputs


def test_entities_are_symbols_pages_headings_and_files_that_are_linked(graph):
    types = dict(zip(graph.entities["id"].to_pylist(), graph.entities["type"].to_pylist(), strict=True))
    assert types == {
        "docs/empty.md": "Concept",
        "docs/use.md": "Concept",
        "docs/use.md::Use": "Concept",
        "docs/use.md::Use > Deeper": "Concept",
        "pkg/__init__.py": "Module",
        "pkg/core.py": "Module",
        "pkg/core.py::Base": "Class",
        "pkg/core.py::Base.run": "Function",
        "pkg/core.py::LIMIT": "Variable",
        "pkg/core.py::helper": "Function",
        "pkg/more.py": "Module",
        "pkg/more.py::More": "Class",
        "pkg/more.py::More.go": "Function",
    }


def test_edges_with_origin_weight_and_evidence(graph):
    edges = {(row["source"], row["relation"], row["target"]): row for row in graph.edges.to_pylist()}
    calls = edges["pkg/more.py::More.go", "CALLS", "pkg/core.py::Base.run"]
    assert (calls["origin"], calls["binding"], calls["weight"]) == ("parse", "self", 2)
    assert [place["start_line"] for place in calls["evidence"]] == [6, 7]
    assert all(place["path"] == "pkg/more.py" and place["chunk_id"] for place in calls["evidence"])
    assert edges["docs/use.md::Use", "REFERENCES", "pkg/core.py::Base.run"]["origin"] == "link"
    assert ("docs/use.md::Use > Deeper", "DEFINED_IN", "docs/use.md::Use") in edges
    assert ("docs/use.md::Use > Deeper", "REFERENCES", "docs/use.md::Use") in edges
    assert ("pkg/core.py::helper", "REFERENCES", "pkg/core.py::LIMIT") in edges


@pytest.mark.parametrize("cap", [200, 2000])
def test_mentions_are_text_of_their_chunk(cap):
    facts, documents, outline, chunks, sites = inputs(TREE, cap)
    graph = build_graph(facts, documents, outline, chunks, sites)
    for row in graph.mentions.to_pylist():
        path = next(chunk["path"] for chunk in chunks if chunk["chunk_id"] == row["chunk_id"])
        assert TREE[path][row["start"] : row["end"]] == row["text"] != ""
        assert TREE[path].count("\n", 0, row["start"]) + 1 == row["line"]
    defined = {row["entity"]: row["text"] for row in graph.mentions.to_pylist() if row["kind"] == "definition"}
    assert defined["pkg/core.py::Base.run"] == "run" and defined["docs/use.md::Use > Deeper"] == "Deeper"


def test_neither_order_nor_repetition_matters(graph):
    rows = [list(part) for part in inputs(TREE)[:4]]
    sites = inputs(TREE)[4]
    for part in rows:
        random.Random(1).shuffle(part)
    again = build_graph(*rows, {origin: list(reversed(found)) + found for origin, found in reversed(sites.items())})
    assert again.tables() == graph.tables()
    assert generation(again.tables()) == generation(graph.tables())


def test_another_text_is_another_generation(graph):
    other = build_graph(*inputs({**TREE, "pkg/core.py": TREE["pkg/core.py"] + "# end\n"}))
    assert generation(other.tables()) != generation(graph.tables())


def test_evidence_is_bounded_but_weight_counts_all():
    tree = {"a.py": "def f(): 1\ndef g():\n" + "    f()\n" * 50}
    (edge,) = [row for row in build_graph(*inputs(tree)).edges.to_pylist() if row["relation"] == "CALLS"]
    assert (edge["weight"], len(edge["evidence"])) == (50, MOST_EVIDENCE)


def test_an_empty_corpus_is_an_empty_graph():
    graph = build_graph(*inputs({}))
    assert [table.num_rows for table in graph.tables().values()] == [0, 0, 0]
    check_graph(graph, [], 0)


@pytest.mark.parametrize(
    ("name", "key"), [("C", "c"), ("C++", "c++"), ("C#", "c#"), ("ﬁnd_It", "findit"), ("__", "__")]
)
def test_search_keys_keep_punctuation(name, key):
    assert search_key(name) == key


def broken(graph, name, change):
    rows = change([dict(row) for row in graph.tables()[name].to_pylist()])
    return replace(graph, **{name: pa.Table.from_pylist(rows, graph.tables()[name].schema)})


@pytest.mark.parametrize(
    ("invariant", "name", "change"),
    [
        ("identity", "entities", lambda rows: [*rows, rows[0]]),
        ("identity", "edges", lambda rows: [*rows, rows[0]]),
        ("ends", "entities", lambda rows: [row for row in rows if row["name"] != "Base"]),
        ("mentions", "mentions", lambda rows: [{**rows[0], "text": "nothing"}, *rows[1:]]),
        ("mentions", "mentions", lambda rows: [{**rows[0], "start": rows[0]["start"] + 1}, *rows[1:]]),
        ("mentions", "mentions", lambda rows: [{**rows[0], "entity": "nowhere"}, *rows[1:]]),
        ("generation", "mentions", lambda rows: [{**rows[0], "chunk_id": "of before"}, *rows[1:]]),
        ("empty", "edges", lambda rows: [row for row in rows if row["relation"] != "DEFINED_IN"]),
    ],
)
def test_what_is_refused(graph, invariant, name, change):
    chunks = inputs(TREE)[3]
    check_graph(graph, chunks, 5)
    with pytest.raises(Refused, match="Build again:  cgrag run") as error:
        check_graph(broken(graph, name, change), chunks, 5)
    assert error.value.invariant == invariant


def test_schemas_name_no_run_and_no_time():
    assert not {"run_id", "time", "created"} & {*EDGES.names, *MENTIONS.names}
