"""Vectors by the hash of their text: those of the current matrix, and those that an unfinished run has stored."""

import time
import uuid
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.dense.encoder import Vectors, usable
from pipelines.dense.place import Place
from pipelines.dense.units import KEY_BYTES
from pipelines.tables import read_manifest, write_arrow

FLUSH_SECONDS = 5.0
"""A kill loses at most the vectors of so many seconds, or of one call where that takes longer."""


class VectorCache:
    """What is known of one model's vectors; `put` stores new ones within FLUSH_SECONDS.

    A vector that is zero or no number is not known: it is asked for again, in case the model has been mended.
    """

    def __init__(self, place: Place) -> None:
        self.known: dict[bytes, Vectors] = {}
        self._place = place
        self._waiting: list[tuple[bytes, Vectors]] = []
        self._flushed = time.monotonic()
        self._add_matrix()
        self._add_segments()

    def put(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Remember vectors, shape (keys, dimension)."""
        self._waiting += zip(keys, vectors, strict=True)
        self.known.update(zip(keys, vectors, strict=True))
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Store what has been put since the last time, as an immutable segment of its own."""
        self._flushed = time.monotonic()
        if not self._waiting:
            return
        keys, rows = zip(*self._waiting, strict=True)
        dimension = len(rows[0])
        table = pa.table(
            {
                "key": pa.array(keys, pa.binary(KEY_BYTES)),
                "vector": pa.FixedSizeListArray.from_arrays(pa.array(np.concatenate(rows), pa.float32()), dimension),
            }
        )
        write_arrow(self._place.segments / f"{uuid.uuid4().hex}.parquet", table, {"dimension": dimension})
        self._waiting.clear()

    def drop_segments(self) -> None:
        """Remove what has gone into the matrix."""
        for path in self._place.segments.glob("*.parquet"):
            path.unlink(missing_ok=True)
        with suppress(OSError):
            self._place.segments.rmdir()

    def _know(self, keys: Iterable[bytes], vectors: Vectors) -> None:
        self.known.update((key, row) for key, row, good in zip(keys, vectors, usable(vectors), strict=True) if good)

    def _add_matrix(self) -> None:
        record = self._place.record()
        if record is None:
            return
        folder = self._place.matrix(record)
        try:
            vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
            keys = np.load(folder / "keys.npy", allow_pickle=False)
        except (OSError, EOFError, ValueError):  # a damaged matrix is a missing one
            return
        whole = vectors.shape == (record["rows"], record["dimension"]) and vectors.dtype == np.float32
        if whole and keys.shape == (len(vectors), KEY_BYTES) and len(vectors):
            self._know((key.tobytes() for key in keys), vectors)

    def _add_segments(self) -> None:
        for path in sorted(self._place.segments.glob("*.parquet")):
            manifest = read_manifest(path)
            try:
                table = pq.read_table(path) if manifest else None
            except (OSError, pa.ArrowException):
                continue
            if manifest and table is not None:
                rows = table["vector"].combine_chunks().flatten().to_numpy().reshape(-1, manifest["dimension"])
                self._know(table["key"].to_pylist(), rows)
