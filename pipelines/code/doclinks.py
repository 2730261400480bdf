"""Links that people wrote in docs: to files, headings and symbols, from the innermost heading around them."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, zip_longest
from posixpath import dirname, join, normpath
from typing import Any
from urllib.parse import unquote

from markdown_it import MarkdownIt
from markdown_it.token import Token

from pipelines.chunking.lines import Lines
from pipelines.chunking.markup import parse_markdown, parse_sections
from pipelines.chunking.model import Entry
from pipelines.code.link import Linker, Site
from pipelines.code.modules import Module

VERSION = 1
"""Raise it when the same page gives other links than before."""
_REFERENCE = re.compile(r"\]\[([\w.-]+)\]|\[([\w.-]+)\]\[\]")
"""`[text][pkg.module.Name]` and `[pkg.module.Name][]`, which are plain text to CommonMark."""
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.DOTALL)
_DOTTED = re.compile(r"[~!]?([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?")
_RST_LINK = re.compile(r".*<([^<>\s]+)>", re.DOTALL)
_ANCHOR = re.compile(r"\{\s*#([\w.:-]+)[^{}]*\}")
_SPACED = re.compile(r"[^\w\- ]")


@dataclass(frozen=True)
class Page:
    """What the links of one page need: its headings with their anchors, and the raw links.

    Headings are (name, anchors); links are (heading or "", kind, target, line, start, end); kind is link (a URL),
    reference (of mkdocs) or code (between back-ticks).
    """

    path: str
    headings: list[tuple[str, list[str]]]
    links: list[tuple[str, str, str, int, int, int]]


def page_links(path: str, text: str, format: str) -> Page:
    """Return the headings and raw links of a page; `format` is markdown or sections (reStructuredText, plain text).

    >>> page_links("a.md", "# Use\\nSee [b](b.md#top) and `pkg.f`.", "markdown").links
    [('Use', 'link', 'b.md#top', 2, 14, 22), ('Use', 'code', 'pkg.f', 2, 29, 34)]
    """
    lines = Lines(text)
    parse = parse_markdown if format == "markdown" else parse_sections
    outline = parse(lines, 2000, 600).outline
    links = []
    for kind, target, start, end in _raw_links(lines, format):
        around = [entry for entry in outline if entry.start <= start < max(entry.end, entry.start + 1)]
        links.append((around[-1].name if around else "", kind, target, lines.number(start), start, end))
    return Page(path, _anchored(lines, outline), links)


def page_to_row(page: Page) -> dict[str, str]:
    """Return a page as a row of `tables.PAGE_LINKS`."""
    value = [page.headings, page.links]
    return {"path": page.path, "page": json.dumps(value, ensure_ascii=True, separators=(",", ":"))}


def page_from_row(row: Mapping[str, str]) -> Page:
    """Return the page of a row that `page_to_row` made."""
    headings, links = json.loads(row["page"])
    return Page(row["path"], [(name, anchors) for name, anchors in headings], [tuple(link) for link in links])


def _raw_links(lines: Lines, format: str) -> Iterator[tuple[str, str, int, int]]:
    for token in _markdown().parse(lines.text):
        if token.type == "inline" and token.map:
            end = lines.start(token.map[1] + 1)
            position = lines.start(token.map[0] + 1)
            for kind, target, label in _of_inline(token, format):
                for written in (target, label):  # the URL may be elsewhere, or spelt with escapes
                    at = lines.text.find(written, position, end) if written else -1
                    if at >= 0:
                        position = at + len(written)
                        yield kind, target, at, position
                        break


def _of_inline(inline: Token, format: str) -> Iterator[tuple[str, str, str]]:
    """Yield kind, target, and for a link the first words of its text."""
    children = inline.children or []
    for token, following in zip_longest(children, children[1:]):
        if token.type == "link_open":
            yield "link", unquote(str(token.attrGet("href") or "")), following.content if following else ""
        elif token.type == "code_inline":
            link = _RST_LINK.fullmatch(token.content) if format == "sections" else None
            yield ("link", link[1], "") if link else ("code", token.content, "")
        elif token.type == "text":
            for match in _REFERENCE.finditer(token.content):
                yield "reference", match[1] or match[2], ""


@cache
def _markdown() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("table")


# -- anchors


def slug(title: str) -> str:
    """The anchor that GitHub gives a heading, before numbers for repeats.

    >>> slug("What's new in C#?"), slug("  `a_b` & c")
    ('whats-new-in-c', 'a_b--c')
    """
    return _SPACED.sub("", title.strip().lower()).replace(" ", "-")


def _anchored(lines: Lines, outline: list[Entry]) -> list[tuple[str, list[str]]]:
    seen: Counter[str] = Counter()
    headings = []
    bounds = [entry.start for entry in outline] + [len(lines.text)]
    for entry, (start, _) in zip(outline, pairwise(bounds), strict=True):
        written = _ANCHOR.search(entry.title)
        base = slug(_ANCHOR.sub("", entry.title))
        anchors = [base if not seen[base] else f"{base}-{seen[base]}"]
        seen[base] += 1
        number = lines.number(start)
        above = next(
            (text for line in range(number - 1, max(number - 4, 0), -1) if (text := lines.text_of(line).strip())), ""
        )
        placed = _ANCHOR.fullmatch(above.removeprefix("[]()")) if above.startswith("[]()") else None
        anchors += [match[1] for match in (written, placed) if match]
        headings.append((entry.name, anchors))
    return headings


# -- linking


def link_pages(pages: Iterable[Page], files: Iterable[str], linker: Linker) -> list[Site]:
    """Return the edges that the links of all pages make: REFERENCES, the tier saying what kind of link it was.

    `files` are the paths of the whole corpus; a target that is none of them, or names nothing in the one that it is,
    makes no edge.
    """
    ordered = sorted(pages, key=lambda page: page.path)
    targets = _Targets(ordered, files, linker)
    sites = set()
    for page in ordered:
        for heading, kind, target, *place in page.links:
            source = f"{page.path}::{heading}" if heading else page.path
            found, tier = targets.resolve(page.path, kind, target)
            if found and found not in (source, page.path):
                sites.add(Site(source, "REFERENCES", found, tier, page.path, *place))
    return sorted(sites, key=lambda site: (site.path, site.start, site.end, site))


class _Targets:
    """What links may lead to."""

    def __init__(self, pages: list[Page], files: Iterable[str], linker: Linker) -> None:
        self.linker = linker
        self.files = frozenset(files)
        self.anchors: dict[tuple[str, str], str] = {}
        self.named: dict[str, set[str]] = defaultdict(set)
        self.qualified: dict[str, set[str]] = defaultdict(set)
        self.top: dict[str, list[tuple[Module, int]]] = defaultdict(list)
        for page in pages:
            for name, anchors in page.headings:
                for anchor in anchors:
                    self.anchors.setdefault((page.path, anchor), f"{page.path}::{name}")
                for anchor in anchors[1:]:  # written by hand, so a reference from any page may mean it
                    self.named[anchor].add(f"{page.path}::{name}")
        for module in linker.modules.all:
            for number, symbol in enumerate(module.facts.symbols):
                if "." in symbol[1]:
                    self.qualified[symbol[1]].add(module.facts.symbol_id(number))
                elif symbol[1] in module.facts.names:
                    self.top[symbol[1]].append((module, module.facts.names[symbol[1]]))

    def resolve(self, page: str, kind: str, target: str) -> tuple[str, str]:
        """Return the id that a link leads to ("" if to nothing here) and the tier."""
        if kind == "link":
            return self._link(page, target), "link"
        if kind == "reference":
            named = self.named.get(target, set())
            return self._symbol(page, target) or (next(iter(named)) if len(named) == 1 else ""), "reference"
        if "/" in target and target in self.files:
            return target, "path"
        match = _DOTTED.fullmatch(target.strip())
        return self._symbol(page, match[1]) if match else "", "name"

    def _symbol(self, page: str, dotted: str) -> str:
        found = {module.facts.symbol_id(number) for module, number, _, _ in self.linker.named(dirname(page), dotted)}
        found = found or self.qualified.get(dotted, set()) or self._member(dotted)
        if len(found) > 1:  # a name that is bound twice means the symbol that bears it
            found = {symbol for symbol in found if symbol.endswith(f"::{dotted.rpartition('.')[2]}")}
        return next(iter(found)) if len(found) == 1 else ""

    def _member(self, dotted: str) -> set[str]:
        """What `Name.attribute` means where one module alone has a class or variable `Name`: inherited methods too."""
        name, _, attribute = dotted.partition(".")
        owners = self.top.get(name, [])
        if len(owners) != 1 or "." in attribute:
            return set()
        found = self.linker.members(*owners[0], attribute)
        return {module.facts.symbol_id(number) for module, number, _, _ in found}

    def _link(self, page: str, target: str) -> str:
        scheme = _SCHEME.fullmatch(target)
        if scheme and scheme[1].lower() in ("http", "https", "mailto", "ftp", "data", "file"):
            return ""
        place, _, fragment = (scheme[2] if scheme else target).partition("#")
        place = place.partition("?")[0]
        if not place:
            return self.anchors.get((page, fragment), "") if fragment else ""
        base = "" if scheme or place.startswith("/") else dirname(page)
        path = normpath(join(base, place.lstrip("/")))
        choices = (path, f"{path}.md", f"{path}/README.md", f"{path}/index.md")
        found = next((choice for choice in choices if choice in self.files), "")
        return self._inside(found, fragment) if found and fragment else found

    def _inside(self, path: str, fragment: str) -> str:
        """The heading, or the symbol at a line (`#L10`), that a fragment means in a file; else the file."""
        module = self.linker.modules.by_path.get(path)
        line = re.match(r"L(\d+)", fragment)
        if module is not None and line:
            around: list[Any] = [(symbol[5] - symbol[6], number) for number, symbol in enumerate(module.facts.symbols)
                                 if number and symbol[5] <= int(line[1]) <= symbol[6]]  # fmt: skip
            return module.facts.symbol_id(max(around)[1]) if around else path
        return self.anchors.get((path, fragment), path)
