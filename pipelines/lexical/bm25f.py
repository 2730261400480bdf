"""BM25F as sparse matrices.

Robertson, Zaragoza, Taylor: Simple BM25 Extension to Multiple Weighted Fields (CIKM 2004): the frequencies of a term in
the fields of a document are normalised by field length, weighted and summed *before* they saturate.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import count

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from pipelines.lexical.tokens import terms, words
from pipelines.settings import FieldSettings


class TermCounter:
    """Counts terms of many texts at once: distinct words are broken into terms a single time.

    >>> counter = TermCounter()
    >>> first = counter.add(["get_code get_code", "code"])
    >>> counter.counts(first).toarray().tolist(), counter.vocabulary
    ([[2.0, 2.0, 2.0], [0.0, 0.0, 1.0]], {'get_cod': 0, 'get': 1, 'code': 2})
    """

    def __init__(self) -> None:
        self._words: defaultdict[str, int] = defaultdict(count().__next__)
        self._expansion: sparse.csr_array | None = None
        self.vocabulary: dict[str, int] = {}

    def add(self, texts: Iterable[str]) -> sparse.csr_array:
        """Return word counts, shape (texts, words so far), to be given to `counts`."""
        ids: list[int] = []
        bounds = [0]
        number = self._words.__getitem__
        for text in texts:
            ids.extend(map(number, words(text)))
            bounds.append(len(ids))
        self._expansion = None
        data = np.ones(len(ids), dtype=np.float32)
        raw = sparse.csr_array(
            (data, np.array(ids, dtype=np.int32), np.array(bounds)), shape=(len(bounds) - 1, len(self._words))
        )
        raw.sum_duplicates()
        return raw

    def counts(self, raw: sparse.csr_array) -> sparse.csr_array:
        """Return term counts, shape (texts, terms), float32; call it when all texts have been added."""
        if self._expansion is None:
            self._expansion = self._expand()
        widened = sparse.csr_array((raw.data, raw.indices, raw.indptr), shape=(raw.shape[0], len(self._words)))
        return sparse.csr_array(widened @ self._expansion)

    def _expand(self) -> sparse.csr_array:
        number: defaultdict[str, int] = defaultdict(count().__next__)
        ids: list[int] = []
        bounds = [0]
        for word in self._words:
            ids.extend(number[term] for term in terms(word))
            bounds.append(len(ids))
        self.vocabulary = dict(number)
        data = np.ones(len(ids), dtype=np.float32)
        return sparse.csr_array(
            (data, np.array(ids, dtype=np.int32), np.array(bounds)), shape=(len(self._words), len(number))
        )


@dataclass(frozen=True)
class Field:
    """Term counts of one field, shape (documents, terms), and its settings."""

    counts: sparse.csr_array
    settings: FieldSettings


def bm25f(fields: Sequence[Field], k1: float) -> sparse.csc_array:
    """Return the score of every term in every document, shape (documents, terms), float32.

    score = idf · tf / (k1 + tf), tf = Σ_field weight · count / (1 − b + b · length / mean length),
    idf = ln(1 + (N − df + ½) / (df + ½)), df = documents that have the term in any field.
    """
    documents, vocabulary = fields[0].counts.shape
    frequency = sparse.csr_array((documents, vocabulary), dtype=np.float64)
    for field in fields:
        frequency = frequency + sparse.diags_array(_length_weights(field)) @ field.counts
    scores = sparse.csc_array(frequency)
    scores.eliminate_zeros()
    df = np.diff(scores.indptr)
    idf = np.log1p((documents - df + 0.5) / (df + 0.5))
    scores.data = np.repeat(idf, df) * scores.data / (k1 + scores.data)
    scores.sort_indices()
    return scores.astype(np.float32)


def _length_weights(field: Field) -> NDArray[np.float64]:
    lengths = field.counts.sum(axis=1).astype(np.float64)
    mean = lengths.mean() if lengths.size else 0.0
    relative = lengths / mean if mean else lengths
    b = field.settings.b
    return np.asarray(field.settings.weight / (1 - b + b * relative + (relative == 0) * 1e-9))
