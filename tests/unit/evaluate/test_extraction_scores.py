"""Scores of extractions, against a plain count."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.evaluate.annotations import HEADING, Annotated, Note
from pipelines.evaluate.bootstrap import ratio_interval
from pipelines.evaluate.extraction_scores import Said, key, score, share, truth_of

NAMES = ["a", "b", "c"]
edges = st.frozensets(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(["CALLS", "RELATES_TO"]), st.sampled_from(NAMES)), max_size=5
)
said = st.builds(Said, st.dictionaries(st.sampled_from(NAMES), st.sampled_from(["Class", "Concept"])), edges)


def is_true(edge, truth):
    source, relation, target = edge
    return edge in truth or (relation == "RELATES_TO" and (target, relation, source) in truth)


@settings(max_examples=30)
@given(st.lists(st.tuples(said, said), min_size=1, max_size=4))
def test_shares_are_what_a_plain_count_gives(chunks):
    told, truth = [one for one, _ in chunks], [true for _, true in chunks]
    scores = score("x", told, truth)
    right = sum(is_true(edge, t.edges) for s, t in chunks for edge in s.edges)
    met = sum(is_true(edge, s.edges) for s, t in chunks for edge in t.edges)
    assert (scores.edges.right, scores.edges.found) == (right, sum(len(s.edges) for s in told))
    assert (scores.edge_recall.right, scores.edge_recall.found) == (met, sum(len(t.edges) for t in truth))
    assert scores.mentions.right == sum(len(s.names.keys() & t.names.keys()) for s, t in chunks)
    both = [(s.names[n], t.names[n]) for s, t in chunks for n in s.names.keys() & t.names.keys()]
    assert scores.types.right == sum(one == other for one, other in both)
    assert sum(one.found for one in scores.labels.values()) == scores.edges.found
    assert sum(one.right for one in scores.labels.values()) == scores.edges.right
    assert scores.pairs.right / max(scores.pairs.found, 1) >= 0
    for one in (scores.edges, scores.mentions):
        assert 0 <= one.low <= one.high <= 1


def test_an_edge_from_a_title_counts_as_one_from_the_heading():
    truth = Said({}, frozenset({(HEADING, "REFERENCES", "x"), ("use", "CALLS", "y")}))
    told = {("use", "REFERENCES", "x"), ("use", "CALLS", "y"), ("x", "REFERENCES", "y")}
    scores = score("m", [Said({}, frozenset(told), frozenset({"use"}))], [truth])
    assert (scores.edges.right, scores.edge_recall.right) == (2, 2)


def test_the_truth_of_a_chunk_names_things_by_their_texts():
    notes = (Note("`LLM`", 0, "Class", "a.py::LLM"), Note("KV caches", 9, "Concept", None))
    edges = (("a.py::LLM", "REFERENCES", "KV caches"), ("#", "CALLS", "`LLM`"))
    chunk = Annotated("c", "a.md", 0, (), "x", "h", notes, edges)
    assert truth_of(chunk).names == {"llm": "Class", "kv cache": "Concept"}
    assert truth_of(chunk).edges == {("llm", "REFERENCES", "kv cache"), ("#", "CALLS", "llm")}


@pytest.mark.parametrize("names", [("Request", "requests"), ("`run()`", "run"), ("KV  Cache", "kv caches")])
def test_spellings_of_one_name(names):
    assert len(set(map(key, names))) == 1


@pytest.mark.parametrize("names", [("clas", "class"), ("C", "C++"), ("as", "a")])
def test_names_that_differ(names):
    assert len(set(map(key, names))) == 2


@settings(max_examples=30)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(3, 6)), min_size=2, max_size=8))
def test_the_interval_holds_the_share_and_equals_a_plain_bootstrap(rows):
    right, found = np.array(rows, dtype=float).T
    low, high = ratio_interval(right, found)
    assert low <= right.sum() / found.sum() <= high
    draws = np.random.default_rng(1)
    plain = []
    for _ in range(2000):
        at = draws.integers(len(rows), size=len(rows))
        plain.append(right[at].sum() / found[at].sum())
    assert np.allclose((low, high), np.percentile(plain, (2.5, 97.5)), atol=0.12)


def test_of_nothing_there_is_no_share():
    nothing = share([(0, 0), (0, 0)])
    assert (nothing.found, nothing.value, nothing.low, nothing.high) == (0, 0, 0, 1)
    assert all(one.value <= other.value for one, other in pairwise([share([(0, 1)]), share([(1, 2)]), share([(2, 2)])]))
