"""Lines of a text, as Python, CommonMark and editors count them."""

import re
from bisect import bisect_right

_LINE_END = re.compile(r"\r\n|\r|\n")


class Lines:
    """Offsets of the lines of `text`, which end at LF, CR LF or CR, and at nothing else.

    str.splitlines would also end a line at a form feed or U+2028, where neither Python's parser nor CommonMark does.

    >>> lines = Lines("a\\r\\nbb\\rc")
    >>> lines.starts, lines.number(4), lines.text_of(2)
    ([0, 3, 6], 2, 'bb')
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.starts = [0, *(match.end() for match in _LINE_END.finditer(text))]
        if len(self.starts) > 1 and self.starts[-1] == len(text):
            self.starts.pop()  # the last line has its end, and nothing follows
        self._ascii = text.isascii()

    def __len__(self) -> int:
        return len(self.starts) if self.text else 0

    def number(self, offset: int) -> int:
        """The 1-based line that holds the character at `offset`."""
        return bisect_right(self.starts, offset)

    def start(self, number: int) -> int:
        """Where line `number` begins; the length of the text for a line after the last."""
        return self.starts[number - 1] if number <= len(self.starts) else len(self.text)

    def text_of(self, number: int) -> str:
        """Line `number` without its end."""
        return self.text[self.start(number) : self.start(number + 1)].rstrip("\r\n")

    def offset(self, number: int, utf8_column: int) -> int:
        """The offset of a column that Python's parser counts in UTF-8 bytes."""
        start = self.start(number)
        if self._ascii or not utf8_column:
            return start + utf8_column
        line = self.text[start : start + utf8_column]
        return start + len(line.encode("utf-8", "surrogatepass")[:utf8_column].decode("utf-8", "ignore"))

    def trimmed(self, start: int, end: int) -> tuple[int, int] | None:
        """The span without blank lines around it and blanks after it, None if nothing is left; indentation stays."""
        piece = self.text[start:end]
        stripped = piece.rstrip()
        if not stripped:
            return None
        first = start + len(piece) - len(piece.lstrip())
        return max(start, self.start(self.number(first))), start + len(stripped)
