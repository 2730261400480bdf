"""How much of a question the sources have: the score by which it is told whether the corpus can answer it."""

from collections.abc import Sequence

import numpy as np

from pipelines.lexical.index import LexicalIndex
from pipelines.lexical.tokens import query_terms, terms_of
from pipelines.retrieve.search import Result

_BEST = 3


def evidence(index: LexicalIndex, question: str, results: Sequence[Result]) -> float:
    """Return how much of a question the best of the first three results has, from 0 to 1: by its words, or its meaning.

    By words, it is the share of the question's terms, each weighted by its inverse document frequency, log(1 + (N - n +
    0.5) / (n + 0.5)) of n in N chunks (BM25's): a rare word that no source has counts most against them. By meaning, it
    is the cosine, where vectors were asked. The higher of the two counts: a mistyped word has no share in any source.
    """
    best = results[:_BEST]
    asked = query_terms(question)
    documents = np.diff(index.chunks.scores["indptr"])
    numbers = [index.chunks.vocab_dict.get(term) for term in asked]
    counts = np.array([0 if number is None else documents[number] for number in numbers], dtype=np.float64)
    weights = np.log1p((len(index) - counts + 0.5) / (counts + 0.5))
    weight_of = dict(zip(asked, weights.tolist(), strict=True))
    held = [terms_of(f"{result.path} {result.text}") for result in best]
    most = max((sum(weight for term, weight in weight_of.items() if term in have) for have in held), default=0.0)
    share = most / float(weights.sum()) if asked else 0.0
    return max(share, *(result.cosine for result in best), 0.0)
