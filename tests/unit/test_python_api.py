"""`import cgrag` from a notebook: results, rows, edges and an evaluation in a few lines."""

import json

import pytest

from cgrag import Corpus
from pipelines.errors import CgragError
from pipelines.stored import TABLES
from tests.support import write_tree


@pytest.fixture
def corpus(home, tree, monkeypatch):
    home.build(
        write_tree(tree, {"a.py": "def f():\n    return g()\n\n\ndef g():\n    return 1\n", "b.md": "# B\n\nbee\n"})
    )
    return Corpus(home.settings.home)


def test_a_search_has_paths_lines_and_names(corpus):
    (first, *_) = corpus.search("bee", k=2)
    assert (first.path, first.part.name, first.via) == ("b.md", "B", "lexical")
    assert corpus.search("bee", k=1) == [first]


def test_the_graph_is_asked_by_name(corpus):
    graph = corpus.graph()
    found = graph.edges([match.id for match in graph.find("g")], ["CALLS"], "in")
    assert [(edge.source, edge.target) for edge in found] == [("a.py::f", "a.py::g")]


def test_a_structural_question_is_answered(corpus):
    answer = corpus.answer("Who calls `g`?")
    assert (answer.by, [(row["source"], row["target"]) for row in answer.edges]) == ("graph", [("a.py::f", "a.py::g")])
    assert [source.path for source in corpus.answer("bee?", model=False).sources] == ["b.md"]


def test_every_table_is_at_hand(corpus, home):
    for name in TABLES:
        rows = corpus.table(name)
        assert rows.schema.equals(TABLES[name])
        if name not in ("skipped", "extractions"):
            assert sorted(map(str, rows.to_pylist())) == sorted(map(str, home.rows(name))) != []


def test_an_unknown_table_and_an_empty_home_are_told(corpus, tmp_path):
    with pytest.raises(CgragError, match="no table 'nodes'"):
        corpus.table("nodes")
    with pytest.raises(CgragError, match="is missing"):
        Corpus(tmp_path / "empty").table("edges")


def test_an_evaluation_has_rows(corpus, tmp_path):
    source = {"file_path": "b.md", "first_character_index": 0, "last_character_index": 8}
    asked = {"question_id": "1", "question": "bee", "sources": [source]}
    (tmp_path / "asked.json").write_text(json.dumps({"rag_questions": [asked]}))
    found = corpus.evaluate(tmp_path / "asked.json", modes=["lexical"], arms=["plain"], ks=[1])
    assert [(row.mode, row.arm, row.k, row.recall) for row in found.rows] == [("lexical", "plain", 1, 1.0)]
