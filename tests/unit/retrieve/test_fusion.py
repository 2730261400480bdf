"""Fusion: shares of the best, on any scale, and no other candidates."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipelines.retrieve.fusion import fuse, share_of_best

scores = arrays(np.float32, 5, elements=st.integers(0, 800).map(lambda number: number / 8))


@given(scores, st.floats(0.0078125, 1024, width=32))
def test_the_scale_of_bm25_does_not_matter(lexical, scale):
    cosines = np.float32([0.1, 0.4, 0.2, 0.0, 0.3])
    assert np.allclose(fuse(lexical, cosines, 0.4), fuse(lexical * np.float32(scale), cosines, 0.4), atol=1e-3)


@given(scores, arrays(np.float32, 5, elements=st.floats(-1, 1, width=32)), st.floats(0, 4))
def test_it_is_what_its_formula_says_one_candidate_at_a_time(lexical, cosines, weight):
    best, nearest = float(lexical.max()), max(float(cosines.max()), 0.0)
    for got, score, cosine in zip(fuse(lexical, cosines, weight), lexical, cosines, strict=True):
        wanted = (float(score) / best if best else 0) + (weight * max(float(cosine), 0) / nearest if nearest else 0)
        assert got == pytest.approx(wanted, abs=1e-4)


def test_negative_cosines_and_empty_rankings_add_nothing():
    assert fuse(np.float32([2, 1]), np.float32([-1, -0.5]), 0.4).tolist() == [1, 0.5]
    assert fuse(np.float32([]), np.float32([]), 0.4).tolist() == []
    assert share_of_best(np.float32([0, 0])).tolist() == [0, 0]


def test_other_candidates_are_refused():
    with pytest.raises(ValueError, match="same candidates"):
        fuse(np.float32([1]), np.float32([1, 2]), 0.4)
