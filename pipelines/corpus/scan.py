"""The corpus_files stage: which files a corpus has, what was left out and why, and the plan of partitions."""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pipelines.corpus.decode import Undecodable, decode
from pipelines.corpus.fetch import Source, fetch
from pipelines.corpus.plan import MEAN_CHUNK_BYTES, plan_partitions
from pipelines.corpus.spec import CorpusSpec, claim_home
from pipelines.corpus.walk import Found, Skip, walk
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.progress import Progress, Reporter, no_report, silent
from pipelines.settings import Settings
from pipelines.tables import FILES, SKIPPED, digest, read_json, read_manifest, read_table, write_json, write_table

VERSION = 1
"""Raise it when the walk or the decoding changes what they return for the same files."""
_FORMATS = {
    ".py": "python", ".pyi": "python", ".pyw": "python",
    ".md": "markdown", ".markdown": "markdown", ".mdx": "markdown",
    ".rst": "sections", ".txt": "sections",
}  # fmt: skip
_MINIFIED_BYTES = 256_000
_MINIFIED_LINE = 5_000


class Unreadable(Exception):
    """A file that cannot be read now; the arguments are reason and detail for skipped.parquet."""


@dataclass(frozen=True)
class Scan:
    """What one walk found; rows as in tables.FILES and tables.SKIPPED, sorted by path."""

    name: str
    files: list[dict[str, Any]]
    skipped: list[dict[str, Any]]
    note: str = ""

    @property
    def fingerprint(self) -> str:
        """Of the paths and contents of all files, and of what was left out."""
        return digest(VERSION, [[*row.values()] for row in (*self.files, *self.skipped)])


def read_file(root: Path, path: str) -> bytes:
    """Return the bytes of a regular file below `root`; never follows a link, never waits for a pipe.

    Raises:
        Unreadable: it has vanished, is no regular file (any more), or may not be read.
    """
    try:
        handle = os.open(root / path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR):
            raise Unreadable("vanished", "deleted after it was listed") from error
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise Unreadable("not a regular file", "changed after it was listed") from error
        raise Unreadable("unreadable", error.strerror or "") from error
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):  # before fdopen, which raises on a folder
            raise Unreadable("not a regular file", "changed after it was listed")
        with os.fdopen(handle, "rb", closefd=False) as opened:
            return opened.read()
    except OSError as error:
        raise Unreadable("unreadable", error.strerror or "") from error
    finally:
        os.close(handle)


def scan(source: Source, settings: Settings, progress: Progress = silent) -> Scan:
    """Walk and read a source. Progress counts files, of an unknown total."""
    files: list[dict[str, Any]] = []
    skipped: list[dict[str, Any]] = []
    for found in walk(source, exclude=settings.home):
        row = _examine(source.root, found.path, settings.max_file_bytes) if isinstance(found, Found) else found
        if isinstance(row, Skip):
            skipped.append({"path": row.path, "reason": row.reason, "detail": row.detail})
        else:
            files.append(row)
        progress(len(files) + len(skipped), None)
    by_path = lambda row: row["path"]  # noqa: E731
    return Scan(source.name, sorted(files, key=by_path), sorted(skipped, key=by_path), source.note)


def _examine(root: Path, path: str, max_bytes: int) -> dict[str, Any] | Skip:
    import hashlib

    try:
        size = os.lstat(root / path).st_size
        if size > max_bytes:
            return Skip(path, "too large", f"{size:,} bytes; CGRAG_MAX_FILE_BYTES is {max_bytes:,}")
        data = read_file(root, path)
        kind = _FORMATS.get(PurePosixPath(path).suffix.lower(), "text")
        decoded = decode(data, python=kind == "python")
    except FileNotFoundError:
        return Skip(path, "vanished", "deleted after it was listed")
    except OSError as error:
        return Skip(path, "unreadable", error.strerror or "")
    except Unreadable as error:
        return Skip(path, *error.args)
    except Undecodable as error:
        return Skip(path, "not text", str(error))
    if len(data) > _MINIFIED_BYTES and len(data) > _MINIFIED_LINE * (1 + data.count(b"\n")):
        return Skip(path, "minified", f"lines of {len(data) // (1 + data.count(10)):,} bytes")
    return {
        "path": path,
        "bytes": len(data),
        "sha256": hashlib.sha256(data).hexdigest(),
        "encoding": decoded.encoding,
        "format": kind,
    }


