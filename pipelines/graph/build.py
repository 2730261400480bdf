"""From facts, sites and chunks to the graph: a pure function of rows, whatever their order."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from pipelines.code.facts import Facts
from pipelines.code.link import Site
from pipelines.extract.taxonomy import Taxonomy, load_taxonomy
from pipelines.graph.extracted import Binder, Votes, bound
from pipelines.graph.merged import moved_mentions, moved_sites, united, voted
from pipelines.graph.names import search_key
from pipelines.graph.reviewed import Merges
from pipelines.graph.tables import EDGES, ENTITIES, MENTIONS
from pipelines.rules.corpus import find_by_rule

VERSION = 3
"""Raise it when the same rows give another graph than before."""
ORIGINS = ("parse", "link", "rule", "cooccurrence", "llm")
"""Strongest first: an edge that several found has the origin of the strongest."""
_SILENT = frozenset(map(ORIGINS.index, ("rule", "cooccurrence", "llm")))
"""Whose sites bring no mentions: these come on their own."""
MOST_EVIDENCE = 20
"""Places kept of an edge, the first in the order of the corpus; its weight counts all."""
_TYPES = {"module": "Module", "class": "Class", "function": "Function", "variable": "Variable"}
_WITHOUT_TEXT = frozenset({"fixture"})
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Graph:
    """The three tables, rows sorted."""

    entities: pa.Table
    edges: pa.Table
    mentions: pa.Table
    merged: dict[str, str] = field(default_factory=dict)
    """{id of a name that was found: id of the entity that it is one with}"""

    def tables(self) -> dict[str, pa.Table]:
        return {"entities": self.entities, "edges": self.edges, "mentions": self.mentions}


def build_graph(
    facts: Iterable[Facts],
    documents: Iterable[Mapping[str, Any]],
    outline: Iterable[Mapping[str, Any]],
    chunks: Iterable[Mapping[str, Any]],
    sites: Mapping[str, Iterable[Site]],
    extractions: Iterable[Mapping[str, Any]] = (),
    taxonomy: Taxonomy | None = None,
    merges: Merges | None = None,
) -> Graph:
    """Return the graph.

    `documents`, `outline` and `chunks` are rows of the tables of the chunks stage, `sites` the edges' places by origin,
    `extractions` the rows of what a model found; rules keep to the `taxonomy`, the product's own unless told;
    `merges` are which of the names are one.
    A page of docs is an entity, so is every heading; any other file is one if something refers to it.
    """
    chunks, documents, outline = list(chunks), list(documents), list(outline)
    placed = _Chunks(chunks)
    entities: dict[str, dict[str, Any]] = {}
    mentions: set[tuple[Any, ...]] = set()
    for file in facts:
        _symbols(file, entities, placed, mentions)
    pages = {row["path"]: row for row in documents}
    defined: list[Site] = []
    _headings(sorted(outline, key=lambda row: (row["path"], row["start"])), pages, entities, placed, mentions, defined)
    found: dict[tuple[str, str, str], list[tuple[int, Site]]] = defaultdict(list)
    known = {origin: list(places) for origin, places in sites.items()}
    for site in (site for places in known.values() for site in places):
        for end in (site.source, site.target):
            if end not in entities and end in pages:
                entities[end] = _file(end, pages[end])
    imports = [site for site in known.get("parse", ()) if site.relation == "IMPORTS"]
    taxonomy = taxonomy or load_taxonomy()
    ruled = find_by_rule(entities, documents, outline, chunks, known.get("link", ()), imports, taxonomy)
    said = bound(extractions, {row["chunk_id"]: row for row in chunks}, Binder(entities, imports))
    named = voted(said, ruled)
    merged = (merges or Merges([])).onto(entities.keys() | named.keys())
    entities |= {id: _name(id, votes) for id, votes in united(named, merged).items() if id not in entities}
    mentions.update(moved_mentions(said.mentions, merged))
    for mention in moved_mentions(ruled.mentions, merged):
        entity, path, *place = mention
        placed.mention(mentions, entity, "rule", path, *place)
    for origin, places in [*known.items(), *ruled.sites.items(), ("parse", defined), ("llm", said.sites)]:
        for site in moved_sites(places, merged) if merged else places:
            found[site.source, site.relation, site.target].append((ORIGINS.index(origin), site))
    edges = []
    for key in sorted(found):
        edges.append(_edge(key, found[key], placed))
        for rank, site in found[key]:
            if rank not in _SILENT and site.tier not in _WITHOUT_TEXT and site.relation != "DEFINED_IN":
                placed.mention(mentions, site.target, "reference", site.path, site.start, site.end, site.line)
    return Graph(
        pa.Table.from_pylist([entities[name] for name in sorted(entities)], ENTITIES),
        pa.Table.from_pylist(edges, EDGES),
        _mentions_table(sorted(mentions)),
        merged,
    )


def _mentions_table(rows: list[tuple[Any, ...]]) -> pa.Table:
    columns = list(zip(*rows, strict=True)) or [()] * len(MENTIONS)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, MENTIONS, strict=True)], MENTIONS)


class _Chunks:
    """Finds the chunk that holds an offset of a file."""

    def __init__(self, rows: Iterable[Mapping[str, Any]]) -> None:
        self._rows: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
        for row in sorted(rows, key=lambda row: (row["path"], row["end"])):
            self._rows[row["path"]].append(row)
        self._ends = {path: [row["end"] for row in rows] for path, rows in self._rows.items()}

    def at(self, path: str, offset: int) -> Mapping[str, Any] | None:
        ends = self._ends.get(path, [])
        at = bisect_right(ends, offset)
        row = self._rows[path][at] if at < len(ends) else None
        return row if row is not None and row["start"] <= offset else None

    def mention(
        self, mentions: set[tuple[Any, ...]], entity: str, kind: str, path: str, start: int, end: int, line: int
    ) -> None:
        """Add a mention whose text is in one chunk; one that a cut divides has no text to show."""
        row = self.at(path, start)
        if row is not None and start < end <= row["end"]:
            text = row["text"][start - row["start"] : end - row["start"]]
            mentions.add((entity, row["chunk_id"], kind, start, end, line, text))


def _symbols(
    facts: Facts, entities: dict[str, dict[str, Any]], placed: _Chunks, mentions: set[tuple[Any, ...]]
) -> None:
    for number, symbol in enumerate(facts.symbols):
        kind, name, _, start, end, start_line, end_line, name_line, name_start, name_end = symbol
        entity = facts.symbol_id(number)
        shown = name or facts.path
        key = search_key(name) if name else _file_key(facts.path)
        entities[entity] = _entity(entity, _TYPES[kind], shown, key, facts.path, (start, end, start_line, end_line))
        placed.mention(mentions, entity, "definition", facts.path, name_start, name_end, name_line)


def _headings(
    outline: Iterable[Mapping[str, Any]],
    pages: Mapping[str, Mapping[str, Any]],
    entities: dict[str, dict[str, Any]],
    placed: _Chunks,
    mentions: set[tuple[Any, ...]],
    defined: list[Site],
) -> None:
    """Pages and their headings; of headings of one name on a page the first stands for all."""
    for path, row in sorted(pages.items()):
        if row["parser"] in ("markdown", "sections"):
            entities.setdefault(path, _file(path, row))
    for row in outline:
        entity = f"{row['path']}::{row['name']}"
        if row["kind"] != "heading" or entity in entities:
            continue
        span = (row["start"], row["end"], row["start_line"], row["end_line"])
        entities[entity] = _entity(entity, "Concept", row["title"], search_key(row["title"]), row["path"], span)
        above = row["name"][: -len(row["title"])].removesuffix(" > ") if row["level"] > 1 else ""
        place = _title_place(placed, row)
        parent = f"{row['path']}::{above}" if above else row["path"]
        defined.append(Site(entity, "DEFINED_IN", parent, "definition", row["path"], row["name_line"], *place))
        placed.mention(mentions, entity, "definition", row["path"], *place, row["name_line"])


def _title_place(placed: _Chunks, row: Mapping[str, Any]) -> tuple[int, int]:
    """Where the words of a title are; its first word where markup is among them."""
    chunk = placed.at(row["path"], row["start"])
    if chunk is not None:
        begin = row["start"] - chunk["start"]
        lines = re.match(r"(?:[^\r\n]*(?:\r\n|\r|\n|$)){1,3}", chunk["text"][begin:])  # of the heading, not below it
        end = begin + (lines.end() if lines else 0)
        for written in (row["title"], row["title"].split(" ")[0]):
            at = chunk["text"].find(written, begin, end)
            if at >= 0 and written:
                return chunk["start"] + at, chunk["start"] + at + len(written)
    return row["start"], row["start"]


def _file(path: str, row: Mapping[str, Any]) -> dict[str, Any]:
    kind = "Module" if row["parser"] == "python" else "Concept"
    return _entity(path, kind, path, _file_key(path), path, (0, row["characters"], 1, max(row["lines"], 1)))


def _file_key(path: str) -> str:
    return search_key(path.rpartition("/")[2].partition(".")[0] or path)


def _name(id: str, votes: Votes) -> dict[str, Any]:
    types, name = votes.kinds, votes.name
    return _entity(id, types[0], name, search_key(name), "", (0, 0, 0, 0)) | {"types": types}


def _entity(id: str, kind: str, name: str, key: str, path: str, span: tuple[int, int, int, int]) -> dict[str, Any]:
    return dict(zip(ENTITIES.names, (id, kind, [kind], name, key, path, *span), strict=True))


def _edge(key: tuple[str, str, str], found: list[tuple[int, Site]], placed: _Chunks) -> dict[str, Any]:
    origins = sorted({origin for origin, _ in found})
    if origins[-1] in _SILENT:  # what a weaker origin adds to an edge that is known without it is that it says so, too
        found = [place for place in found if place[0] == origins[0]]
    ordered = sorted(set(found), key=_strongest_first) if len(found) > 1 else found
    places: dict[tuple[str, int, str], None] = {}
    for _, site in ordered:
        chunk = placed.at(site.path, site.start)
        places[site.path, site.line, chunk["chunk_id"] if chunk else ""] = None
    return {
        "source": key[0],
        "relation": key[1],
        "target": key[2],
        "origin": ORIGINS[origins[0]],
        "origins": [ORIGINS[origin] for origin in origins],
        "binding": ordered[0][1].tier,
        "weight": len(ordered),
        "evidence": [
            {"path": path, "start_line": line, "chunk_id": chunk} for path, line, chunk in list(places)[:MOST_EVIDENCE]
        ],
    }


def _strongest_first(found: tuple[int, Site]) -> tuple[int, str, int, Site]:
    return found[0], found[1].path, found[1].start, found[1]
