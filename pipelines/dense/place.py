"""Where one model's vectors lie: each model has a folder of its own, so that going back to one embeds nothing anew."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.dense.encoder import Model
from pipelines.layout import Layout
from pipelines.tables import digest, read_record

VERSION = 1
"""Raise it when the same chunks and model give another matrix."""
_PARTS = ("chunks", "model", "rows", "dimension", "folder", "generation")


@dataclass(frozen=True)
class Place:
    """The files of one model's vectors."""

    folder: Path

    @property
    def manifest(self) -> Path:
        return self.folder / "matrix.json"

    @property
    def segments(self) -> Path:
        """What an embedding under way has stored so far."""
        return self.folder / "segments"

    def matrix(self, record: dict[str, Any]) -> Path:
        """The folder of the matrix that a manifest describes."""
        return self.folder / str(record["folder"])

    def record(self) -> dict[str, Any] | None:
        """What the manifest says; None where there is none that is whole."""
        record = read_record(self.manifest)
        return record if record and all(part in record for part in _PARTS) else None


def place_of(layout: Layout, model: Model) -> Place:
    """Return where a model's vectors lie, whether there are any or not."""
    return Place(layout.dense / digest(asdict(model), VERSION)[:16])


def stored_records(layout: Layout) -> Iterator[dict[str, Any]]:
    """Yield the manifests of all models that have a matrix here."""
    for manifest in sorted(layout.dense.glob("*/matrix.json")):
        record = Place(manifest.parent).record()
        if record:
            yield record
