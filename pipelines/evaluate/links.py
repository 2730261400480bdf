"""Links that people wrote in docs, and where they lead: a section, a page, a short file, or a symbol."""

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.evaluate.places import Span

SHOWN = 500
"""A target is the first characters of its section, file or definition: what a reader who follows the link sees."""
_SHORT_FILE = 4_000
"""A link to a longer file that is no docs page does not say which part of it is meant."""

_MARKDOWN = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\](?:\((?P<url>[^)\s]+)[^)\n]*\)|\[(?P<ref>[^\]\n]+)\])")
_AUTOLINK = re.compile(r"<(?P<url>gh-file:[^>\s]+)>")
_ROLE = re.compile(
    r":(?:py:)?(?P<role>doc|ref|class|func|meth|mod|attr|exc|data):`(?:(?P<text>[^`<]*?)\s*<(?P<to>[^`>]+)>|(?P<name>[^`<]+))`"
)
_FENCE = re.compile(r"^(?P<mark>```+|~~~+).*?^(?P=mark)[ \t]*$|<!--.*?-->", re.DOTALL | re.MULTILINE)
_MARKDOWN_LABEL = re.compile(r"^[^\S\n]*\[\]\(\)\{ ?#(?P<label>[\w.-]+) ?\}", re.MULTILINE)
_RST_LABEL = re.compile(r"^\.\. _(?P<label>[^:\n`]+):[ \t]*$", re.MULTILINE)


@dataclass(frozen=True)
class Link:
    """`text[start:end]` of a docs page is a link that shows `label` and leads to `target`."""

    path: str
    start: int
    end: int
    label: str
    target: str
    kind: str
    """path (of a file, perhaps with #anchor), label (of a heading) or symbol (dotted name)."""


def find_links(path: str, text: str) -> Iterator[Link]:
    """Yield the links of a docs page in order, outside code fences and comments; those to other sites are left out.

    >>> [(link.label, link.target, link.kind) for link in find_links("docs/a.md", "See [b](b.md#c) and [x][p.X].")]
    [('b', 'b.md#c', 'path'), ('x', 'p.X', 'symbol')]
    >>> [(link.label, link.target, link.kind) for link in find_links("a.rst", "A :class:`~flask.Flask` of :doc:`b`.")]
    [('Flask', 'flask.Flask', 'symbol'), ('b', 'b', 'path')]
    """
    clear = _FENCE.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    found = _roles(path, clear) if path.lower().endswith((".rst", ".txt")) else _markdown(path, clear)
    yield from sorted(found, key=lambda link: link.start)


def _markdown(path: str, text: str) -> Iterator[Link]:
    for match in (*_MARKDOWN.finditer(text), *_AUTOLINK.finditer(text)):
        groups = match.groupdict()
        url, label = groups["url"], groups.get("text") or ""
        if url is None:
            ref = groups["ref"]
            yield Link(path, *match.span(), label, ref, "symbol" if "." in ref else "label")
        elif url.startswith("gh-file:"):
            yield Link(path, *match.span(), label, "/" + url.removeprefix("gh-file:"), "path")
        elif not re.match(r"[a-zA-Z][a-zA-Z0-9+.-]*:|#|//", url):
            yield Link(path, *match.span(), label, url, "path")


def _roles(path: str, text: str) -> Iterator[Link]:
    for match in _ROLE.finditer(text):
        target = (match["to"] or match["name"]).strip()
        shown = target.rpartition(".")[2] if target.startswith("~") else target.lstrip(".!")
        label = (match["text"] or shown).strip()
        kind = {"doc": "path", "ref": "label"}.get(match["role"], "symbol")
        yield Link(path, *match.span(), label, target.lstrip("~.!").removesuffix("()"), kind)


