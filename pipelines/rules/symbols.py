"""The symbol table: which symbol a written name means, by rules that are certain or not at all."""

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from posixpath import dirname
from typing import Any, NamedTuple

from pipelines.graph.names import module_name

_AUXILIARY = re.compile(r"(?:^|/)(?:tests?|testing|benchmarks?|examples?)/|(?:^|/)(?:test_[^/]*|conftest|setup)\.py$")
"""Code that uses the product: docs of the product mean its own symbols."""


class Symbol(NamedTuple):
    """A symbol as names are compared with it."""

    id: str
    type: str
    path: str
    dotted: str
    """Module and qualified name: vllm.lora.request.LoRARequest."""

    @property
    def is_top(self) -> bool:
        """Whether it is a module or stands directly in one."""
        return "." not in self.id.partition("::")[2]


@dataclass(frozen=True)
class Context:
    """What a page says about the names in it, by its links and by what its code imports."""

    path: str
    linked: frozenset[str] = frozenset()
    """Ids of symbols and paths of files."""
    imports: Mapping[str, str] = field(default_factory=dict)


class Meaning(NamedTuple):
    """The symbol that a name means, and the rule that says so (the edge's binding)."""

    symbol: Symbol
    binding: str


class SymbolTable:
    """All symbols of a corpus by the last part of their names; what is defined inside a function is none of them."""

    def __init__(self, entities: Iterable[Mapping[str, Any]]) -> None:
        self.by_id: dict[str, Symbol] = {}
        self._named: dict[str, list[Symbol]] = defaultdict(list)
        self._roots: set[str] = set()
        for row in entities:
            if row["type"] == "Concept" or not row["path"] or "<locals>" in row["id"]:
                continue
            dotted = module_name(row["path"])
            name = row["id"].partition("::")[2]
            self._roots.add(dotted.partition(".")[0])
            symbol = Symbol(row["id"], row["type"], row["path"], f"{dotted}.{name}" if name else dotted)
            self.by_id[symbol.id] = symbol
            self._named[symbol.dotted.rpartition(".")[2]].append(symbol)

    def meaning(self, name: str, context: Context) -> Meaning | None:
        """Return what a name (plain or dotted) means on a page; None where no rule is certain.

        In this order: what the page's code imports under this name, what the page links to, what lies in the page's own
        folder, the only symbol of that name. Variables give way to definitions, tests and examples to the product. A
        module is meant by its dotted name alone, and a member by its bare name only where the page links to it.
        """
        first, _, rest = name.partition(".")
        imported = context.imports.get(first)
        if imported is not None:
            if imported.partition(".")[0] not in self._roots:
                return None  # another package's
            found = [
                symbol for symbol in self._below(f"{imported}.{rest}" if rest else imported) if symbol.type != "Module"
            ]
            return _only(found, "import")
        found = self._called(name)
        is_dotted = "." in name
        if not is_dotted:
            found = [symbol for symbol in found if symbol.type != "Module"]
        folder = dirname(context.path)
        linked = [symbol for symbol in found if {symbol.id, symbol.path} & context.linked]
        near = [symbol for symbol in found if folder and dirname(symbol.path) == folder]
        if not is_dotted:
            found = [symbol for symbol in found if symbol.is_top]
        if not is_auxiliary(context.path):
            found = [symbol for symbol in found if not is_auxiliary(symbol.path)]
        return _only(linked, "link") or _only(near, "local") or _only(found, "qualified" if is_dotted else "unique")

    def type_of(self, name: str) -> str:
        """Return the type that all symbols of this name have, "" where there is none or they differ."""
        types = {symbol.type for symbol in self._named.get(name, [])}
        return types.pop() if len(types) == 1 else ""

    def module(self, dotted: str) -> Symbol | None:
        """Return the module of this dotted name."""
        named = self._named.get(dotted.rpartition(".")[2], [])
        return next((symbol for symbol in named if symbol.dotted == dotted and symbol.type == "Module"), None)

    def _called(self, name: str) -> list[Symbol]:
        """Symbols whose dotted name ends so; else those that a package `a.b` in `a.b.Name` may hand on."""
        named = self._named.get(name.rpartition(".")[2], [])
        if "." not in name:
            return named
        found = [symbol for symbol in named if f".{symbol.dotted}".endswith(f".{name}")]
        return found or self._below(name)

    def _below(self, dotted: str) -> list[Symbol]:
        """The symbol of this dotted name; where there is none, those of its last name anywhere in the package."""
        package, _, last = dotted.rpartition(".")
        named = self._named.get(last, [])
        exact = [symbol for symbol in named if symbol.dotted == dotted]
        top = (symbol for symbol in named if symbol.is_top and symbol.type != "Module")
        return exact or [symbol for symbol in top if package and symbol.dotted.startswith(f"{package}.")]


def is_auxiliary(path: str) -> bool:
    """Whether a file uses the product instead of being a part of it: tests, examples, benchmarks.

    >>> is_auxiliary("tests/test_lora.py"), is_auxiliary("vllm/lora/request.py")
    (True, False)
    """
    return bool(_AUXILIARY.search(path))


def _only(found: list[Symbol], binding: str) -> Meaning | None:
    if len(found) > 1:
        found = [symbol for symbol in found if symbol.type != "Variable"] or found
    if len(found) > 1:
        found = [symbol for symbol in found if not is_auxiliary(symbol.path)] or found
    return Meaning(found[0], binding) if len(found) == 1 else None
