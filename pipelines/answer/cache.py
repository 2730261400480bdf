"""Answers that were given: one SQLite file in a home, for any number of processes, and nothing that anybody needs.

A row counts only for the generation of what it was made from; those of another are dropped with the next one written.
A file that is damaged is put aside for a new one. What cannot be read or written just now (a full disk, a folder that
cannot be written to) costs the answer its cache, never the answer.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

_WAIT_SECONDS = 10.0
_TABLE = "CREATE TABLE IF NOT EXISTS answers (key TEXT PRIMARY KEY, generation TEXT NOT NULL, answer TEXT NOT NULL)"


class AnswerCache:
    """Answers by key, as JSON objects, of one generation.

    >>> import tempfile
    >>> cache = AnswerCache(Path(tempfile.mkdtemp()) / "answers.sqlite", "generation 1")
    >>> cache.put("key", {"answer": "yes"}), cache.get("key"), cache.get("other")
    (None, {'answer': 'yes'}, None)
    """

    def __init__(self, path: Path, generation: str) -> None:
        self._path, self._generation = path, generation

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the answer of a key, None where there is none that can be read."""

        def read(database: sqlite3.Connection) -> Any:
            query = "SELECT answer FROM answers WHERE key = ? AND generation = ?"
            return database.execute(query, (key, self._generation)).fetchone()

        row = self._in_database(read) if self._path.exists() else None
        try:
            found = json.loads(row[0]) if row else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Keep an answer; those of other generations are dropped."""

        def write(database: sqlite3.Connection) -> None:
            database.execute("DELETE FROM answers WHERE generation <> ?", (self._generation,))
            row = (key, self._generation, json.dumps(answer))
            database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?)", row)

        self._in_database(write)

    def _in_database(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """What the work returns, None where it cannot be done; a damaged file is removed."""
        try:
            with closing(sqlite3.connect(self._path, timeout=_WAIT_SECONDS)) as database, database:
                database.execute("PRAGMA journal_mode = WAL")
                database.execute(_TABLE)
                return work(database)
        except sqlite3.OperationalError:  # locked, full or read-only: the file itself may be sound
            return None
        except sqlite3.DatabaseError:
            for end in ("", "-wal", "-shm"):
                with suppress(OSError):
                    self._path.with_name(self._path.name + end).unlink(missing_ok=True)
            return None