def store_scan(found: Scan, settings: Settings) -> "Plan":
    """Write files.parquet, skipped.parquet and the plan, and drop the partitions that are no longer planned.

    The plan is written first: a file that is in no plan is chunked by the next run, a planned file that is in no table
    is not looked for.
    """
    layout = Layout(settings.home)
    target = settings.partition_chunks * MEAN_CHUNK_BYTES
    write_json(layout.plan, {"target_bytes": target, "keys": _keys(found, settings)})
    manifest = {"name": found.name, "fingerprint": found.fingerprint, "max_file_bytes": settings.max_file_bytes}
    write_table(layout.skipped, found.skipped, SKIPPED, manifest)
    write_table(layout.files, found.files, FILES, manifest)
    return load_plan(layout)


def plan_of(found: Scan, settings: Settings) -> "Plan":
    """Return the plan that `store_scan` would store."""
    return _grouped(found.files, _keys(found, settings))


def _keys(found: Scan, settings: Settings) -> dict[str, str]:
    """{path: partition key}, those of the last plan kept."""
    layout = Layout(settings.home)
    target = settings.partition_chunks * MEAN_CHUNK_BYTES
    record = read_json(layout.plan, f"Remove {layout.plan} and run again:  cgrag run") or {}
    previous: Mapping[str, str] = record.get("keys", {}) if record.get("target_bytes") == target else {}
    return plan_partitions({row["path"]: row["bytes"] for row in found.files}, previous, target_bytes=target)


@dataclass(frozen=True)
class Plan:
    """The files of each partition, rows as in tables.FILES, keys and paths sorted."""

    partitions: dict[str, list[dict[str, Any]]]

    def __iter__(self) -> Iterator[str]:
        return iter(self.partitions)

    def check(self, keys: Iterable[str]) -> None:
        """Make sure that these are partitions.

        Raises:
            CgragError: one is not.
        """
        unknown = sorted(set(keys) - set(self.partitions))
        if unknown:
            raise CgragError(f"There is no partition {unknown[0]!r}.", "See them all:  cgrag status --partitions")


def load_plan(layout: Layout) -> Plan:
    """Return the plan of the last scan.

    Raises:
        CgragError: there was none, or its files are damaged.
    """
    rows = read_table(layout.files, FILES).to_pylist()
    keys = (read_json(layout.plan, f"Remove {layout.plan} and run again:  cgrag run") or {}).get("keys", {})
    return _grouped(rows, keys)


def _grouped(rows: Iterable[dict[str, Any]], keys: Mapping[str, str]) -> Plan:
    partitions: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["path"] in keys:  # not after a crash between the two: the next scan puts that right
            partitions.setdefault(keys[row["path"]], []).append(row)
    return Plan(dict(sorted(partitions.items())))


def is_scanned(layout: Layout, found: Scan, settings: Settings) -> bool:
    """Whether the stored tables are those of this scan, and of these settings."""
    manifest = read_manifest(layout.files)
    target = settings.partition_chunks * MEAN_CHUNK_BYTES
    plan = read_json(layout.plan, f"Remove {layout.plan} and run again:  cgrag run") or {}
    return (
        manifest is not None
        and layout.skipped.exists()
        and manifest["fingerprint"] == found.fingerprint
        and plan.get("target_bytes") == target
    )


def scan_corpus(spec: CorpusSpec, settings: Settings, report: Reporter = no_report) -> Scan:
    """Fetch and scan `spec`, and record it as the home's corpus; nothing is recorded where it cannot be had."""
    source = fetch(spec, settings, report("Fetching the corpus", "objects" if spec.kind == "git" else "bytes"))
    claim_home(Layout(settings.home), spec)
    return scan(source, settings, report("Reading files", "files"))
