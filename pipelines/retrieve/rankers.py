"""The three ways to rank: by terms, by vectors, and by both."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from pipelines.errors import CgragError
from pipelines.lexical.index import LexicalIndex
from pipelines.lexical.tokens import query_terms
from pipelines.retrieve.fusion import fuse, share_of_best
from pipelines.retrieve.search import Mode, Near, Part, Ranker, Scored, lexical_scores, top_k
from pipelines.settings import EmbedSettings, Settings

if TYPE_CHECKING:
    from pipelines.dense.encoder import Encoder, Vectors
    from pipelines.dense.index import DenseIndex
    from pipelines.dense.reranker import Reranker


def open_ranker(mode: Mode, index: LexicalIndex, settings: Settings) -> Ranker:
    """Return the ranker of a mode; only the two with vectors load torch.

    Raises:
        CgragError: the mode is unknown, or there are no vectors of the settings' model, or nothing to embed with.
    """
    if mode == "lexical":
        return Lexical(index)
    if mode not in ("dense", "hybrid"):
        raise CgragError(f"There is no mode {mode!r}.", "The modes are: lexical, dense, hybrid")
    from pipelines.dense.encoder import load_encoder
    from pipelines.dense.index import load_vectors
    from pipelines.dense.reranker import load_reranker

    vectors = load_vectors(settings, index)
    encoder = load_encoder(settings)
    if mode == "dense":
        return Dense(index, vectors, encoder)
    return Hybrid(index, vectors, encoder, settings.embed, load_reranker(settings) if settings.embed.reranker else None)


class Lexical:
    """BM25F over the fields of a chunk, and its file's share."""

    mode: Mode = "lexical"

    def __init__(self, index: LexicalIndex) -> None:
        self.index = index

    def score(self, questions: Sequence[str]) -> Iterator[Scored]:
        for question in questions:
            asked = query_terms(question)
            yield Scored(asked, lexical_scores(self.index, asked))


class Dense:
    """The cosine of the question and a chunk's most similar unit."""

    mode: Mode = "dense"

    def __init__(self, index: LexicalIndex, vectors: "DenseIndex", encoder: "Encoder") -> None:
        self.index, self._vectors, self._encoder = index, vectors, encoder

    def score(self, questions: Sequence[str]) -> Iterator[Scored]:
        for question, query in zip(questions, self._encoder.encode(questions, "query"), strict=True):
            yield _by_vectors(self._vectors, query, query_terms(question))


class Hybrid:
    """The lexical ranking's first candidates ranked anew by both scores, then the rest of the lexical ranking.

    A question without a term of the corpus is ranked by its vector alone. With a cross-encoder, the first few are
    ranked once more by what that makes of question and text.
    """

    mode: Mode = "hybrid"

    def __init__(
        self,
        index: LexicalIndex,
        vectors: "DenseIndex",
        encoder: "Encoder",
        settings: EmbedSettings,
        reranker: "Reranker | None" = None,
    ) -> None:
        self.index, self._vectors, self._encoder = index, vectors, encoder
        self._settings, self._reranker = settings, reranker

    def score(self, questions: Sequence[str]) -> Iterator[Scored]:
        for question, query in zip(questions, self._encoder.encode(questions, "query"), strict=True):
            scored = self._fused(question, query)
            yield self._reranked(question, scored) if self._reranker else scored

    def _fused(self, question: str, query: "Vectors") -> Scored:
        asked = query_terms(question)
        lexical = share_of_best(lexical_scores(self.index, asked))
        candidates = top_k(lexical, self._settings.candidates)
        if not candidates:
            return _by_vectors(self._vectors, query, asked)
        cosines, units = self._vectors.cosines(query, candidates)
        lexical[candidates] = fuse(lexical[candidates], cosines, self._settings.weight)
        found = {number: (float(c), int(u)) for number, c, u in zip(candidates, cosines, units, strict=True)}

        def near(number: int) -> Near | None:
            return _near(self._vectors, *found[number]) if number in found else None

        return Scored(asked, lexical, near)

    def _reranked(self, question: str, scored: Scored) -> Scored:
        """The first few above all others, by the cross-encoder's scores."""
        assert self._reranker is not None
        first = top_k(scored.scores, self._reranker.depth)
        if not first:
            return scored
        texts = [self.index.table["text"][number].as_py() for number in first]
        scores = scored.scores.copy()
        scores[first] = scores.max() + 1 + self._reranker.score(question, texts)
        return Scored(scored.asked, scores, scored.near)


def _by_vectors(vectors: "DenseIndex", query: "Vectors", asked: Sequence[str]) -> Scored:
    cosines, units = vectors.cosines(query)
    return Scored(
        asked,
        np.maximum(cosines, np.float32(0)),
        lambda number: _near(vectors, float(cosines[number]), int(units[number])),
    )


def _near(vectors: "DenseIndex", cosine: float, unit: int) -> Near | None:
    if unit < 0:
        return None
    place = vectors.places.slice(unit, 1).to_pylist()[0]
    return Near(cosine, Part(place["name"], place["start_line"], place["end_line"]))
