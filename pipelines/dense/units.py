"""The texts that are embedded: a unit with its path and trail, whose hash is its vector's key."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pipelines.layout import Layout
from pipelines.tables import CHUNKS, UNITS, read_tables

KEY_BYTES = 16


@dataclass(frozen=True)
class UnitTexts:
    """Every unit, in the order of its chunk's number (chunks by id, as in the lexical index) and its place."""

    chunk_of: NDArray[np.int32]
    """For each unit the number of its chunk."""
    places: pa.Table
    """For each unit start_line, end_line and name."""
    texts: list[str]
    chunks: int

    def keys(self) -> list[bytes]:
        return [
            hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()
            for text in self.texts
        ]


def load_units(layout: Layout, keys: Sequence[str]) -> UnitTexts:
    """Return the units of all partitions, each with the text that is embedded."""
    chunks = read_tables((layout.partition(key, "chunks") for key in keys), CHUNKS)
    units = read_tables((layout.partition(key, "units") for key in keys), UNITS)
    ids = sorted(chunks["chunk_id"].to_pylist())
    number = {chunk_id: at for at, chunk_id in enumerate(ids)}
    place = {row["chunk_id"]: row for row in chunks.select(["chunk_id", "start", "text"]).to_pylist()}
    rows = sorted(units.to_pylist(), key=lambda row: (number[row["chunk_id"]], row["start"]))
    texts = []
    for row in rows:
        chunk = place[row["chunk_id"]]
        body = chunk["text"][row["start"] - chunk["start"] : row["end"] - chunk["start"]]
        texts.append(f"{row['path']} {' '.join(row['trail'])}\n{body}")
    return UnitTexts(
        chunk_of=np.array([number[row["chunk_id"]] for row in rows], dtype=np.int32),
        places=pa.table(
            {
                "start_line": pa.array([row["start_line"] for row in rows], pa.int64()),
                "end_line": pa.array([row["end_line"] for row in rows], pa.int64()),
                "name": pa.array([row["symbol"] or " > ".join(row["trail"]) for row in rows], pa.string()),
            }
        ),
        texts=texts,
        chunks=len(ids),
    )
