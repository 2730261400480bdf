"""The cases' recording driver, answering as a server does that takes every row."""

import sys
from types import SimpleNamespace

from pipelines.neo4j_store.load import LoadResult
from tests.support import CASES

sys.path.insert(0, str(CASES / "_tools"))
from recording_driver import RecordingDriver


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
        rows = (parameters or {}).get("rows")
        if rows is None:
            return Answer()
        number = len(self.batches) + 1
        if number in self.failing:
            error = self.failing[number] if self.for_good else self.failing.pop(number)
            raise error
        self.batches.append((query, rows))
        return Answer([[len(rows) - self.lost]])

    run = _run

    def queries(self):
        return [query for query, _ in self.sent]

    def distinct(self, *keys):
        """How many different rows were taken with these keys."""
        return len({tuple(row[key] for key in keys) for _, rows in self.batches for row in rows if keys[0] in row})
