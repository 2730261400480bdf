"""Intervals against resampling one question at a time, and their exact cases."""

import random
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from pipelines.evaluate.bootstrap import intervals


def slow_interval(values: list[float], resamples: int) -> tuple[float, float]:
    draw = random.Random(1)
    means = sorted(statistics.fmean(draw.choices(values, k=len(values))) for _ in range(resamples))
    return means[int(resamples * 0.025)], means[int(resamples * 0.975)]


@pytest.mark.parametrize("seed", range(3))
def test_intervals_are_those_of_a_loop(seed):
    draw = np.random.default_rng(seed)
    found, matched = draw.choice([0, 0.5, 1], size=(2, 60))
    low, high = intervals(np.column_stack([found, found - matched]))
    for column, values in enumerate((found, found - matched)):
        slow_low, slow_high = slow_interval(values.tolist(), 3000)
        assert low[column] == pytest.approx(slow_low, abs=0.03)
        assert high[column] == pytest.approx(slow_high, abs=0.03)


@settings(max_examples=20)
@given(arrays(np.float64, st.integers(1, 30), elements=st.sampled_from([0, 0.25, 1 / 3, 1])))
def test_identical_arms_differ_by_nothing(values):
    low, high = intervals((values - values)[:, None])
    assert (low.tolist(), high.tolist()) == ([0.0], [0.0])


def test_the_mean_lies_inside_and_columns_do_not_disturb_each_other():
    values = np.random.default_rng(0).random((40, 3))
    low, high = intervals(values)
    assert ((low < values.mean(axis=0)) & (values.mean(axis=0) < high)).all()
    alone = intervals(values[:, [1]])
    assert (alone[0][0], alone[1][0]) == pytest.approx((low[1], high[1]), abs=1e-12)


def test_one_question_has_no_spread():
    assert [ends.tolist() for ends in intervals(np.array([[0.5]]))] == [[0.5], [0.5]]
