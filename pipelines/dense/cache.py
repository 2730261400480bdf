"""Vectors by the hash of their text: those of the current matrix, and those that an unfinished run has stored."""

import time
import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.dense.encoder import Model, Vectors
from pipelines.dense.units import KEY_BYTES
from pipelines.layout import Layout
from pipelines.tables import digest, read_manifest, read_record, write_arrow

FLUSH_SECONDS = 5.0
"""A kill loses at most the vectors of so many seconds."""


class VectorCache:
    """What is known of one model's vectors; `put` stores new ones within FLUSH_SECONDS.

    Segments are immutable and uniquely named, so that two runs at once only do some work twice.
    """

    def __init__(self, layout: Layout, model: Model) -> None:
        self.known: dict[bytes, Vectors] = {}
        self._folder = layout.vectors / digest(asdict(model))[:16]
        self._waiting: list[tuple[bytes, Vectors]] = []
        self._flushed = time.monotonic()
        self._add_matrix(layout.dense, model)
        self._segments = sorted(self._folder.glob("*.parquet"))
        for segment in self._segments:
            self._add_segment(segment)

    def put(self, keys: Sequence[bytes], vectors: Vectors) -> None:
        """Remember vectors, shape (keys, dimension)."""
        self._waiting += zip(keys, vectors, strict=True)
        self.known.update(zip(keys, vectors, strict=True))
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Store what has been put since the last time."""
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
        path = self._folder / f"{uuid.uuid4().hex}.parquet"
        write_arrow(path, table, {"dimension": dimension})
        self._segments.append(path)
        self._waiting.clear()

    def drop_segments(self) -> None:
        """Remove what has gone into the matrix."""
        for path in self._segments:
            path.unlink(missing_ok=True)
        self._segments.clear()
        with suppress(OSError):  # another run has stored more, or nothing was ever stored
            self._folder.rmdir()

    def _add_matrix(self, record: Path, model: Model) -> None:
        manifest = read_record(record)
        if manifest is None or manifest.get("model") != asdict(model):
            return
        folder = record.parent / manifest["folder"]
        try:
            vectors = np.load(folder / "vectors.npy", mmap_mode="r", allow_pickle=False)
            keys = np.load(folder / "keys.npy", allow_pickle=False)
        except (OSError, EOFError, ValueError):  # a damaged matrix is a missing one
            return
        whole = vectors.shape == (manifest["rows"], manifest["dimension"]) and vectors.dtype == np.float32
        if whole and len(keys) == len(vectors):
            self.known.update((key.tobytes(), vector) for key, vector in zip(keys, vectors, strict=True))

    def _add_segment(self, path: Path) -> None:
        manifest = read_manifest(path)
        if manifest is None:
            return
        try:
            table = pq.read_table(path)
        except (OSError, pa.ArrowException):
            return
        rows = table["vector"].combine_chunks().flatten().to_numpy().reshape(-1, manifest["dimension"])
        self.known.update(zip(table["key"].to_pylist(), rows, strict=True))
