"""What turns texts into vectors: a sentence-transformers model on this machine."""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import CgragError
from pipelines.progress import Reporter, no_report
from pipelines.serve.models import model_files, revision_of
from pipelines.settings import Settings

BATCH = 64
_LONGEST = 20_000
"""Characters of a text that are looked at: no model takes as many, and a file of data costs no minutes."""
INSTALL = "Install it:  make dense      or:  pip install 'constrained-graphrag[dense]'"
Vectors = NDArray[np.float32]


class Encoder(Protocol):
    """Texts become rows of length 1, shape (texts, dimension); one that is no number becomes zeros, like nothing."""

    @property
    def dimension(self) -> int: ...

    def encode(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors: ...


@dataclass(frozen=True)
class Model:
    """Which model, as its vectors are marked with; vectors of different ones are never compared."""

    name: str
    revision: str
    tokens: int

    def __str__(self) -> str:
        return f"{self.name}{f'@{self.revision}' if self.revision else ''}, {self.tokens} tokens"


def model_of(settings: Settings) -> Model:
    """Return the model that the settings name; loads nothing."""
    embed = settings.embed
    return Model(embed.model, revision_of(embed.model) or embed.revision, embed.tokens)


def is_installed() -> bool:
    """Whether there is what encodes; imports nothing."""
    return all(find_spec(name) for name in ("sentence_transformers", "torch"))


def load_encoder(
    settings: Settings, report: Reporter = no_report, tell: Callable[[str], None] = lambda text: None
) -> Encoder:
    """Return the encoder of the settings, on a GPU where there is one with room, else on the CPU.

    bf16 where the machine computes in it, which is twice as fast and moves no ranking beyond noise.

    Raises:
        CgragError: sentence-transformers is not installed, or there is no such model.
    """
    try:
        import torch
        from sentence_transformers import SentenceTransformer
        from transformers.utils import logging as transformers_logging
    except ImportError as error:
        raise CgragError(f"Dense search needs sentence-transformers: {error}.", INSTALL) from error
    embed = settings.embed
    files = model_files(settings, embed.model, report, "CGRAG_EMBED__MODEL")
    transformers_logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.getLogger("sentence_transformers").setLevel(logging.WARNING)

    def load(device: str) -> Any:
        dtype = torch.bfloat16 if _has_bf16(torch, device) else torch.float32
        loaded = SentenceTransformer(
            files, device=device, revision=embed.revision or None, model_kwargs={"dtype": dtype}
        )
        loaded.max_seq_length = min(embed.tokens, loaded.max_seq_length or embed.tokens)
        return loaded

    device = embed.device if embed.device != "auto" else "cuda" if torch.cuda.is_available() else "cpu"
    try:
        return SentenceEncoder(load(device), load, device, tell)
    except Exception as error:  # of torch, transformers, safetensors, the hub: each has its own
        if device == "cuda" and out_of_memory(error):
            tell(f"The GPU has no room for {embed.model}: embedding on the CPU.")
            return SentenceEncoder(load("cpu"), load, "cpu", tell)
        raise CgragError(
            f"The embedding model {embed.model} cannot be loaded: {first_line(error)}",
            "Name a model that can, or the device that it is for:  CGRAG_EMBED__MODEL=… CGRAG_EMBED__DEVICE=cpu",
        ) from error


def out_of_memory(error: Exception) -> bool:
    """Whether a GPU has no room: torch says so in several ways, of which only one has a class of its own."""
    told = str(error)
    full = ("out of memory", "CUBLAS_STATUS_ALLOC_FAILED", "CUBLAS_STATUS_NOT_INITIALIZED")
    return isinstance(error, RuntimeError) and any(words in told for words in full)


def first_line(error: Exception) -> str:
    """What an exception says, in a line."""
    return next(iter(str(error).strip().splitlines()), "") or type(error).__name__


def _has_bf16(torch: Any, device: str) -> bool:
    if device == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    known = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return bool(known.get("avx512_bf16") or known.get("amx_bf16"))


class SentenceEncoder:
    """A loaded model; goes on on the CPU when a GPU runs out of memory."""

    def __init__(self, model: Any, load: Callable[[str], Any], device: str, tell: Callable[[str], None]) -> None:
        self._model, self._load, self._device, self._tell = model, load, device, tell

    @property
    def dimension(self) -> int:
        return int(self._model.get_embedding_dimension())

    def encode(self, texts: Sequence[str], kind: Literal["document", "query"]) -> Vectors:
        """Return the vectors of texts; a query and a document each get the model's own prompt, if it has one."""
        cut = [text[:_LONGEST].encode("utf-8", "replace").decode() for text in texts]  # no tokenizer takes a surrogate
        try:
            return unit_length(self._encoded(cut, kind))
        except RuntimeError as error:
            if self._device == "cpu" or not out_of_memory(error):
                raise
        self._tell("The GPU has run out of memory: embedding goes on on the CPU.")
        self._device = "cpu"
        self._model = self._load("cpu")
        return unit_length(self._encoded(cut, kind))

    def _encoded(self, texts: list[str], kind: Literal["document", "query"]) -> Vectors:
        encode = self._model.encode_query if kind == "query" else self._model.encode_document
        vectors: Vectors = encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
        return vectors


def unit_length(vectors: NDArray[Any]) -> Vectors:
    """Return rows of length 1, in float32; a row of zeros, or one that is no number, becomes zeros.

    >>> unit_length(np.float32([[3, 4], [0, 0], [np.nan, 1]])).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0], [0.0, 0.0]]
    """
    rows = np.asarray(vectors, dtype=np.float64)
    good = usable(rows)[:, None]
    return np.where(good, rows / np.where(good, np.linalg.norm(rows, axis=1, keepdims=True), 1), 0).astype(np.float32)


def usable(vectors: NDArray[Any]) -> NDArray[np.bool_]:
    """Return for each row whether it is like anything, shape (rows,): numbers throughout, and not all zero.

    >>> usable(np.float32([[3, 4], [0, 0], [np.nan, 1]])).tolist()
    [True, False, False]
    """
    lengths = np.linalg.norm(vectors, axis=1)
    found: NDArray[np.bool_] = np.isfinite(lengths) & (lengths > 0)
    return found
