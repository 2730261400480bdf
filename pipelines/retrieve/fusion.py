"""Fusion of a lexical and a dense ranking over the same candidates."""

import numpy as np
from numpy.typing import NDArray

Scores = NDArray[np.float32]


def fuse(lexical: Scores, cosines: Scores, weight: float) -> Scores:
    """Return `lexical / max + weight · cosine / max`, shape (candidates,); a negative cosine counts as zero.

    Both are over the same candidates in the same order. Shares of the best, not ranks: how far BM25F's first is ahead
    says how sure it is, which reciprocal ranks throw away (README, Dense vectors).

    >>> fuse(np.float32([4, 2]), np.float32([0.25, 0.5]), 0.5).tolist()
    [1.25, 1.0]

    Raises:
        ValueError: the shapes differ.
    """
    if lexical.shape != cosines.shape:
        raise ValueError(f"fuse needs scores of the same candidates, got {lexical.shape} and {cosines.shape}")
    return share_of_best(lexical) + np.float32(weight) * share_of_best(cosines)


def share_of_best(scores: Scores) -> Scores:
    """Return scores as shares of the highest, negative ones as zero; all zero where none is positive.

    >>> share_of_best(np.float32([2, 1, -1])).tolist(), share_of_best(np.float32([-1])).tolist()
    ([1.0, 0.5, 0.0], [0.0])
    """
    positive = np.maximum(scores, np.float32(0))
    best = positive.max(initial=0)
    return positive / best if best > 0 else positive
