"""Recall and hits: which sources the handed-over spans cover, and from which rank on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.places import Span

Ranking = list[Span]
"""Spans handed over for a question, best first."""
NEVER = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Truth:
    """The sources of all questions, one after the other; every question has at least one."""

    sources: list[Span]
    owner: NDArray[np.int64]
    """The number of the question that each source belongs to."""
    questions: int


def truth(sources: Sequence[Sequence[Span]]) -> Truth:
    """Return the sources of all questions, flattened."""
    counts = [len(spans) for spans in sources]
    return Truth([span for spans in sources for span in spans], np.repeat(np.arange(len(counts)), counts), len(counts))


def first_ranks(asked: Truth, rankings: Sequence[Ranking], min_coverage: float) -> NDArray[np.int64]:
    """Return for each source the first rank whose span covers it, shape (sources,); NEVER where none does.

    A span covers a source when it holds at least `min_coverage` (0 to 1) of the source's characters.

    >>> asked = truth([[Span("a.py", 0, 10)], [Span("b.py", 0, 10)]])
    >>> first_ranks(asked, [[Span("b.py", 0, 9), Span("a.py", 5, 20)], []], 0.5)[0]
    np.int64(2)
    """
    depth = max((len(ranking) for ranking in rankings), default=0)
    if not depth or not asked.sources:
        return np.full(len(asked.sources), NEVER)
    file_number = {path: number for number, path in enumerate({span.path for span in asked.sources})}
    handed = np.full((asked.questions, depth, 3), -1, dtype=np.int64)  # file, start, end; the padding is no file
    for row, ranking in zip(handed, rankings, strict=True):
        if ranking:
            row[: len(ranking)] = [(file_number.get(path, -1), start, end) for path, start, end in ranking]
    files, starts, ends = np.array([[file_number[path], start, end] for path, start, end in asked.sources]).T[
        :, :, None
    ]
    handed = handed[asked.owner]
    overlap = np.minimum(handed[:, :, 2], ends) - np.maximum(handed[:, :, 1], starts)
    covered = (handed[:, :, 0] == files) & (overlap > 0) & (overlap + 1e-9 >= min_coverage * (ends - starts))
    return np.where(covered.any(axis=1), covered.argmax(axis=1) + 1, NEVER)


def recall(asked: Truth, ranks: NDArray[np.int64], k: int | None = None) -> NDArray[np.float64]:
    """Return each question's share of sources covered by the first `k` ranks (all, where None), shape (questions,)."""
    covered = ranks < NEVER if k is None else ranks <= k
    found = np.bincount(asked.owner, weights=covered, minlength=asked.questions)
    return np.asarray(found / np.bincount(asked.owner, minlength=asked.questions))
