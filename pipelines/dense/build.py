"""The chunk_embeddings stage: a vector for every unit, of which none is computed twice."""

import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from pipelines.dense.cache import VectorCache
from pipelines.dense.encoder import BATCH, Encoder, Vectors, model_of, usable
from pipelines.dense.place import VERSION, Place, place_of
from pipelines.dense.units import KEY_BYTES, UnitTexts, load_units
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.locks import locked
from pipelines.progress import Progress, Reporter, no_report
from pipelines.settings import Settings
from pipelines.tables import digest, write_json

_MEASURED, _MEASURED_SECONDS = 3, 3.0
"""After so many calls and seconds the rate is told, and how long the rest will take at it."""


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
    """Of embedding, without the loading of the model."""
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
    report: Reporter = no_report,
    tell: Callable[[str], None] = lambda text: None,
) -> BuiltVectors:
    """Embed what has no vector yet, and promote the matrix; the encoder is opened only if there is anything to embed.

    A killed run goes on from its last flush. Readers keep the matrix that they have open. One run at a time builds a
    model's matrix: another waits, and then finds the vectors of the first.

    Raises:
        CgragError: every vector of the model is zero or no number.
    """
    layout, model = Layout(settings.home), model_of(settings)
    place = place_of(layout, model)
    place.folder.mkdir(parents=True, exist_ok=True)
    with locked(place.folder / "lock", report, "Waiting for another run's embeddings"):
        units = load_units(layout, sorted(fingerprints))
        keys = units.keys()
        cache = VectorCache(place)
        texts = {key: text for key, text in zip(keys, units.texts, strict=True) if key not in cache.known}
        seconds = 0.0
        if texts:
            encoder = open_encoder()
            begun = time.monotonic()
            _embed(texts, cache, encoder, report("Embedding", "units"), tell)
            seconds = time.monotonic() - begun
        vectors = np.stack([cache.known[key] for key in keys]) if keys else np.zeros((0, 0), dtype=np.float32)
        unusable = int((~usable(vectors)).sum())
        if keys and unusable == len(keys):
            cache.drop_segments()
            raise CgragError(
                f"{settings.embed.model} gives no vector that is a number.", "Name another model:  CGRAG_EMBED__MODEL=…"
            )
        generation = digest(asdict(model), VERSION, [key.hex() for key in keys], units.chunk_of.tolist())
        folder = _save(place, units, keys, vectors)
        shape = {"rows": len(keys), "dimension": vectors.shape[1], "folder": folder.name, "generation": generation}
        write_json(place.manifest, dense_inputs(settings, fingerprints) | shape)
        cache.drop_segments()
        for old in place.folder.glob("matrix-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        size = sum(file.stat().st_size for file in folder.iterdir())
    return BuiltVectors(len(keys), units.chunks, len(texts), unusable, vectors.shape[1], seconds, size, generation)


def _embed(
    texts: dict[bytes, str], cache: VectorCache, encoder: Encoder, progress: Progress, tell: Callable[[str], None]
) -> None:
    done, total, begun, told = 0, len(texts), time.monotonic(), False
    progress(0, total)
    for number, batch in enumerate(batches(texts), 1):
        cache.put(batch, encoder.encode([texts[key] for key in batch], "document"))
        done += len(batch)
        progress(done, total)
        seconds = time.monotonic() - begun
        if not told and number >= _MEASURED and seconds >= _MEASURED_SECONDS and done < total:
            told, rate = True, done / seconds
            tell(f"{total:,} units to embed at {rate:.0f} units/s: about {(total - done) / rate / 60:.1f} min")
    cache.flush()


def batches(texts: dict[bytes, str]) -> list[list[bytes]]:
    """Return keys whose texts have about one length, for little padding; shuffled, so that the rate is steady."""
    keys = sorted(texts, key=lambda key: (len(texts[key]), key))
    found = [keys[at : at + BATCH] for at in range(0, len(keys), BATCH)]
    random.Random(0).shuffle(found)
    return found


def _save(place: Place, units: UnitTexts, keys: Sequence[bytes], vectors: Vectors) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="matrix-", dir=place.folder))
    folder.chmod(0o755)
    np.save(folder / "vectors.npy", np.ascontiguousarray(vectors, dtype=np.float32), allow_pickle=False)
    numbers = np.array([list(key) for key in keys], dtype=np.uint8).reshape(-1, KEY_BYTES)
    np.save(folder / "keys.npy", numbers, allow_pickle=False)
    np.save(folder / "chunk_of.npy", units.chunk_of, allow_pickle=False)
    with pa.OSFile(str(folder / "places.arrow"), "wb") as sink, pa.ipc.new_file(sink, units.places.schema) as writer:
        writer.write_table(units.places.combine_chunks(), max_chunksize=1 << 30)
    for file in (*folder.iterdir(), folder):  # what they replace is removed next
        descriptor = os.open(file, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)
    return folder
