"""The stored matrix, memory-mapped, and what a question's vector is like."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.dense.build import VERSION
from pipelines.dense.encoder import Vectors, model_of
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.lexical.index import LexicalIndex
from pipelines.settings import Settings
from pipelines.tables import read_json, read_record

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
    """Which matrix is stored, of whatever model; None where there is none."""
    record = read_record(Layout(settings.home).dense)
    return record["generation"] if record else None


def can_ask_vectors(settings: Settings) -> bool:
    """Whether a matrix is stored, and what embeds a question is installed."""
    return vectors_generation(settings) is not None and find_spec("sentence_transformers") is not None


def load_vectors(settings: Settings, index: LexicalIndex) -> DenseIndex:
    """Return the current matrix, memory-mapped.

    Raises:
        CgragError: there is none, it is damaged, it is of another model than the settings', or of other chunks than
            the lexical index.
    """
    layout = Layout(settings.home)
    manifest = _manifest(layout)
    model, stored = model_of(settings), manifest["model"]
    if stored != asdict(model):
        built = f"{stored['name']}{'@' + stored['revision'] if stored['revision'] else ''}, {stored['tokens']} tokens"
        raise CgragError(
            f"The dense index was built with {built} ({manifest['dimension']}), "
            f"the settings ask for {model}, {model.tokens} tokens.",
            f"{REBUILD}      or go back:  CGRAG_EMBED__MODEL={stored['name']} CGRAG_EMBED__TOKENS={stored['tokens']}",
        )
    if manifest["version"] != VERSION:
        raise CgragError("The dense index was built by another version of cgrag.", REBUILD)
    if manifest["chunks"] != index.chunked:
        raise CgragError(
            "The dense index and the search index are of different chunks.", "Bring both up to date:  cgrag run"
        )
    try:
        vectors, chunk_of, places = _files(layout, manifest)
    except CgragError:
        if _manifest(layout) != manifest:
            return load_vectors(settings, index)  # it was replaced while it was being read
        raise
    first = np.searchsorted(chunk_of, np.arange(len(index) + 1)).astype(np.int64)
    return DenseIndex(vectors, chunk_of, first, places, manifest["generation"])


def stored_vectors(settings: Settings) -> Vectors:
    """Return the stored matrix, of whatever model and chunks, shape (units, dimension).

    Raises:
        CgragError: there is none, or it is damaged.
    """
    layout = Layout(settings.home)
    return _files(layout, _manifest(layout))[0]


def _manifest(layout: Layout) -> dict[str, Any]:
    manifest: dict[str, Any] | None = read_json(layout.dense, REBUILD)
    if manifest is None:
        remedy = "Build them:  make dense   or   cgrag run --select chunk_embeddings"
        raise CgragError(f"{layout.home} has no embeddings yet.", remedy)
    return manifest


def _files(layout: Layout, manifest: dict[str, Any]) -> tuple[Vectors, NDArray[np.int32], pa.Table]:
    folder, rows = layout.dense.parent / manifest["folder"], manifest["rows"]
    try:
        vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
        chunk_of = np.load(folder / "chunk_of.npy", allow_pickle=False)
        places = pa.ipc.open_file(pa.memory_map(str(folder / "places.arrow"))).read_all()
        shapes = (vectors.shape, chunk_of.shape, places.num_rows)
        if shapes != ((rows, manifest["dimension"]), (rows,), rows) or vectors.dtype != np.float32:
            raise ValueError(f"its files have {shapes}, not {rows} units")
    except (OSError, EOFError, ValueError, pa.ArrowException) as error:
        raise CgragError(f"The dense index in {folder} is damaged: {error}", REBUILD) from error
    return vectors, chunk_of, places
