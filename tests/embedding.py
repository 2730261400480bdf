"""An encoder without a model: texts that share words are alike."""

import hashlib
import re
from collections.abc import Callable, Sequence

import numpy as np

from pipelines.corpus.scan import load_plan
from pipelines.dense.build import BuiltVectors, build_vectors
from pipelines.dense.encoder import Encoder, Vectors, model_of, unit_length
from pipelines.dense.place import Place, place_of
from pipelines.state import chunk_fingerprints
from tests.support import Home


class FakeEncoder:
    """Each word adds to one of `dimension` numbers; remembers what it was asked, and may be told to fail."""

    def __init__(self, dimension: int = 64, act: Callable[[int], None] = lambda number: None) -> None:
        self.dimension = dimension
        self.asked: list[str] = []
        self.calls = 0
        self.act = act
        self.raw: Callable[[str, Vectors], Vectors] = lambda text, vector: vector

    def encode(self, texts: Sequence[str], kind: str) -> Vectors:
        self.calls += 1
        self.act(self.calls)
        self.asked += texts
        return unit_length(np.stack([self.raw(text, self._vector(text)) for text in texts]))

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self.dimension, dtype=np.float32)
        for word in re.findall(r"\w+", text.lower()):
            vector[hashlib.blake2b(word.encode()).digest()[0] % self.dimension] += 1
        return vector


def embed(home: Home, encoder: Encoder, tell: Callable[[str], None] = lambda text: None) -> BuiltVectors:
    """Embed what a home's chunks lack."""
    chunked = chunk_fingerprints(home.layout, load_plan(home.layout))
    return build_vectors(home.settings, chunked, lambda: encoder, tell=tell)


def place(home: Home) -> Place:
    """Where the vectors of a home's model lie."""
    return place_of(home.layout, model_of(home.settings))
