"""Ranking: prefixes, ties, names and lines of what is found."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cgrag import Corpus
from pipelines.errors import CgragError
from pipelines.lexical.index import load_index
from pipelines.retrieve.search import lexical_scores, snippet, top_k
from pipelines.settings import ChunkSettings
from tests.support import write_tree

SCORES = st.lists(st.sampled_from([0.0, 0.5, 1.0, 1.0, 2.5]), max_size=40).map(np.float32)


@settings(max_examples=200)
@given(SCORES, st.integers(1, 50), st.integers(0, 50))
def test_the_top_k_is_a_prefix_of_every_longer_list(scores, k, more):
    assert top_k(scores, k) == top_k(scores, k + more)[:k]


@settings(max_examples=200)
@given(SCORES, st.integers(1, 50))
def test_the_top_k_is_that_of_sorting_everything(scores, k):
    order = sorted((number for number in range(len(scores)) if scores[number] > 0), key=lambda n: (-scores[n], n))
    assert top_k(scores, k) == order[:k]


@pytest.fixture
def small(tree, new_home):
    write_tree(
        tree,
        {
            "zoo/vole.py": "class Vole:\n    def dig(self):\n        return 'tunnel'\n\n"
            "    def eat(self):\n        return 'seed'\n",
            "notes.md": "# Animals\n\nintro\n\n## Moles\n\nThe mole digs a tunnel.\n\n## Otters\n\nThe otter swims.\n",
            **{f"same/{letter}.txt": "marten\n" for letter in "abcdefgh"},
        },
    )
    home = new_home(chunking=ChunkSettings(section=0))
    home.build(tree)
    return home


def test_ties_are_in_order_of_chunk_ids(small):
    hits = small.search("marten", 20)
    assert len(hits) == 8
    assert len({hit.score for hit in hits}) == 1
    assert [hit.chunk_id for hit in hits] == sorted(hit.chunk_id for hit in hits)
    for k in range(1, 9):
        assert small.search("marten", k) == hits[:k]


@pytest.mark.parametrize("k", [1, 2, 3, 10, 10_000])
def test_a_shorter_list_is_the_beginning_of_a_longer_one(small, k):
    for question in ("tunnel", "dig a tunnel", "the otter and the marten", "vole"):
        assert small.search(question, k) == small.search(question, 10_000)[:k]


def test_results_are_numbered_best_first_and_exact(small, tree):
    hits = small.search("dig tunnel", 10)
    assert [hit.rank for hit in hits] == list(range(1, len(hits) + 1))
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    for hit in hits:
        assert (tree / hit.path).read_text()[hit.start : hit.end] == hit.text
        assert hit.via == "lexical"


def test_the_best_part_of_a_result_is_the_smallest_that_has_most_of_the_question(small):
    parts = {hit.path: hit.part for hit in small.search("dig tunnel")}
    assert (parts["zoo/vole.py"].name, parts["zoo/vole.py"].start_line, parts["zoo/vole.py"].end_line) == (
        "Vole.dig", 2, 3,
    )  # fmt: skip
    assert (parts["notes.md"].name, parts["notes.md"].start_line) == ("Animals > Moles", 5)
    assert small.search("seed")[0].part.name == "Vole.eat"
    assert small.search("Vole eat dig")[0].part.name == "Vole"


def test_why_names_words_that_the_chunk_has(small):
    for hit in small.search("digs tunnel otter"):
        for word in hit.why.removeprefix("has ").split(", "):
            assert word in hit.text.lower()
    assert small.search("zoo")[0].why == "its path or headings have words of the question"


def test_a_snippet_has_the_lines_with_most_of_the_question(small):
    (hit,) = [hit for hit in small.search("mole digs tunnel") if hit.path == "notes.md"]
    lines = dict(snippet(hit, "mole digs tunnel", most=1))
    assert lines == {7: "The mole digs a tunnel."}


def test_lines_of_a_snippet_are_those_of_the_file(tree, home):
    text = "x\r\n\r\n\r\ny = 'wombat'\r\rz\n"
    write_tree(tree, {"a.py": text})
    home.build(tree)
    (hit,) = home.search("wombat")
    assert (4, "y = 'wombat'") in snippet(hit, "wombat")


@pytest.mark.parametrize("question", ["", " ", "\n\t", "\u2003"])
def test_a_blank_question_is_refused(small, question):
    with pytest.raises(CgragError, match="empty"):
        small.search(question)


def test_a_question_without_a_known_word_has_no_results(small):
    assert small.search("zyzzyva qwertz") == []
    assert small.search("the of and") == []
    assert small.search("?!") == []


def test_scores_never_fall_when_the_question_is_asked_twice_over(small):
    assert small.search("tunnel tunnel tunnel") == small.search("tunnel")


def test_no_score_is_negative_or_not_a_number(small):
    scores = lexical_scores(load_index(small.settings), ["tunnel", "marten", "nothing"])
    assert np.all(np.isfinite(scores))
    assert np.all(scores >= 0)


def test_the_python_api_opens_a_rebuilt_index_by_itself(small, tree):
    corpus = Corpus(small.settings.home)
    corpus.settings = small.settings
    assert corpus.search("badger") == []
    held = corpus.index
    assert corpus.index is held
    write_tree(tree, {"new.txt": "badger\n"})
    small.build(tree)
    assert [hit.path for hit in corpus.search("badger")] == ["new.txt"]


def test_the_python_api_takes_the_home_of_the_settings(small, monkeypatch):
    monkeypatch.setenv("CGRAG_HOME", str(small.settings.home))
    monkeypatch.setenv("CGRAG_CHUNKING__SECTION", "0")
    assert Corpus().search("otter")[0].path == "notes.md"
