"""What a model said, as a part of the graph: its names bound to symbols where a rule is certain, else kept as names.

A name means a symbol or a file only by one of four rules, tried in this order; where one gives more than one, and where
none gives any, it stays a name. The rule is kept as the binding:

- qualified: it is a symbol's id, its dotted path, or a file's path;
- local: a symbol of the file that it stands in has that name;
- import: that file imports a symbol of that name;
- unique: one symbol of the corpus, or one file, has that name, and it is written as only code is.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.chunking.lines import Lines
from pipelines.code.link import Site
from pipelines.extract.names import is_identifier
from pipelines.graph.names import module_name, name_id

_PARTS = re.compile(r"[./:]")
BINDINGS = ("qualified", "local", "import", "unique", "name")
"""The surest first; an edge has the weaker of its ends'."""


@dataclass
class Votes:
    """How often a name is written in which way, and given which type."""

    spellings: Counter[str] = field(default_factory=Counter)
    types: Counter[str] = field(default_factory=Counter)

    def add(self, more: "Votes") -> None:
        self.spellings.update(more.spellings)
        self.types.update(more.types)

    @property
    def name(self) -> str:
        """The most usual spelling."""
        return _most(self.spellings)[0]

    @property
    def kinds(self) -> list[str]:
        """All types, the most usual first."""
        return _most(self.types)


@dataclass
class Extracted:
    """What is added to a graph."""

    names: dict[str, Votes] = field(default_factory=dict)
    """Of the entities that are only names, by id."""
    mentions: set[tuple[Any, ...]] = field(default_factory=set)
    """(entity, chunk, "extraction", start, end, line, text)"""
    sites: list[Site] = field(default_factory=list)


class Binder:
    """Says what a name in a file means; `entities` are those without a model, `imports` the sites of IMPORTS."""

    def __init__(self, entities: Mapping[str, Mapping[str, Any]], imports: Iterable[Site]) -> None:
        self._qualified: dict[str, set[str]] = defaultdict(set)
        self._local: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._imported: dict[tuple[str, str], set[str]] = defaultdict(set)
        self._everywhere: dict[str, set[str]] = defaultdict(set)
        for id, entity in entities.items():
            path, symbol, name = id.partition("::")
            self._qualified[id].add(id)
            if not symbol:
                self._everywhere[path.rpartition("/")[2]].add(id)
            if entity["type"] == "Concept":
                continue
            dotted = module_name(path)
            self._qualified[f"{dotted}.{name}" if symbol else dotted].add(id)
            if symbol:
                for called in {name, name.rpartition(".")[2]}:
                    self._local[path, called].add(id)
                    self._everywhere[called].add(id)
        for site in imports:
            module, symbol, name = site.target.partition("::")
            dotted = name if symbol else module_name(module)
            self._imported[site.path, dotted.rpartition(".")[2]].add(site.target)

    def bind(self, name: str, path: str) -> tuple[str, str]:
        """Return (entity, binding) of a name that stands in a file."""
        rules = (
            ("qualified", self._qualified.get(name) if _PARTS.search(name) else None),
            ("local", self._local.get((path, name))),
            ("import", self._imported.get((path, name))),
            ("unique", self._everywhere.get(name) if is_identifier(name) else None),
        )
        for binding, found in rules:
            if found:
                return (next(iter(found)), binding) if len(found) == 1 else (name_id(name), "name")
        return name_id(name), "name"


def bound(rows: Iterable[Mapping[str, Any]], chunks: Mapping[str, Mapping[str, Any]], binder: Binder) -> Extracted:
    """Return what the rows of the extractions tables add to a graph, whose `chunks` are given by their ids.

    A relation whose ends mean the same entity is none.
    """
    found = Extracted()
    for row in rows:
        chunk = chunks[row["chunk_id"]]
        lines = Lines(chunk["text"])

        def line_of(start: int, lines: Lines = lines, chunk: Mapping[str, Any] = chunk) -> int:
            return int(chunk["start_line"]) + lines.number(start - chunk["start"]) - 1

        ends: dict[str, tuple[str, str]] = {}
        for entity in row["entities"]:
            name = entity["name"]
            ends[name] = id, binding = binder.bind(name, row["path"])
            for start in entity["starts"]:
                end = start + len(name)
                found.mentions.add((id, row["chunk_id"], "extraction", start, end, line_of(start), name))
            if binding == "name":
                votes = found.names.setdefault(id, Votes())
                votes.spellings[name] += len(entity["starts"])
                votes.types[entity["type"]] += 1
        first = {entity["name"]: entity["starts"][0] for entity in row["entities"]}
        for relation in row["relations"]:
            (source, one), (target, other) = ends[relation["source"]], ends[relation["target"]]
            if source == target:
                continue
            start = first[relation["source"]]
            weaker = max(one, other, key=BINDINGS.index)
            end = start + len(relation["source"])
            found.sites.append(Site(source, relation["type"], target, weaker, row["path"], line_of(start), start, end))
    return found


def _most(counts: Counter[str]) -> list[str]:
    return sorted(counts, key=lambda value: (-counts[value], value))
