"""The stored matrix, memory-mapped, and what a question's vector is like."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.dense.encoder import Model, Vectors, is_installed, model_of
from pipelines.dense.place import place_of, stored_records
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.lexical.index import LexicalIndex
from pipelines.serve.models import revision_of
from pipelines.settings import Settings
from pipelines.tables import read_record

REBUILD = "Build it anew:  cgrag run --select chunk_embeddings"


@dataclass(frozen=True)
class DenseIndex:
    """A loaded matrix: rows of length 1 (or zeros), one for each unit; chunks are numbered as in the lexical index."""

    vectors: Vectors
    """Shape (units, dimension)."""
    chunk_of: NDArray[np.int32]
    """For each unit the number of its chunk, ascending."""
    first: NDArray[np.int64]
    """For each chunk the number of its first unit, and at the end that of all units, shape (chunks + 1,)."""
    places: pa.Table
    """For each unit start_line, end_line and name."""
    generation: str

    def cosines(self, query: Vectors, chunks: Sequence[int] | None = None) -> tuple[Vectors, NDArray[np.int64]]:
        """Return how like the query each chunk's most similar unit is, and which unit that is.

        Both have shape (chunks,), in the order of `chunks`, or of all of them where None. A chunk without units has
        cosine -1 and unit -1. Of equal units the first counts.

        Raises:
            CgragError: the query's dimension is another, or a vector is no number.
        """
        if len(self.vectors) and query.shape != self.vectors.shape[1:]:
            raise CgragError(
                f"The question's vector has {len(query)} numbers, those of the index {self.vectors.shape[1]}.", REBUILD
            )
        wanted = np.arange(len(self.first) - 1) if chunks is None else np.asarray(chunks, dtype=np.int64)
        counts = self.first[wanted + 1] - self.first[wanted]
        begins = np.cumsum(counts) - counts
        best = np.full(len(wanted), -1, dtype=np.float32)
        unit = np.full(len(wanted), -1, dtype=np.int64)
        if not counts.sum():
            return best, unit
        owner = np.repeat(np.arange(len(wanted)), counts)
        units = np.arange(len(owner)) + (self.first[wanted] - begins)[owner]
        # row by row: a product by many threads would wait for those with which torch has just embedded the question
        found = np.vecdot(self.vectors if chunks is None else self.vectors[units], query)
        if not np.isfinite(found).all():
            raise CgragError("The dense index holds vectors that are no numbers.", REBUILD)
        best[counts > 0] = np.maximum.reduceat(found, begins[counts > 0])
        same = np.flatnonzero(found == best[owner])[::-1]  # backwards, so that the first of equal ones is left
        unit[owner[same]] = units[same]
        return best, unit


def vectors_generation(settings: Settings) -> str | None:
    """Which matrix of the settings' model is stored; None where there is none."""
    record = place_of(Layout(settings.home), model_of(settings)).record()
    return record["generation"] if record else None


def can_ask_vectors(settings: Settings) -> bool:
    """Whether the stored matrix is of the settings' model and the indexed chunks, and what embeds is installed."""
    layout = Layout(settings.home)
    record, index = place_of(layout, model_of(settings)).record(), read_record(layout.bm25)
    return is_installed() and record is not None and index is not None and record["chunks"] == index.get("chunks")


def load_vectors(settings: Settings, index: LexicalIndex) -> DenseIndex:
    """Return the current matrix of the settings' model, memory-mapped.

    Raises:
        CgragError: there is none, it is damaged, or it is of other chunks than the lexical index.
    """
    record = _record(settings)
    if record["chunks"] != index.chunked:
        raise CgragError(
            "The dense index and the search index are of different chunks.", "Bring both up to date:  cgrag run"
        )
    try:
        vectors, chunk_of, places = _files(settings, record)
    except CgragError:
        if _record(settings) != record:
            return load_vectors(settings, index)  # it was replaced while it was being read
        raise
    first = np.searchsorted(chunk_of, np.arange(len(index) + 1)).astype(np.int64)
    return DenseIndex(vectors, chunk_of, first, places, record["generation"])


def stored_vectors(settings: Settings) -> Vectors:
    """Return the stored matrix of the settings' model, of whatever chunks, shape (units, dimension).

    Raises:
        CgragError: there is none, or it is damaged.
    """
    return _files(settings, _record(settings))[0]


def _record(settings: Settings) -> dict[str, Any]:
    """What the manifest of the settings' model says."""
    layout, model = Layout(settings.home), model_of(settings)
    place = place_of(layout, model)
    record = place.record()
    if record is not None:
        return record
    if place.manifest.exists():
        raise CgragError(f"{place.manifest} is damaged.", REBUILD)
    others = list(stored_records(layout))
    if not others:
        remedy = "Build them:  make dense   or   cgrag run --select chunk_embeddings"
        raise CgragError(f"{layout.home} has no embeddings yet.", remedy)
    built = " and ".join(f"{Model(**other['model'])} ({other['dimension']})" for other in others)
    last = Model(**others[-1]["model"])
    revision = "" if revision_of(last.name) else f" CGRAG_EMBED__REVISION={last.revision}" if last.revision else ""
    raise CgragError(
        f"The dense index was built with {built}, the settings ask for {model}.",
        f"{REBUILD}      or go back:  CGRAG_EMBED__MODEL={last.name} CGRAG_EMBED__TOKENS={last.tokens}{revision}",
    )


def _files(settings: Settings, record: dict[str, Any]) -> tuple[Vectors, NDArray[np.int32], pa.Table]:
    folder = place_of(Layout(settings.home), model_of(settings)).matrix(record)
    rows = record["rows"]
    try:
        vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        chunk_of = np.load(folder / "chunk_of.npy", allow_pickle=False)
        places = pa.ipc.open_file(pa.memory_map(str(folder / "places.arrow"))).read_all()
        shapes = (vectors.shape, chunk_of.shape, places.num_rows)
        if shapes != ((rows, record["dimension"]), (rows,), rows) or vectors.dtype != np.float32:
            raise ValueError(f"its files have {shapes}, not {rows} units")
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise CgragError(f"The dense index in {folder} is damaged: {error}", REBUILD) from error
    return vectors, chunk_of, places
