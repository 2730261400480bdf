"""What an answer is made from: numbered pieces of files, as many as fit."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from pipelines.chunking.lines import Lines

if TYPE_CHECKING:
    from pipelines.graph.traversal import Edge
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

    @property
    def shown(self) -> str:
        """As a model is shown it: only heads begin a line, and no mark of a chat's own is left whole."""
        lines = self.text.strip("\n").replace("<|", "< |").split("\n")
        return "\n".join([self.head, *(f" {line}" for line in lines)])

    def numbered(self, n: int) -> "Source":
        """The same with another number."""
        return replace(self, n=n)

    def row(self) -> dict[str, Any]:
        """All but the text."""
        row = asdict(self)
        del row["text"]
        return row if self.end else {key: value for key, value in row.items() if key not in ("start", "end")}


def at_line(place: tuple[str, int], name: str, text: str) -> Source:
    """Return a source of one line, path and number, that has no number of its own yet."""
    path, line = place
    return Source(0, path, line, line, name, text=text)


def beginning(entity: str) -> tuple[str, int]:
    """Return path and first line of the file of an entity, by its id."""
    return entity.partition("::")[0], 1


def first_place(edge: "Edge", places: Sequence[dict[str, Any]]) -> tuple[str, int]:
    """Return path and line of the first place of an edge; where none is known, the beginning of its source's file."""
    return (places[0]["path"], places[0]["start_line"]) if places else beginning(edge.source)


def sources_of(results: "Sequence[Result]") -> list[Source]:
    """Return the chunks of a search as sources, numbered in their order."""
    return [
        Source(
            n,
            result.path,
            result.start_line,
            result.end_line,
            result.part.name,
            result.start,
            result.end,
            result.text,
        )
        for n, result in enumerate(results, 1)
    ]


def fitted(sources: Sequence[Source], tokens: int) -> list[Source]:
    """Return the first of some sources, of at most so many tokens; the last is cut at a line's end if need be."""
    left = tokens * BYTES_PER_TOKEN
    found: list[Source] = []
    for source in sources:
        left -= len(f"{source.head}\n\n\n".encode())
        text = _first_lines(source.text, left)
        if text == source.text:
            found.append(source)
        elif len(text) >= _LEAST:
            last = source.start_line + max(len(Lines(text)) - 1, 0)
            end = source.end - (len(source.text) - len(text)) if source.end else 0
            found.append(replace(source, text=text, end=end, end_line=last))
        if text != source.text:
            break
        left -= len(_indented(text))
    return found


def _first_lines(text: str, most: int) -> str:
    """The beginning of a text, of at most so many bytes as it is shown, up to the end of a line where there is one.

    >>> _first_lines("one\\ntwo\\nthree", 11), _first_lines("one", 9), _first_lines("eleven", 3)
    ('one\\ntwo\\n', 'one', 'ele')
    """
    data = _indented(text)
    if len(data) <= most:
        return text
    begin = data[: max(most, 0)].decode("utf-8", "ignore").replace("\n ", "\n")
    return begin[: begin.rfind("\n") + 1] or begin


def _indented(text: str) -> bytes:
    return text.replace("\n", "\n ").encode()
