"""The cases' recording driver, answering as a server does that takes every row."""

import sys
from types import SimpleNamespace

from pipelines.neo4j_store.load import LoadResult
from pipelines.neo4j_store.rows import TABLES
from tests.support import CASES

sys.path.insert(0, str(CASES / "_tools"))
from recording_driver import RecordingDriver


class Row(list):
    """A record, its values in order."""

    def values(self):
        return self


class Answer(list):
    """One row, or none."""

    def single(self):
        return self[0] if self else None

    def consume(self):
        return SimpleNamespace(counters=SimpleNamespace(**dict.fromkeys(LoadResult("", {}).changes, 0)))


class Recorder(RecordingDriver):
    """Counts the batches of rows; those of `failing` raise what it says, once, or for ever if `for_good`."""

    def __init__(self, failing=None, for_good=False, lost=0):
        super().__init__()
        self.failing, self.for_good, self.lost = dict(failing or {}), for_good, lost
        self.batches = []

    def _run(self, query, parameters=None, **more):
        super()._run(query, parameters, **more)
        given = parameters or {}
        if "load" in given:  # asks whether the marker is still its own
            return Answer([Row([given["load"]])])
        if all(table.count in query for table in TABLES):
            return Answer([Row([self.distinct(table.name) for table in TABLES])])
        rows = given.get("rows")
        if rows is None:
            return Answer()
        number = len(self.batches) + 1
        if number in self.failing:
            error = self.failing[number] if self.for_good else self.failing.pop(number)
            raise error
        self.batches.append((query, rows))
        return Answer([Row([len(rows) - self.lost])])

    run = _run

    def queries(self):
        return [query for query, _ in self.sent]

    def distinct(self, name):
        """How many different rows of a table were taken."""
        (table,) = (table for table in TABLES if table.name == name)
        written = [row for query, rows in self.batches for row in rows if query == table.write]
        return len({tuple(row[key] for key in table.keys) for row in written})
