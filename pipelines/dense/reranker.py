"""An optional cross-encoder, which reads question and text together: slower, and better where one can be had."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pipelines.dense.encoder import INSTALL, Vectors
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
        """Return how well each text answers, 0 to 1 by rank among them, shape (texts,); what is no number is last."""
        raw = np.asarray(self._model.predict([(question, text) for text in texts], show_progress_bar=False))
        values = np.nan_to_num(raw.astype(np.float32).reshape(len(texts), -1)[:, 0], nan=-np.inf)
        return (np.argsort(np.argsort(values, kind="stable"), kind="stable") / max(len(texts), 1)).astype(np.float32)


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
    except (OSError, ValueError, RuntimeError) as error:
        raise CgragError(
            f"The re-ranker {name} cannot be loaded: {str(error).strip().splitlines()[0]}",
            "Name one that can:  CGRAG_EMBED__RERANKER=…      or do without:  unset CGRAG_EMBED__RERANKER",
        ) from error
