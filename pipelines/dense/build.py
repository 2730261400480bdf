"""The chunk_embeddings stage: a vector for every unit, of which none is computed twice."""

import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dense.cache import VectorCache
from pipelines.dense.encoder import BATCH, Encoder, Vectors, model_of
from pipelines.dense.units import KEY_BYTES, UnitTexts, load_units
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.progress import Progress, silent
from pipelines.settings import Settings
from pipelines.tables import digest, write_json

VERSION = 1
"""Raise it when the same chunks and model give another matrix."""
_CALL = 4 * BATCH
"""Units of about one length that the model is handed at once; a few seconds' work."""
_MEASURED = 2
"""After so many calls their rate is told."""


@dataclass(frozen=True)
class BuiltVectors:
    """What was built."""

    units: int
    chunks: int
    embedded: int
    """Texts that the model was asked about; the others' vectors were there."""
    unusable: int
    """Units whose vector is zero or no number: no question finds them by it."""
    dimension: int
    seconds: float
    """Of embedding."""
    bytes: int
    generation: str


def dense_inputs(settings: Settings, fingerprints: dict[str, str]) -> dict[str, Any]:
    """What a matrix is built from; `chunks` is also in the manifest of a lexical index of the same chunks."""
    return {
        "chunks": digest(fingerprints),
        "chunking": settings.chunking.model_dump(),
        "model": asdict(model_of(settings)),
        "version": VERSION,
    }


def build_vectors(
    settings: Settings,
    fingerprints: dict[str, str],
    open_encoder: Callable[[], Encoder],
    progress: Progress = silent,
    tell: Callable[[str], None] = lambda text: None,
) -> BuiltVectors:
    """Embed what has no vector yet, and promote the matrix; the encoder is opened only if there is anything to embed.

    A killed run goes on from its last flush. Readers keep the matrix that they have open.

    Raises:
        CgragError: every vector of the model is zero or no number.
    """
    layout = Layout(settings.home)
    units = load_units(layout, sorted(fingerprints))
    keys = units.keys()
    cache = VectorCache(layout, model_of(settings))
    texts = {key: text for key, text in zip(keys, units.texts, strict=True) if key not in cache.known}
    begun = time.monotonic()
    if texts:
        _embed(texts, cache, open_encoder(), progress, tell)
    seconds = time.monotonic() - begun
    vectors = np.stack([cache.known[key] for key in keys]) if keys else np.zeros((0, 0), dtype=np.float32)
    unusable = int((~vectors.any(axis=1)).sum())
    if keys and unusable == len(keys):
        cache.drop_segments()
        raise CgragError(
            f"{settings.embed.model} gives no vector that is a number.", "Name another model:  CGRAG_EMBED__MODEL=…"
        )
    folder = _save(layout, units, keys, vectors)
    generation = digest(asdict(model_of(settings)), [key.hex() for key in keys], units.chunk_of.tolist())
    shape = {"rows": len(keys), "dimension": vectors.shape[1], "chunk_count": units.chunks, "unusable": unusable}
    inputs = dense_inputs(settings, fingerprints)
    write_json(layout.dense, inputs | shape | {"folder": folder.name, "generation": generation})
    cache.drop_segments()
    for old in layout.dense.parent.glob("dense-*"):
        if old != folder:
            shutil.rmtree(old, ignore_errors=True)
    size = sum(file.stat().st_size for file in folder.iterdir())
    return BuiltVectors(len(keys), units.chunks, len(texts), unusable, vectors.shape[1], seconds, size, generation)


def _embed(
    texts: dict[bytes, str], cache: VectorCache, encoder: Encoder, progress: Progress, tell: Callable[[str], None]
) -> None:
    done, total, begun = 0, len(texts), time.monotonic()
    progress(0, total)
    for number, batch in enumerate(batches(texts), 1):
        cache.put(batch, encoder.encode([texts[key] for key in batch], "document"))
        done += len(batch)
        progress(done, total)
        if number == _MEASURED and done < total:
            rate = done / (time.monotonic() - begun)
            left = (total - done) / rate
            tell(f"{total:,} units to embed at {rate:.0f} units/s: about {max(left / 60, 0.1):.1f} min")
    cache.flush()


def batches(texts: dict[bytes, str]) -> Iterator[Sequence[bytes]]:
    """Yield keys whose texts have about one length, so that little is padding; shuffled, so that the rate is steady."""
    keys = sorted(texts, key=lambda key: (len(texts[key]), key))
    batches = [keys[at : at + _CALL] for at in range(0, len(keys), _CALL)]
    random.Random(0).shuffle(batches)
    return iter(batches)


def _save(layout: Layout, units: UnitTexts, keys: Sequence[bytes], vectors: Vectors) -> Path:
    layout.dense.parent.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="dense-", dir=layout.dense.parent))
    folder.chmod(0o755)
    np.save(folder / "vectors.npy", np.ascontiguousarray(vectors, dtype=np.float32), allow_pickle=False)
    numbers = np.array([list(key) for key in keys], dtype=np.uint8).reshape(-1, KEY_BYTES)
    np.save(folder / "keys.npy", numbers, allow_pickle=False)
    np.save(folder / "chunk_of.npy", units.chunk_of, allow_pickle=False)
    with pa.OSFile(str(folder / "places.arrow"), "wb") as sink, pa.ipc.new_file(sink, units.places.schema) as writer:
        writer.write_table(units.places.combine_chunks(), max_chunksize=1 << 30)
    return folder
