"""Segments: the immutable Parquet files that a ledger consists of, whole or set aside.

A worker adds files and changes none. Only compaction and gc remove files, under a lock that readers share, so that no
reader's listing misses rows that are on their way from one file to another. The lock is released by a process's death.
"""

import fcntl
import json
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import CgragError
from pipelines.tables import LEDGER, write_arrow

INDEX = ["key", "status", "result_hash", "answered_at"]
SET_ASIDE = "set-aside"
"""The folder inside a ledger for files that cannot be read; nothing reads it, and nothing deletes from it."""


class Damaged(Exception):
    """Why a file is no segment of this ledger."""


def write_segment(folder: Path, rows: Sequence[dict[str, Any]] | pa.Table) -> Path:
    """Write rows as a new segment, whole or not at all, with a checksum on every page.

    Raises:
        OSError: the disk is full, or cannot be written.
    """
    table = rows if isinstance(rows, pa.Table) else pa.Table.from_pylist(list(rows), schema=LEDGER)
    path = folder / f"{uuid.uuid4().hex}.parquet"
    write_arrow(path, table, {"recipe": folder.name})
    return path


def read_segment(path: Path, columns: list[str] | None = None) -> pa.Table:
    """Return a segment's rows, checksums verified of what is read.

    Raises:
        Damaged: it is cut short, overwritten, or no segment of this ledger.
        FileNotFoundError: it has gone.
        CgragError: the file system cannot read it just now.
    """
    try:
        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            schema = file.schema_arrow
            marked = json.loads((schema.metadata or {}).get(b"cgrag", b"null"))
            if not schema.equals(LEDGER) or not isinstance(marked, dict):
                raise Damaged("is no ledger segment")
            if marked.get("recipe") != path.parent.name:
                raise Damaged(f"belongs to the recipe {marked.get('recipe')}")
            return file.read(columns).replace_schema_metadata(None)
    except (FileNotFoundError, MemoryError):
        raise
    except (OSError, pa.ArrowException, ValueError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the file system's word, not the content's
            raise CgragError(f"{path} cannot be read just now: {error.strerror}.", "Run again.") from error
        raise Damaged(f"is damaged: {' '.join(str(error).split())[:200]}") from error


def list_segments(folder: Path) -> list[Path]:
    """Return the segments of a ledger, sorted; a folder that does not exist has none."""
    return sorted(folder.glob("*.parquet"))


def set_aside(path: Path) -> None:
    """Move a file that is no segment out of the ledger, where a person may look at it."""
    target = path.parent / SET_ASIDE / path.name
    target.parent.mkdir(exist_ok=True)
    if target.exists():
        target = target.with_name(f"{target.stem}-{uuid.uuid4().hex[:8]}{target.suffix}")
    try:
        path.rename(target)
    except FileNotFoundError:  # another reader was quicker
        return


@contextmanager
def reading(folder: Path) -> Iterator[None]:
    """Hold off compaction while segments are listed and read."""
    with _locked(folder, fcntl.LOCK_SH):
        yield


@contextmanager
def removing(folder: Path) -> Iterator[bool]:
    """Yield whether segments may be removed inside: not while another process reads or removes them."""
    with _locked(folder, fcntl.LOCK_EX | fcntl.LOCK_NB) as held:
        yield held


@contextmanager
def _locked(folder: Path, how: int) -> Iterator[bool]:
    if not folder.exists():  # nothing to hold off, and a reader makes no folders
        yield True
        return
    with open(folder / ".lock", "ab") as file:
        try:
            fcntl.flock(file, how)
            held = True
        except OSError:  # held by another, or a file system without locks, on which nothing is ever removed
            held = False
        yield held
