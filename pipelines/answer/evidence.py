"""How much of a question the sources have: the score by which it is told whether the corpus can answer it."""

from collections.abc import Sequence

import numpy as np

from pipelines.lexical.index import LexicalIndex
from pipelines.lexical.tokens import query_terms, terms, words
from pipelines.retrieve.search import Result

_BEST = 3


def evidence(index: LexicalIndex, question: str, results: Sequence[Result]) -> float:
    """Return the share of a question's words, by weight, that the best of the first three results has; 0 to 1.

    A term's weight is its inverse document frequency, log(1 + (N - n + 0.5) / (n + 0.5)) of n in N chunks (BM25's), so
    that a rare word that no source has counts most against them. No vectors: how high a cosine is high enough differs
    from model to model.
    """
    asked = query_terms(question)
    documents = np.diff(index.chunks.scores["indptr"])
    numbers = [index.chunks.vocab_dict.get(term) for term in asked]
    counts = np.array([0 if number is None else documents[number] for number in numbers], dtype=np.float64)
    weights = np.log1p((len(index) - counts + 0.5) / (counts + 0.5))
    total = float(weights.sum())
    if not total:
        return 0.0
    weight_of = dict(zip(asked, weights.tolist(), strict=True))
    held = [{term for word in words(f"{r.path} {r.text}") for term in terms(word)} for r in results[:_BEST]]
    return max((sum(weight for term, weight in weight_of.items() if term in have) for have in held), default=0) / total
