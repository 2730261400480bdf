"""The text of a file from its chunks, so that no later stage opens the source again."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any


def restore_texts(documents: Iterable[Mapping[str, Any]], chunks: Iterable[Mapping[str, Any]]) -> dict[str, str]:
    """Return {path: text} of documents from their chunks (rows of tables.DOCUMENTS and CHUNKS, in any order).

    Chunks hold every character that is not blank. The blanks between them come back as spaces and line feeds, as many
    as there were: every offset and every line number is that of the file.

    >>> rows = [{"path": "a.py", "start": 4, "end": 9, "start_line": 3, "text": "x = 1"}]
    >>> restore_texts([{"path": "a.py", "characters": 12, "lines": 3}], rows)
    {'a.py': '  \\n\\nx = 1   '}
    """
    of_file: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for row in chunks:
        of_file[row["path"]].append(row)
    return {row["path"]: _restore(row, of_file[row["path"]]) for row in documents}


def _restore(document: Mapping[str, Any], chunks: list[Mapping[str, Any]]) -> str:
    pieces: list[str] = []
    position, line = 0, 1
    for chunk in sorted(chunks, key=lambda row: int(row["start"]) + len(row["text"])):
        text = chunk["text"][max(position - chunk["start"], 0) :]  # an overlap has been written already
        start = max(position, chunk["start"])
        start_line = chunk["start_line"] if start == chunk["start"] else line
        pieces.append(_blank(start - position, start_line - line))
        pieces.append(text)
        position = start + len(text)
        line = chunk["end_line"] if "end_line" in chunk else start_line + text.count("\n")
    pieces.append(_blank(document["characters"] - position, max(document["lines"] - line, 0)))
    return "".join(pieces)


def _blank(characters: int, lines: int) -> str:
    """Blanks that end `lines` lines, the last of them at the end, since a chunk begins with its line."""
    return " " * (characters - lines) + "\n" * lines
