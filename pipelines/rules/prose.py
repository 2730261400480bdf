"""The prose of a page: its text with all that is no prose blanked out, cut into sentences; offsets stay as they are.

Tables, code, paths, addresses and the targets of links name things without saying anything about them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

_FENCE = re.compile(r"[ \t]*(?:>[ \t]*|[-*+][ \t]+|\d+[.)][ \t]+)*(`{3,}|~{3,})(.*)")
_TABLE_ROW = re.compile(r"[ \t>]*(?:\||\+[-=+]{2,}|={2,}[ \t]+={2,})")
_TABLE_RULE = re.compile(r"[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)+$")
_RST_CODE = re.compile(
    r"([ \t]*)(?:\.\.[ \t]+(?:code|code-block|sourcecode|literalinclude|csv-table|list-table)::.*|(?!\.\.).*::)$"
)
_SHELL = re.compile(r"[ \t]*(?:\$|>>>|\.\.\.)[ \t]|--8<--|[ \t]*(?:!!!|\?\?\?|===)\+?[ \t]")
_INLINE = re.compile(
    r"<!--.*?-->"
    r"|!\[[^\]\n]*\](?:\([^)\n]*\)|\[[^\]\n]*\])?"
    r"|\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])"
    r"|</?[A-Za-z][^<>\n]*>"
    r"|\b[A-Za-z][A-Za-z0-9+.-]*://[^\s<>`\])]+|\bgh-[a-z]+:[^\s<>`\])]+"
    r"|\{[^{}\n]*\}"
    r"|[\w.~$@-]*/[\w.*$@/-]*[\w*/]",
    re.DOTALL,
)
_LINK = re.compile(r"(?<!!)\[(?P<label>[^\[\]\n]+)\](?:\([^()\n]*(?:\([^()\n]*\)[^()\n]*)*\)|\[[^\]\n]*\])")
_IMPORT = re.compile(r"[ \t>]*(?:from[ \t]+([\w.]+)[ \t]+import[ \t]+([^#\n]+)|import[ \t]+([\w., \t]+))")
_IMPORTED = re.compile(r"([A-Za-z_]\w*)(?:[ \t]+as[ \t]+([A-Za-z_]\w*))?")
_BREAK = re.compile(
    r"\n[ \t]*(?=\n|[-*+>|#][ \t]|\#{2,}|\d+[.)][ \t])"  # a blank line, or what begins a block
    r"|(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)[)\"'*`]*\s+(?=[A-Z`\[*(<\"])"
    r"|(?<=[。！？；])"
)


@dataclass(frozen=True)
class Prose:
    """A page without what is no prose."""

    text: str
    """As long as the page."""
    imports: dict[str, str] = field(default_factory=dict)
    """{name: dotted name} of what the page's code imports."""
    code: list[tuple[int, int]] = field(default_factory=list)
    """Spans of the lines of code."""
    links: list[tuple[int, int, int, int]] = field(default_factory=list)
    """(start, end, start of the label, end of the label) of links that show a label."""

    def sentences(self) -> Iterator[tuple[int, int]]:
        """Yield the spans of sentences, list items and headings that have any text."""
        start = 0
        for match in _BREAK.finditer(self.text):
            if self.text[start : match.start()].strip():
                yield start, match.start()
            start = match.end()
        if self.text[start:].strip():
            yield start, len(self.text)


def read_prose(text: str, format: str) -> Prose:
    """Return the prose of a page; `format` is markdown or sections (reStructuredText, plain text).

    >>> page = read_prose("Ask `LLM`:\\n```\\nfrom vllm import LLM\\n```\\nSee [it](a/b.md) in x/y.py.", "markdown")
    >>> page.text.split(), page.imports
    (['Ask', '`LLM`:', 'See', '[it', 'in', '.'], {'LLM': 'vllm.LLM'})
    """
    kept: list[str] = []
    imports: dict[str, str] = {}
    code: list[tuple[int, int]] = []
    position = 0
    for line, kind in _lines(text, format):
        if kind == "code":
            imports.update(_imported(line))
            code.append((position, position + len(line)))
        kept.append(line if kind == "prose" else _blank(line))
        position += len(line)
    blanked = "".join(kept)
    links = [(*match.span(), *match.span("label")) for match in _LINK.finditer(blanked)]
    return Prose(_INLINE.sub(lambda match: _blank(match[0]), blanked), imports, code, links)


def _lines(text: str, format: str) -> Iterator[tuple[str, Literal["prose", "code", "other"]]]:
    """Yield the lines with their ends, and what each is."""
    fence, literal, table = "", -1, False
    lines = text.splitlines(keepends=True)
    for number, line in enumerate(lines):
        bare = line.strip()
        opened = _FENCE.match(line)
        if fence:
            closes = bool(opened and opened[1].startswith(fence) and not opened[2].strip())
            yield line, "other" if closes else "code"
            if closes:
                fence = ""
            continue
        if opened and "`" not in opened[2]:
            fence = opened[1]
            yield line, "other"
            continue
        indent = len(line) - len(line.lstrip())
        if literal >= 0 and (not bare or indent > literal):
            yield line, "code"
            continue
        literal = -1
        if format == "sections" and (code := _RST_CODE.match(line.rstrip())):
            literal = len(code[1])
        following = lines[number + 1] if number + 1 < len(lines) else ""
        table = bool(bare) and (
            bool(_TABLE_ROW.match(line))
            or (table and "|" in line)
            or bool(_TABLE_RULE.match(bare))
            or ("|" in line and bool(_TABLE_RULE.match(following.strip())))
        )
        yield line, "other" if table or _SHELL.match(line) else "prose"


def _imported(line: str) -> Iterator[tuple[str, str]]:
    match = _IMPORT.match(line)
    if match is None:
        return
    for name in _IMPORTED.finditer(match[2] or ""):
        yield name[2] or name[1], f"{match[1]}.{name[1]}"
    for part in (match[3] or "").split(","):
        dotted = part.strip().partition(" ")[0]
        if dotted:
            yield dotted.partition(".")[0], dotted.partition(".")[0]


def _blank(text: str) -> str:
    """As many blanks, the ends of lines kept."""
    return re.sub(r"[^\r\n]", " ", text)
