"""An optional cross-encoder, which reads question and text together: slower, and better where one can be had."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dense.encoder import INSTALL, Vectors, first_line
from pipelines.errors import CgragError
from pipelines.settings import Settings

_DEPTH = 50


class Reranker:
    """A loaded cross-encoder."""

    depth = _DEPTH
    """How many of a ranking's first it ranks anew."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def score(self, question: str, texts: Sequence[str]) -> Vectors:
        """Return each text's place among them as a share, 1 for the best, shape (texts,); equal ones keep their order.

        What is no number is last.
        """
        raw = np.asarray(self._model.predict([(question, text) for text in texts], show_progress_bar=False))
        values = np.nan_to_num(raw.astype(np.float32).reshape(len(texts), -1)[:, 0], nan=-np.inf)
        places = np.empty(len(texts), dtype=np.float32)
        places[np.argsort(-values, kind="stable")] = np.arange(len(texts), 0, -1)
        return places / np.float32(len(texts))


def load_reranker(settings: Settings) -> Reranker:
    """Return the cross-encoder of the settings.

    Raises:
        CgragError: sentence-transformers is not installed, or there is no such model.
    """
    name = settings.embed.reranker
    try:
        from sentence_transformers import CrossEncoder
    except ImportError as error:
        raise CgragError(f"Re-ranking needs sentence-transformers: {error}.", INSTALL) from error
    folder = Path(name).expanduser()
    try:
        return Reranker(CrossEncoder(str(folder) if folder.is_dir() else name, max_length=512))
    except Exception as error:  # of torch, transformers, safetensors, the hub: each has its own
        raise CgragError(
            f"The re-ranker {name} cannot be loaded: {first_line(error)}",
            "Name one that can:  CGRAG_EMBED__RERANKER=…      or do without:  unset CGRAG_EMBED__RERANKER",
        ) from error
