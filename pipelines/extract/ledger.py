"""The ledger of one recipe: every answer of its model, kept for good, shared by all workers.

Rows are merged when they are read: of several with one key an `ok` one wins, of several of these the one with the
lowest result hash, so that neither the order of files nor the number of workers matters.
"""

import fcntl
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import duckdb
import pyarrow as pa

from pipelines.errors import CgragError
from pipelines.extract.segments import (
    INDEX,
    Damaged,
    list_segments,
    read_segment,
    reading,
    removing,
    set_aside,
    write_segment,
)
from pipelines.layout import Layout
from pipelines.settings import ExtractSettings
from pipelines.tables import LEDGER

MERGED = """
    SELECT * FROM segments QUALIFY row_number() OVER (
        PARTITION BY key
        ORDER BY
            status = 'ok' DESC, CASE WHEN status = 'ok' THEN 0 ELSE answered_at END DESC,
            result_hash, answered_at, status, detail, seconds
    ) = 1
"""
"""One row a key of the table `segments`: the ok one with the lowest hash, else the latest failure."""
_LARGE_ROWS = 50_000
"""Compaction leaves larger segments as they are, which bounds its memory."""


class Entry(NamedTuple):
    """What the index knows of a key."""

    status: str
    result_hash: str
    answered_at: float
    segment: str

    @property
    def rank(self) -> tuple[bool, float, str, float]:
        """The lowest of one key is the one that counts, as in MERGED."""
        ok = self.status == "ok"
        return (not ok, 0.0 if ok else -self.answered_at, self.result_hash, self.answered_at)


