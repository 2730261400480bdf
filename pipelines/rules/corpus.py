"""The rules over a whole corpus: its pages, and the comments and docstrings of its Python files."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.chunking.lines import Lines
from pipelines.chunking.restore import restore_texts
from pipelines.code.link import Site
from pipelines.extract.taxonomy import Taxonomy
from pipelines.rules.mentions import Found, Heading, Mention
from pipelines.rules.names import written_names
from pipelines.rules.page import Terms, read_page
from pipelines.rules.prose import Prose, read_prose
from pipelines.rules.symbols import Context, SymbolTable

PAGES = ("markdown", "sections")
_MARKED = re.compile(r"(?::[a-z]+:)?(`{1,2})[^`\n]{1,200}\1")
"""Back-ticks stand in Python's comments and strings alone."""
Rows = Iterable[Mapping[str, Any]]


@dataclass
class Ruled:
    """What the rules add to a graph."""

    terms: dict[str, tuple[str, str]] = field(default_factory=dict)
    """{id: (spelling, type)} of defined terms and of options, which are in no table."""
    mentions: list[tuple[str, str, int, int, int]] = field(default_factory=list)
    """(entity, path, start, end, line)"""
    sites: dict[str, list[Site]] = field(default_factory=lambda: {"rule": [], "cooccurrence": []})
    """The places of edges, by origin."""


def find_by_rule(
    entities: Mapping[str, Mapping[str, Any]],
    documents: Rows,
    outline: Rows,
    chunks: Rows,
    links: Iterable[Site],
    imports: Iterable[Site],
    taxonomy: Taxonomy,
) -> Ruled:
    """Return what the rules find in a corpus.

    `entities` are rows of the graph by id: symbols, pages, headings. `documents`, `outline` and `chunks` are rows of
    the tables of those names, `links` the sites of origin link, `imports` the parser's sites of the relation IMPORTS.
    """
    table = SymbolTable(entities.values())
    pages = {row["path"]: row for row in documents if row["parser"] in PAGES}
    code = {row["path"]: row for row in documents if row["parser"] == "python"}
    texts = restore_texts(pages.values(), (row for row in chunks if row["path"] in pages))
    headings: dict[str, list[Heading]] = defaultdict(list)
    for row in sorted(outline, key=lambda row: (row["path"], row["start"])):
        if row["path"] in pages and row["kind"] == "heading":
            headings[row["path"]].append(
                Heading(row["start"], f"{row['path']}::{row['name']}", row["title"], row["level"])
            )
    prose = {path: read_prose(text, pages[path]["parser"]) for path, text in sorted(texts.items()) if headings[path]}
    terms = Terms((heading for of_page in headings.values() for heading in of_page), prose.values())
    linked: dict[str, list[Site]] = defaultdict(list)
    for site in links:
        linked[site.path].append(site)
    result = Ruled()
    for path, page in prose.items():  # a text without a heading is a list of something, not docs
        context = Context(path, frozenset(site.target for site in linked[path]), page.imports)
        labels = _labels(page, linked[path], entities, taxonomy)
        found = read_page(page, texts[path], headings[path], labels, context, table, terms, taxonomy)
        _add(result, path, Lines(texts[path]), found)
    reference = taxonomy.relation("REFERENCES")
    if reference is not None:
        owners = _owners(entities, code)
        imported: dict[str, set[str]] = defaultdict(set)
        for site in imports:
            imported[site.path].add(site.target)
        for row in chunks:
            if row["path"] in code and "`" in row["text"]:
                context = Context(row["path"], frozenset({row["path"], *imported[row["path"]]}))
                _comments(result, row, context, table, owners[row["path"]])
    return result


def _labels(
    page: Prose, links: Iterable[Site], entities: Mapping[str, Mapping[str, Any]], taxonomy: Taxonomy
) -> list[Mention]:
    """The texts of a page's links as mentions of what they lead to."""
    starts = [start for start, *_ in page.links]
    found = []
    for site in links:
        at = bisect_right(starts, site.start) - 1
        if at < 0 or site.start >= page.links[at][1] or site.target not in entities:
            continue
        _, _, start, end = page.links[at]
        written = page.text[start:end]
        start, end = (
            start + len(written) - len(written.lstrip("`*_ ")),
            end - len(written) + len(written.rstrip("`*_ ")),
        )
        kind = entities[site.target]["type"]
        if start < end and kind in taxonomy.type_names:
            found.append(Mention(start, end, site.target, kind, "label"))
    return found


def _add(result: Ruled, path: str, lines: Lines, found: Found) -> None:
    def site(source: str, relation: str, target: str, tier: str, place: Mention) -> Site:
        return Site(source, relation, target, tier, path, lines.number(place.start), place.start, place.end)

    result.terms |= found.terms
    result.mentions += [(m.entity, path, m.start, m.end, lines.number(m.start)) for m in found.mentions]
    result.sites["rule"] += [site(source, kind, m.entity, m.binding, m) for source, kind, m in found.references]
    for origin, tier, pairs in (
        ("rule", "abbreviation", found.synonyms),
        ("rule", "argument", found.arguments),
        ("cooccurrence", "sentence", found.together),
    ):
        result.sites[origin] += [site(one.entity, kind, other.entity, tier, one) for one, kind, other in pairs]


def _owners(
    entities: Mapping[str, Mapping[str, Any]], files: Mapping[str, Any]
) -> dict[str, list[tuple[int, int, str]]]:
    """{path: (start, end, id)} of the functions and classes of each Python file, in order."""
    owners: dict[str, list[tuple[int, int, str]]] = {path: [] for path in files}
    for id, row in entities.items():
        if row["type"] in ("Function", "Class") and row["path"] in owners:
            owners[row["path"]].append((row["start"], row["end"], id))
    for spans in owners.values():
        spans.sort()
    return owners


def _comments(
    result: Ruled,
    chunk: Mapping[str, Any],
    context: Context,
    table: SymbolTable,
    owners: Sequence[tuple[int, int, str]],
) -> None:
    """Names between back-ticks in a chunk of Python: what they mean, said by the definition around them."""
    text, path, offset = chunk["text"], chunk["path"], chunk["start"]
    lines = Lines(text)
    for marked in _MARKED.finditer(text):
        for written in written_names(text, *marked.span()):
            meaning = table.meaning(written.name, context)
            if meaning is None or (written.is_plain and written.name.islower()):
                continue
            start, end = offset + written.start, offset + written.end
            line = chunk["start_line"] + lines.number(written.start) - 1
            source = _innermost(owners, start) or path
            target = meaning.symbol.id
            if source != target and not source.startswith(f"{target}."):
                result.mentions.append((target, path, start, end, line))
                place = Site(source, "REFERENCES", target, meaning.binding, path, line, start, end)
                result.sites["rule"].append(place)


def _innermost(owners: Sequence[tuple[int, int, str]], offset: int) -> str:
    at = bisect_right(owners, (offset, 1 << 62, ""))
    while at:
        at -= 1
        start, end, id = owners[at]
        if start <= offset < end:
            return id
        if "." not in id.partition("::")[2] and end <= offset:
            return ""
    return ""
