"""Answers that were given: one SQLite file in a home, for any number of processes, and nothing that anybody needs.

Whatever an answer was made from is in its key, so an old one is never served; the oldest go when there are many. A file
that is damaged is removed, and made anew. What cannot be read or written just now (a full disk, a folder that cannot be
written to) costs the answer its cache, never the answer.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

_WAIT_SECONDS = 10.0
_KEPT = 20_000
_TABLE = "answers_1"
"""Another number for other columns: the program that knows them does not see those of this one."""


class AnswerCache:
    """Answers by key, as JSON objects; the last `kept` that were written.

    >>> import tempfile
    >>> cache = AnswerCache(Path(tempfile.mkdtemp()) / "answers.sqlite")
    >>> cache.put("key", {"answer": "yes"}), cache.get("key"), cache.get("other")
    (None, {'answer': 'yes'}, None)
    """

    def __init__(self, path: Path, kept: int = _KEPT) -> None:
        self._path, self._most = path, kept

    def get(self, key: str) -> dict[str, Any] | None:
        """Return the answer of a key, None where there is none that can be read."""

        def read(database: sqlite3.Connection) -> Any:
            return database.execute(f"SELECT answer FROM {_TABLE} WHERE key = ?", (key,)).fetchone()

        row = self._in_database(read) if self._path.exists() else None
        try:
            found = json.loads(row[0]) if row else None
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def put(self, key: str, answer: dict[str, Any]) -> None:
        """Keep an answer."""

        def write(database: sqlite3.Connection) -> None:
            database.execute("BEGIN IMMEDIATE")  # waits for its turn, where a later lock may be refused at once
            database.execute(f"CREATE TABLE IF NOT EXISTS {_TABLE} (key TEXT PRIMARY KEY, answer TEXT NOT NULL)")
            database.execute(f"INSERT OR REPLACE INTO {_TABLE} VALUES (?, ?)", (key, json.dumps(answer)))
            oldest = f"(SELECT max(rowid) FROM {_TABLE}) - ?"
            database.execute(f"DELETE FROM {_TABLE} WHERE rowid <= {oldest}", (self._most,))

        self._in_database(write)

    def _in_database(self, work: Callable[[sqlite3.Connection], Any]) -> Any:
        """What the work returns, None where it cannot be done; a damaged file is removed.

        SQLite's own journal, not its WAL: who begins one, or ends it as the last, refuses the others without a wait.
        """
        try:
            with closing(sqlite3.connect(self._path, timeout=_WAIT_SECONDS)) as database, database:
                return work(database)
        except sqlite3.OperationalError:  # no table yet, locked, full or read-only: the file itself may be sound
            return None
        except sqlite3.DatabaseError:
            for end in ("", "-journal"):
                with suppress(OSError):
                    self._path.with_name(self._path.name + end).unlink(missing_ok=True)
            return None