class Targets:
    """What links can lead to in a corpus: `texts` by path, and the rows of its outline (tables.OUTLINE)."""

    def __init__(self, texts: Mapping[str, str], outline: Sequence[Mapping[str, Any]]) -> None:
        self._texts = texts
        self.headings: dict[str, list[Mapping[str, Any]]] = {}
        self._symbols: dict[str, list[Span]] = {}
        for row in outline:
            if row["kind"] == "heading":
                self.headings.setdefault(row["path"], []).append(row)
            else:
                span = Span(row["path"], row["start"], min(row["end"], row["start"] + SHOWN))
                parts = row["name"].split(".")
                for tail in range(len(parts)):
                    self._symbols.setdefault(".".join(parts[tail:]), []).append(span)
        self._labels: dict[str, list[Span]] = {}
        for path in self.headings:
            pattern = _RST_LABEL if path.lower().endswith((".rst", ".txt")) else _MARKDOWN_LABEL
            for match in pattern.finditer(texts.get(path, "")):
                section = self._section_after(path, match.end())
                if section:
                    self._labels.setdefault(match["label"].lower(), []).append(section)

    def body(self, heading: Mapping[str, Any]) -> Span | None:
        """The beginning of a section's own text, below its heading and above the next; None where it has none."""
        path, text = heading["path"], self._texts[heading["path"]]
        later = (row["start"] for row in self.headings[path] if row["start"] > heading["start"])
        end = min([*later, len(text)])
        start, title_seen = heading["start"], False
        while start < end:
            line_end = text.find("\n", start, end) + 1 or end
            line = text[start:line_end]
            if title_seen and re.search(r"\w", line):
                break
            title_seen = title_seen or bool(re.search(r"\w", line))
            start = line_end
        stop = start + len(text[start : min(end, start + SHOWN)].rstrip())
        return Span(path, start, stop) if stop > start else None

    def resolve(self, link: Link) -> Span | None:
        """Where a link leads, or None: to another site, to nothing in the corpus, or to more than one thing."""
        if link.kind == "label":
            return _only(self._labels.get(link.target.lower(), []))
        if link.kind == "symbol":
            parts = link.target.split(".")
            names = (".".join(parts[tail:]) for tail in range(len(parts)))
            return next((_only(self._symbols[name]) for name in names if name in self._symbols), None)
        name, _, anchor = link.target.partition("#")
        return self._page(self._file(link.path, name), anchor)

    def _file(self, source: str, name: str) -> str:
        folder = posixpath.dirname(source)
        if name.startswith("/"):  # from the root: of the repository, or of the docs
            roots = [folder[:at] for at in range(len(folder) + 1) if at in (0, len(folder)) or folder[at] == "/"]
            choices = [posixpath.join(root, name[1:]) for root in roots]
        else:
            choices = [posixpath.join(folder, name)]
        choices = [posixpath.normpath(choice) for choice in choices]
        endings = ("", ".rst", ".md", ".txt", "/README.md", "/index.md", "/index.rst")
        return next((c + ending for c in choices for ending in endings if c + ending in self._texts), "")

    def _page(self, path: str, anchor: str) -> Span | None:
        headings = self.headings.get(path)
        if not path or (not headings and len(self._texts[path]) > _SHORT_FILE):
            return None
        if not headings:
            return Span(path, 0, min(SHOWN, len(self._texts[path]))) if self._texts[path].strip() else None
        if not anchor:
            return next((body for heading in headings if (body := self.body(heading))), None)
        here = [span for span in self._labels.get(anchor.lower(), []) if span.path == path]
        sections = [body for row in headings if slug(row["title"]) == anchor.lower() and (body := self.body(row))]
        return _only(here) or _only(sections)

    def _section_after(self, path: str, offset: int) -> Span | None:
        following = next((row for row in self.headings[path] if row["start"] >= offset), None)
        between = self._texts[path][offset : following["start"]] if following else "x"
        return None if re.search(r"\w", _RST_LABEL.sub("", between)) or not following else self.body(following)


def slug(title: str) -> str:
    """The anchor that renderers give a heading.

    >>> slug("Set up, using `pip`!")
    'set-up-using-pip'
    """
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", title.lower()).strip())


def _only(spans: Sequence[Span]) -> Span | None:
    return spans[0] if len(set(spans)) == 1 else None
