"""Percentile intervals by resampling questions (Efron, Tibshirani: An Introduction to the Bootstrap, chapter 13)."""

import numpy as np
from numpy.typing import NDArray

SEED = 20_250_810
RESAMPLES = 10_000
_BATCH = 500
_PERCENTILES = (2.5, 97.5)


def intervals(values: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the ends of the 95 % interval of each column's mean; `values` has shape (questions, columns).

    All columns are resampled together, so a column of differences gives the paired interval, exactly [0, 0] where two
    arms agree on every question. The seed is fixed: the same values in the same order give the same interval.

    >>> [ends.tolist() for ends in intervals(np.zeros((3, 1)))]
    [[0.0], [0.0]]
    """
    questions, columns = values.shape
    draws = np.random.default_rng(SEED)
    means = np.empty((RESAMPLES, columns))
    row = questions * np.arange(_BATCH)[:, None]
    for first in range(0, RESAMPLES, _BATCH):
        drawn = draws.integers(questions, size=(_BATCH, questions)) + row
        times = np.bincount(drawn.ravel(), minlength=_BATCH * questions).reshape(_BATCH, questions)
        means[first : first + _BATCH] = times @ values / questions
    low, high = np.percentile(means, _PERCENTILES, axis=0)
    return low, high


def ratio_interval(right: NDArray[np.float64], found: NDArray[np.float64]) -> tuple[float, float]:
    """Return the ends of the 95 % interval of `sum(right) / sum(found)`, both of shape (chunks,), resampled by chunk.

    Samples in which nothing was found say nothing; where nothing was found at all, it is all that there is: [0, 1].

    >>> ratio_interval(np.ones(3), np.full(3, 2.0))
    (0.5, 0.5)
    """
    chunks = len(right)
    if not chunks or not found.any():
        return 0.0, 1.0
    draws = np.random.default_rng(SEED)
    drawn = draws.integers(chunks, size=(RESAMPLES, chunks))
    above, below = right[drawn].sum(axis=1), found[drawn].sum(axis=1)
    low, high = np.percentile(above[below > 0] / below[below > 0], _PERCENTILES)
    return float(low), float(high)
