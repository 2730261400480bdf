"""What a ledger knows about the communities to be summarised: what is still to be asked, and the rows of the table.

A community with more triples than one request takes is asked about in two passes: about each part of its triples, and
then about the sentences of these, whose citations lead on to the triples'.
"""

from collections.abc import Iterable, Sequence
from typing import Any

from pipelines.extract.answer import InvalidAnswer
from pipelines.extract.ledger import Ledger
from pipelines.extract.partition import Item
from pipelines.extract.recipe import Request
from pipelines.summaries.recipe import SummaryRecipe
from pipelines.summaries.said import Said, Sentence, written
from pipelines.summaries.task import Task
from pipelines.tables import digest


class Known:
    """What the ledger has about some tasks."""

    def __init__(self, recipe: SummaryRecipe, ledger: Ledger, tasks: Sequence[Task]) -> None:
        self._recipe, self._ledger, self._tasks = recipe, ledger, tasks
        self._requests: dict[str, Request | None] = {}
        self.rows: dict[str, dict[str, Any]] = {}
        self.refresh()

    def refresh(self) -> None:
        """Take in what the ledger has now, of the parts and then of what these lead to."""
        self.rows = self._ledger.rows(key for task in self._tasks for key in map(self.key, task.parts))
        joined = (text for task in self._tasks if len(task.parts) > 1 and (text := self.text(task)))
        self.rows |= self._ledger.rows(map(self.key, joined))

    def request(self, text: str) -> Request | None:
        if text not in self._requests:
            self._requests[text] = self._recipe.request(text)
        return self._requests[text]

    def key(self, text: str) -> str:
        request = self.request(text)
        return request.key if request else ""

    def first(self) -> list[Item]:
        """What is to be asked of triples."""
        return self._open(part for task in self._tasks for part in task.parts)

    def second(self) -> list[Item]:
        """What is to be asked of what has been said of these."""
        return self._open(text for task in self._tasks if len(task.parts) > 1 and (text := self.text(task)))

    def _open(self, texts: Iterable[str]) -> list[Item]:
        found = {text: self.request(text) for text in dict.fromkeys(texts)}
        return [
            Item(request, text, digest(text)) for text, request in found.items() if request and self._said(text) is None
        ]

    def _said(self, text: str) -> Said | None:
        row = self.rows.get(self.key(text))
        if row is None or row["status"] != "ok":
            return None
        try:
            return self._recipe.read(text, row["pieces"])
        except InvalidAnswer:
            return None

    def text(self, task: Task) -> str | None:
        """What the summary itself is asked about: the triples, or what was said of their parts, once that is known."""
        if len(task.parts) == 1:
            return task.parts[0]
        said = self._sentences(task)
        return written(sentence.text for sentence, _ in said) if said else None

    def _sentences(self, task: Task) -> list[tuple[Sentence, int]]:
        """The sentences of all parts, each with the number of triples before its part; none while one part lacks."""
        said = [self._said(part) for part in task.parts]
        if not all(said):
            return []
        before = [sum(map(len, task.triples[:at])) for at in range(len(said))]
        return [(sentence, start) for one, start in zip(said, before, strict=True) if one for sentence in one.sentences]

    def row(self, task: Task) -> dict[str, Any]:
        """The table's row of a community."""
        text = self.text(task)
        said = self._said(text) if text else None
        keys = [self.key(part) for part in task.parts]
        if text and len(task.parts) > 1:
            keys.append(self.key(text))
        failed = next((found for found in map(self.rows.get, keys) if found and found["status"] != "ok"), None)
        row: dict[str, Any] = {
            "community": task.community,
            "status": "ok" if said else "failed" if failed else "pending",
            "problem": failed["status"] if failed and not said else "",
            "detail": failed["detail"] if failed and not said else "",
            "title": said.title if said else "",
            "text": "",
            "cited": [],
            "triples": sum(map(len, task.triples)),
            "keys": keys,
            "dropped": said.dropped if said else 0,
            "moved": said.moved if said else 0,
        }
        return row | (self._cited(task, said) if said else {})

    def _cited(self, task: Task, said: Said) -> dict[str, Any]:
        """The sentences with their citations as numbers of places, which follow the order of the text."""
        triples = [triple for part in task.triples for triple in part]
        below = self._sentences(task) if len(task.parts) > 1 else []
        places: list[tuple[str, int]] = []
        lines = []
        for sentence in said.sentences:
            numbers: set[int] = set(sentence.cites)
            if below:
                chosen = (below[number - 1] for number in sentence.cites)
                numbers = {start + number for one, start in chosen for number in one.cites}
            own = list(dict.fromkeys((triples[n - 1].path, triples[n - 1].start_line) for n in sorted(numbers)))
            places += [place for place in own if place not in places]
            lines.append(f"{sentence.text} {''.join(f'[{places.index(place) + 1}]' for place in own)}")
        return {
            "text": "\n".join(lines),
            "cited": [{"path": path, "start_line": line} for path, line in places],
        }
