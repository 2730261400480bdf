"""What an answer is made from: numbered pieces of files, as many as fit."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.retrieve.search import Result

BYTES_PER_TOKEN = 3
"""Of code and docs at least, where no tokenizer is at hand: a small model's gave 3.3 on retrieved chunks."""
_LEAST = 200
"""Characters of a piece that is worth to be shown at all."""


@dataclass(frozen=True)
class Source:
    """A numbered piece of a file, lines 1-based."""

    n: int
    path: str
    start_line: int
    end_line: int
    name: str
    start: int = 0
    end: int = 0
    """Offsets in characters, half open; 0 and 0 where a line is all that is known."""
    text: str = ""
    """What the model was shown; empty where none was asked."""
    cited: bool = False

    @property
    def head(self) -> str:
        return f"[{self.n}] {self.path}:{self.start_line}-{self.end_line}"

    def row(self) -> dict[str, Any]:
        """All but the text."""
        row = asdict(self)
        del row["text"]
        return row if self.end else {key: value for key, value in row.items() if key not in ("start", "end")}


def fitted(results: "Sequence[Result]", tokens: int) -> list[Source]:
    """Return results as sources, best first, of at most so many tokens; the last is cut at a line's end if need be."""
    left = tokens * BYTES_PER_TOKEN
    found: list[Source] = []
    for result in results:
        source = _source(result, len(found) + 1, result.text)
        left -= len(f"{source.head}\n\n\n".encode())
        text = _first_lines(result.text, left)
        if text != result.text and len(text) < _LEAST:
            break
        found.append(_source(result, len(found) + 1, text))
        left -= len(text.encode())
    return found


def _source(result: "Result", n: int, text: str) -> Source:
    cut = len(result.text) - len(text)
    last = result.end_line if not cut else result.start_line + max(len(text.splitlines()) - 1, 0)
    return Source(n, result.path, result.start_line, last, result.part.name, result.start, result.end - cut, text)


def _first_lines(text: str, most: int) -> str:
    """The beginning of a text, of at most so many bytes, up to the end of a line where there is one.

    >>> _first_lines("one\\ntwo\\nthree", 9), _first_lines("one", 9), _first_lines("eleven", 3)
    ('one\\ntwo\\n', 'one', 'ele')
    """
    data = text.encode()
    if len(data) <= most:
        return text
    begin = data[: max(most, 0)].decode("utf-8", "ignore")
    return begin[: begin.rfind("\n") + 1] or begin