class Ledger:
    """Reads and adds to the ledger of one recipe; several processes may do so at once.

    `deep` verifies all of every segment when it is first seen, else only what the index needs. `set_aside` names what
    could not be read and was moved away: the rows it held are asked again. Use it in `with`: the end flushes.
    """

    def __init__(self, layout: Layout, recipe: str, settings: ExtractSettings, *, deep: bool = False) -> None:
        self.folder = layout.ledgers / recipe
        self.set_aside: list[str] = []
        self._settings = settings
        self._deep = deep
        self._index: dict[str, Entry] = {}
        self._segments: set[str] = set()
        self._stamp = -1
        self._buffer: list[dict[str, Any]] = []
        self._flushed = time.monotonic()
        self._claims = Claims(self.folder)

    def __enter__(self) -> "Ledger":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.flush()
        finally:
            self._claims.close()

    def refresh(self) -> None:
        """Take in what has been added since the last look; costs next to nothing where there is nothing new."""
        try:
            stamp = self.folder.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if stamp != self._stamp:
            with reading(self.folder):
                self._stamp = self.folder.stat().st_mtime_ns
                self._take_in()

    def get(self, key: str) -> Entry | None:
        """What is known of a key, as of the last refresh."""
        return self._index.get(key)

    def is_ok(self, key: str) -> bool:
        entry = self._index.get(key)
        return entry is not None and entry.status == "ok"

    @property
    def answered(self) -> int:
        """How many keys have an answer, as of the last refresh."""
        return sum(entry.status == "ok" for entry in self._index.values())

    def rows(self, keys: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Return the merged rows (as in tables.LEDGER) of those of the keys that are on disk."""
        wanted = sorted(set(keys))
        with reading(self.folder):
            self._take_in()
            names = {self._index[key].segment for key in wanted if key in self._index}
            tables = [LEDGER.empty_table(), *filter(None, map(self._read, sorted(names)))]
        merged = merge(pa.concat_tables(tables), wanted)
        return {row["key"]: row for row in merged.to_pylist()}

    def table(self, columns: list[str] | None = None) -> pa.Table:
        """Return all rows that are on disk, unmerged."""
        with reading(self.folder):
            self._take_in()
            tables = [table for name in sorted(self._segments) if (table := self._read(name, columns)) is not None]
        schema = LEDGER if columns is None else pa.schema([LEDGER.field(name) for name in columns])
        return pa.concat_tables([schema.empty_table(), *tables])

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, and flush if enough have come together."""
        self._buffer.append(row)
        if len(self._buffer) >= self._settings.flush_results:
            self.flush()

    @property
    def flush_due(self) -> float:
        """Seconds until what is kept has to be flushed."""
        return max(0.0, self._flushed + self._settings.flush_seconds - time.monotonic())

    def flush(self) -> None:
        """Write what is kept as a segment of its own. Where that fails, it is kept, and may be flushed again.

        Raises:
            CgragError: the disk is full, or cannot be written.
        """
        self._flushed = time.monotonic()
        if not self._buffer:
            return
        try:
            path = write_segment(self.folder, self._buffer)
        except OSError as error:
            raise CgragError(
                f"{len(self._buffer)} answers could not be stored in {self.folder}: {error.strerror or error}.",
                "Make room or mend the disk, then go on:  cgrag resume --failed",
            ) from error
        self._segments.add(path.name)
        for row in self._buffer:
            self._enter(Entry(row["status"], row["result_hash"], row["answered_at"], path.name), row["key"])
        self._claims.release(row["key"] for row in self._buffer)
        self._buffer = []

    def claim(self, key: str) -> bool:
        """Whether this process may ask for a key now: no other is doing so, and none has. Held until it is flushed."""
        if not self._claims.take(key):
            return False
        self.refresh()
        if self.is_ok(key):
            self._claims.release([key])
            return False
        return True

    def release(self, key: str) -> None:
        """Let others ask for a key that came to nothing here."""
        self._claims.release([key])

    def compact(self) -> int:
        """Merge the small segments into one; return how many there were, 0 where others are reading just now."""
        return rewrite(self.folder, lambda table: merge(table), large=_LARGE_ROWS)

    def _take_in(self) -> None:
        present = {path.name for path in list_segments(self.folder)}
        if self._segments - present:  # compacted, or set aside by another
            self._index.clear()
            self._segments.clear()
        for name in sorted(present - self._segments):
            table = self._read(name, None if self._deep else INDEX)
            if table is not None:
                self._segments.add(name)
                columns = (table[column].to_pylist() for column in INDEX)
                for key, status, result_hash, answered_at in zip(*columns, strict=True):
                    self._enter(Entry(status, result_hash, answered_at, name), key)

    def _enter(self, entry: Entry, key: str) -> None:
        known = self._index.get(key)
        if known is None or entry.rank < known.rank:
            self._index[key] = entry

    def _read(self, name: str, columns: list[str] | None = None) -> pa.Table | None:
        try:
            return read_segment(self.folder / name, columns)
        except FileNotFoundError:
            return None
        except Damaged as error:
            set_aside(self.folder / name)
            self.set_aside.append(f"{self.folder / name} {error}")
            self._segments.discard(name)
            self._index = {key: entry for key, entry in self._index.items() if entry.segment != name}
            return None


class Claims:
    """Keys that this process is asking for: record locks on one file, which end with the process that holds them.

    Where a file system has no such locks, every claim is granted: then two workers may ask twice, and lose nothing.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / ".claims"
        self._file: Any = None

    def take(self, key: str) -> bool:
        if self._file is None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._file = open(self._path, "a+b", buffering=0)  # noqa: SIM115
        try:
            fcntl.lockf(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _place(key))
        except (BlockingIOError, PermissionError):
            return False
        except OSError:
            return True
        return True

    def release(self, keys: Iterable[str]) -> None:
        if self._file is not None:
            with suppress(OSError):
                for key in keys:
                    fcntl.lockf(self._file, fcntl.LOCK_UN, 1, _place(key))

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _place(key: str) -> int:
    """The byte of the claims file that stands for a key; two keys may share one, and then wait for each other."""
    return int(key[:15], 16)


@cache
def in_memory() -> duckdb.DuckDBPyConnection:
    """DuckDB's engine without a database file, one a process: opening it costs more than most queries here."""
    return duckdb.connect(config={"threads": 1})


def merge(table: pa.Table, keys: list[str] | None = None) -> pa.Table:
    """Return one row of each key (of those given), sorted by key.

    >>> merge(LEDGER.empty_table()).num_rows
    0
    """
    with in_memory().cursor() as connection:
        connection.register("segments", table)
        if keys is not None:
            connection.register("wanted", pa.table({"key": pa.array(keys, pa.string())}))
        only = "" if keys is None else "WHERE key IN (SELECT key FROM wanted)"
        query = MERGED.replace("FROM segments", f"FROM segments {only}")
        return connection.sql(f"{query} ORDER BY key").to_arrow_table().cast(LEDGER)


def rewrite(folder: Path, change: Callable[[pa.Table], pa.Table], large: int | None = None) -> int:
    """Replace the segments of a ledger (those with fewer than `large` rows) by one with what `change` makes of them.

    The new one is there before the old ones go. Returns how many were replaced; 0 where others are reading just now,
    or a single segment stays as it is.
    """
    with removing(folder) as held:
        if not held:
            return 0
        old: list[Path] = []
        tables: list[pa.Table] = []
        for path in list_segments(folder):
            try:
                table = read_segment(path)
            except Damaged:
                continue  # the next reader names it and sets it aside
            if large is None or table.num_rows < large:
                old.append(path)
                tables.append(table)
        before = pa.concat_tables([LEDGER.empty_table(), *tables])
        after = change(before)
        if len(old) == (after.num_rows > 0) and after.num_rows == before.num_rows:
            return 0
        if after.num_rows:
            write_segment(folder, after)
        for path in old:
            path.unlink(missing_ok=True)
        return len(old)
