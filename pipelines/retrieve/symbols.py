"""Names of a graph's symbols, as questions write them."""

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from pipelines.graph.names import module_name

MOST_CANDIDATES = 3
"""A name of more symbols is no place to start from."""
_CODE = ("Function", "Class", "Module")


class Symbol(NamedTuple):
    """A symbol, and where its definition begins."""

    id: str
    type: str
    name: str
    path: str
    start: int
    end: int
    start_line: int

    @property
    def place(self) -> str:
        return f"{self.name} ({self.path}:{self.start_line})"


class Symbols:
    """All symbols of a graph, found by id, qualified name, dotted path, `Class.method` or bare name.

    >>> found = Symbols([Symbol("a/b.py::C.f", "Function", "C.f", "a/b.py", 0, 9, 1)])
    >>> [symbol.id for name in ("C.f", "f", "a.b.C.f", "g") for symbol in found.resolve(name)]
    ['a/b.py::C.f', 'a/b.py::C.f', 'a/b.py::C.f']
    """

    def __init__(self, symbols: Iterable[Symbol]) -> None:
        self.by_id: dict[str, Symbol] = {}
        self._by_name: dict[str, list[Symbol]] = defaultdict(list)
        self._by_last: dict[str, list[Symbol]] = defaultdict(list)
        self._members: dict[str, dict[str, Symbol]] = defaultdict(dict)
        self._nested: dict[str, list[Symbol]] = defaultdict(list)
        for symbol in symbols:
            self.by_id[symbol.id] = symbol
            self._by_name[symbol.name].append(symbol)
            owner, _, last = symbol.name.rpartition(".")
            self._by_last[last].append(symbol)
            outer, inside, _ = symbol.name.partition(".<locals>.")
            if inside:
                self._nested[f"{symbol.path}::{outer}"].append(symbol)
            if owner and symbol.type == "Function":
                self._members[f"{symbol.path}::{owner}"][last] = symbol

    def resolve(self, name: str) -> list[Symbol]:
        """Return the symbols that a name means, by the first rule that gives any; code before variables."""
        exact = self.by_id.get(name)
        if exact:
            return [exact]
        dotted = name.replace("::", ".").replace("/", ".")
        found = self._by_name.get(dotted) or self._by_dotted_path(dotted)
        if not found and "." in dotted:
            suffix = f".{dotted}"
            found = [s for s in self._by_last.get(dotted.rpartition(".")[2], []) if s.name.endswith(suffix)]
        if not found and "." not in dotted:
            found = self._by_last.get(dotted, [])
        code = [symbol for symbol in found if symbol.type in _CODE]
        return sorted(code or found)

    def _by_dotted_path(self, dotted: str) -> list[Symbol]:
        """`package.module.Class.method`, from any folder of the path on."""
        last = dotted.rpartition(".")[2]
        found = []
        for symbol in self._by_last.get(last, []):
            full = f".{module_name(symbol.path)}.{symbol.name}"
            if full.endswith(f".{dotted}") and dotted.count(".") > symbol.name.count("."):
                found.append(symbol)
        return found

    def start(self, name: str) -> list[Symbol]:
        """Return what a walk may start from: nothing where the name means too many symbols."""
        found = self.resolve(name)
        return found if len(found) <= MOST_CANDIDATES else []

    def nested(self, function_id: str) -> list[Symbol]:
        """Return what is defined inside a function, at any depth: its code is the function's, too."""
        return self._nested.get(function_id, [])

    def outermost(self, symbol: Symbol) -> Symbol:
        """Return the function or method that a nested one is a part of; any other symbol itself."""
        outer, inside, _ = symbol.name.partition(".<locals>.")
        return self.by_id.get(f"{symbol.path}::{outer}", symbol) if inside else symbol

    def members(self, class_id: str) -> dict[str, Symbol]:
        """Return {name: method} of a class, its own only."""
        return self._members.get(class_id, {})
