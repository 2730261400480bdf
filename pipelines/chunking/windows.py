"""Cutting text that has no structure, or a piece of structure that is too long."""

import re
from collections.abc import Iterator

from pipelines.chunking.lines import Lines

_BLANK_LINE = re.compile(r"(?:\r\n|\r|\n)[ \t\f]*(?:\r\n|\r|\n)")


def cut(lines: Lines, start: int, end: int, cap: int) -> Iterator[tuple[int, int]]:
    """Yield spans that tile [start, end), each at most `cap` characters.

    A cut falls after the last blank line in the second half of a window, else after the last line end there, else after
    the last character there that is in no word, else at the cap.
    """
    text = lines.text
    while end - start > cap:
        limit, half = start + cap, start + cap // 2
        at = _after_last_blank_line(text, half, limit) or _after_last_line(text, half, limit)
        at = at or _after_last_word(text, half, limit) or limit
        yield start, at
        start = at
    if start < end:
        yield start, end


def _after_last_blank_line(text: str, half: int, limit: int) -> int | None:
    at = None
    for match in _BLANK_LINE.finditer(text, half, limit):
        at = match.end()
    return at


def _after_last_line(text: str, half: int, limit: int) -> int | None:
    at = max(text.rfind("\n", half, limit), text.rfind("\r", half, limit))
    if at < 0 or (text[at] == "\r" and text[at + 1 : at + 2] == "\n"):
        return None if at < 0 else _after_last_line(text, half, at)
    return at + 1


def _after_last_word(text: str, half: int, limit: int) -> int | None:
    for at in range(limit, half, -1):
        if not (text[at - 1].isalnum() or text[at - 1] == "_"):
            return at
    return None
