"""Recall by arrays against one pair at a time, and what must hold of any ranking."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.evaluate.places import Span
from pipelines.evaluate.scoring import NEVER, first_ranks, recall, truth

spans = st.builds(
    lambda path, start, length: Span(path, start, start + length),
    st.sampled_from("abc"),
    st.integers(0, 30),
    st.integers(-2, 20),
)
questions = st.lists(
    st.tuples(st.lists(spans, min_size=1, max_size=4, unique=True), st.lists(spans, max_size=6)), min_size=1, max_size=6
)
coverages = st.sampled_from([0.01, 0.3, 0.5, 0.7, 1.0])


def slow_recall(sources: list[Span], ranking: list[Span], k: int, coverage: float) -> float:
    """The definition, character by character."""
    found = 0
    for source in sources:
        wanted = set(range(source.start, source.end))
        for span in ranking[:k]:
            shared = wanted & set(range(span.start, span.end)) if span.path == source.path else set()
            if shared and len(shared) + 1e-9 >= coverage * len(wanted):
                found += 1
                break
    return found / len(sources)


@given(questions, coverages, st.integers(1, 7))
def test_recall_is_the_share_of_sources_that_some_span_covers(asked, coverage, k):
    wanted = truth([sources for sources, _ in asked])
    ranks = first_ranks(wanted, [ranking for _, ranking in asked], coverage)
    assert recall(wanted, ranks, k).tolist() == pytest.approx([slow_recall(s, r, k, coverage) for s, r in asked])


@given(questions, coverages)
def test_recall_grows_with_k(asked, coverage):
    wanted = truth([sources for sources, _ in asked])
    ranks = first_ranks(wanted, [ranking for _, ranking in asked], coverage)
    by_k = np.stack([recall(wanted, ranks, k) for k in range(1, 8)])
    assert (np.diff(by_k, axis=0) >= 0).all()
    assert recall(wanted, ranks).tolist() == by_k[-1].tolist()


@given(questions)
def test_more_coverage_finds_no_more(asked):
    wanted = truth([sources for sources, _ in asked])
    rankings = [ranking for _, ranking in asked]
    assert (first_ranks(wanted, rankings, 0.9) >= first_ranks(wanted, rankings, 0.4)).all()


def test_half_of_a_source_is_enough_and_a_character_less_is_not():
    wanted = truth([[Span("a", 10, 20)]])
    assert first_ranks(wanted, [[Span("a", 0, 15)]], 0.5).tolist() == [1]
    assert first_ranks(wanted, [[Span("a", 0, 14)]], 0.5).tolist() == [NEVER]


def test_two_halves_in_two_spans_do_not_add_up():
    wanted = truth([[Span("a", 0, 10)]])
    assert first_ranks(wanted, [[Span("a", 0, 5), Span("a", 5, 10)]], 0.8).tolist() == [NEVER]
