"""Prose by its headings: CommonMark, reStructuredText, and plain text underlined in its manner."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import pairwise
from typing import Literal

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipelines.chunking.lines import Lines
from pipelines.chunking.model import Entry, Parsed, Unit
from pipelines.chunking.windows import cut

_EOL = r"(?:\r\n|\r|\n)"
_FRONT_MATTER = re.compile(rf"\A---[ \t]*{_EOL}[\w-]+[ \t]*:.*?{_EOL}(?:---|\.\.\.)[ \t]*(?:{_EOL}|\Z)", re.DOTALL)
"""YAML between dashes; the first line must be `key:`, since a rule across the page also begins with dashes."""
_UNDERLINE = re.compile(r"([=\-`:.'\"~^_*+#<>])\1{2,}[ \t]*")
_LONGEST_TITLE = 200


@dataclass(frozen=True)
class Heading:
    """A heading at the start of a line; level 1 is the highest."""

    level: int
    title: str
    line: int


def parse_markdown(lines: Lines, cap: int, section: int) -> Parsed:
    """Return the units and outline of CommonMark text (README, Chunking, says what a section is)."""
    return _by_headings("markdown", lines, list(markdown_headings(lines)), cap, section)


def parse_sections(lines: Lines, cap: int, section: int) -> Parsed:
    """The same for text whose headings are underlined, as in reStructuredText."""
    return _by_headings("sections", lines, list(underlined_headings(lines)), cap, section)


def markdown_headings(lines: Lines) -> Iterator[Heading]:
    """Yield the top-level headings as CommonMark sees them; front matter is none of it."""
    text = lines.text
    front = _FRONT_MATTER.match(text)
    if front:  # kept blank, so that line numbers stay
        text = re.sub(r"[^\r\n]", "", front[0]) + text[front.end() :]
    tokens = _blocks().parse(text)
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open" and opening.level == 0 and opening.map:
            yield Heading(int(opening.tag[1:]), _plain(inline), opening.map[0] + 1)


@cache
def _blocks() -> MarkdownIt:
    parser = MarkdownIt("commonmark")
    parser.core.ruler.enableOnly(["normalize", "block"])
    return parser


@cache
def _inlines() -> MarkdownIt:
    return MarkdownIt("commonmark")


def _plain(inline: Token) -> str:
    """The words of a heading without its markup: `C#`, not `C\\#`."""
    words = []
    for token in _inlines().parseInline(inline.content)[0].children or []:
        if token.type in ("text", "text_special", "code_inline", "image"):
            words.append(token.content)
        elif token.type in ("softbreak", "hardbreak"):
            words.append(" ")
    return re.sub(r"\s+", " ", "".join(words)).strip()


def underlined_headings(lines: Lines) -> Iterator[Heading]:
    """Yield titles that a line of one repeated character underlines, levels in the order the styles appear."""
    styles: list[tuple[str, bool]] = []
    for number in range(2, len(lines) + 1):
        if not _UNDERLINE.fullmatch(lines.text_of(number)):
            continue
        title, under = lines.text_of(number - 1).rstrip(), lines.text_of(number).rstrip()
        above = lines.text_of(number - 2).rstrip() if number > 2 else ""
        over = above == under
        if not title.strip() or _UNDERLINE.fullmatch(title) or len(under) < len(title.strip()):
            continue
        if (title[0].isspace() and not over) or (above and not over):
            continue  # the end of a paragraph, or of an indented block
        style = (under[0], over)
        if style not in styles:
            styles.append(style)
        yield Heading(styles.index(style) + 1, title.strip(), number - 2 if over else number - 1)


def _by_headings(
    parser: Literal["markdown", "sections"], lines: Lines, headings: list[Heading], cap: int, section: int
) -> Parsed:
    """Cut at a heading once `section` characters have passed since the last cut; what is above the cap is cut again."""
    text = lines.text
    outline = _outline(lines, headings)
    bounds = [0]
    for entry in outline:
        if entry.start - bounds[-1] >= section and entry.start:
            bounds.append(entry.start)
    units = []
    for start, end in zip(bounds, [*bounds[1:], len(text)], strict=True):
        span = lines.trimmed(start, end)
        for piece in cut(lines, *span, cap) if span else ():
            trimmed = lines.trimmed(*piece)
            if trimmed:
                units.append(Unit(*trimmed, "section", "", _trail(outline, *trimmed)))
    return Parsed(parser, units, outline)


def _shortened(title: str) -> str:
    """A paragraph above a line of dashes is a heading, too; what it is called shall still be a name."""
    return title if len(title) <= _LONGEST_TITLE else f"{title[: _LONGEST_TITLE - 1]}…"


def _outline(lines: Lines, headings: list[Heading]) -> list[Entry]:
    path: list[Heading] = []
    headings = [replace(heading, title=_shortened(heading.title)) for heading in headings]
    ends = _section_ends(lines, headings)
    entries = []
    for heading, end in zip(headings, ends, strict=True):
        while path and path[-1].level >= heading.level:
            path.pop()
        path.append(heading)
        name = " > ".join(part.title for part in path)
        entries.append(Entry("heading", name, heading.title, len(path), lines.start(heading.line), end, heading.line))
    return entries


def _section_ends(lines: Lines, headings: list[Heading]) -> list[int]:
    """Where the section of each heading ends: before the next heading that is not below it."""
    ends = [len(lines.text)] * len(headings)
    unfinished: list[int] = []
    for index, heading in enumerate(headings):
        while unfinished and headings[unfinished[-1]].level >= heading.level:
            ends[unfinished.pop()] = lines.start(heading.line)
        unfinished.append(index)
    spans = (lines.trimmed(lines.start(heading.line), end) for heading, end in zip(headings, ends, strict=True))
    return [span[1] if span else end for span, end in zip(spans, ends, strict=True)]


def _trail(outline: list[Entry], start: int, end: int) -> tuple[str, ...]:
    """The names of the headings in the span, after the one whose section its beginning belongs to."""
    before = [entry for entry in outline if entry.start <= start < entry.end]
    inside = [entry.name for entry in outline if start < entry.start < end]
    return tuple(dict.fromkeys([*(entry.name for entry in before[-1:]), *inside]))
