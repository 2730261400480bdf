"""The linker: references of all files become edges between symbols, or are counted with the reason why not."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from pipelines.code.classes import Class
from pipelines.code.evaluate import Evaluator
from pipelines.code.facts import Facts
from pipelines.code.fixtures import fixture_of
from pipelines.code.modules import Module, Modules, Namespace
from pipelines.code.scopes import NONE, Row
from pipelines.code.values import Value

VERSION = 1
"""Raise it when the same facts give other edges than before."""
MOST_TARGETS = 64
"""A reference with more possible targets is ambiguous, and makes no edge."""


class Site(NamedTuple):
    """One place in the source that makes an edge; offsets in characters, half open, `line` 1-based."""

    source: str
    relation: str
    target: str
    tier: str
    path: str
    line: int
    start: int
    end: int


class Unresolved(NamedTuple):
    """One place that makes no edge, and why."""

    path: str
    line: int
    start: int
    end: int
    kind: str
    reason: str
    name: str


@dataclass(frozen=True)
class Links:
    """Every site, in order of path and position, and every reference that was left out, of the kinds that matter."""

    sites: list[Site]
    unresolved: list[Unresolved]

    def counts(self) -> dict[tuple[str, str], int]:
        """How many references of each kind were left out, by reason."""
        return dict(sorted(Counter((item.kind, item.reason) for item in self.unresolved).items()))


Target = tuple[Module, int, str, str]
"""Module, symbol, relation and tier."""


def link(files: Iterable[Facts], hooks: Mapping[str, str] | None = None) -> Links:
    """Return the edges of a corpus. The order of `files` does not matter.

    `hooks` says which method a call of an object reaches through a base from outside: `{"torch.nn.Module": "forward"}`.

    >>> from pipelines.code.facts import file_facts
    >>> found = link([file_facts("b.py", "from a import f\\ndef g(): f()\\n"), file_facts("a.py", "def f(): 1\\n")])
    >>> [(site.source, site.target, site.tier) for site in found.sites if site.relation == "CALLS"]
    [('b.py::g', 'a.py::f', 'import')]
    """
    return Linker(Modules(files), hooks or {}).link()


class Linker:
    """Resolves one reference after the other."""

    def __init__(self, modules: Modules, hooks: Mapping[str, str]) -> None:
        self.modules = modules
        self.hooks = hooks
        self.evaluator = Evaluator(modules)
        self.sites: list[Site] = []
        self.unresolved: list[Unresolved] = []
        self._kinds = {
            "call": self._call, "read": self._read, "store": self._read, "base": self._base,
            "decorator": self._decorator, "string": self._string, "import": self._import,
            "fixture": self._fixture,
        }  # fmt: skip

    def link(self) -> Links:
        for module in self.modules.all:
            for number in range(len(module.rows)):
                self.evaluator.values(module, number)
        for module in self.modules.all:
            self._defined(module)
            for source, kind, number, positions in module.facts.references:
                self._reference(module, source, kind, number, positions)
        self.sites.sort(key=lambda site: (site.path, site.start, site.end, site))
        self.unresolved.sort()
        return Links(self.sites, self.unresolved)

    def _defined(self, module: Module) -> None:
        facts = module.facts
        for number, symbol in enumerate(facts.symbols):
            if number:
                parent = facts.symbol_id(symbol[2])
                place = (module.path, *symbol[7:10])
                self.sites.append(Site(facts.symbol_id(number), "DEFINED_IN", parent, "definition", *place))

    def _reference(self, module: Module, source: int, kind: str, number: int, positions: list[int]) -> None:
        targets, reason = self._kinds[kind](module, number)
        source_id = module.facts.symbol_id(source if kind != "import" else 0)
        if len(targets) > MOST_TARGETS:
            targets, reason = [], "ambiguous"
        places = zip(positions[::3], positions[1::3], positions[2::3], strict=True)
        if not targets:
            if reason:
                name = self._written(module, number)
                self.unresolved += [Unresolved(module.path, *place, kind, reason, name) for place in places]
            return
        unique = {(found.facts.symbol_id(symbol), relation): tier for found, symbol, relation, tier in targets}
        for place in places:
            for (target, relation), tier in unique.items():
                if target != source_id or relation == "CALLS":
                    self.sites.append(Site(source_id, relation, target, tier, module.path, *place))

    # -- kinds of references

    def _call(self, module: Module, number: int) -> tuple[list[Target], str]:
        row = module.rows[number]
        properties = (
            [target for target in self._members(module, row) if target[2] == "CALLS"] if row[0] == "attr" else []
        )
        targets = properties
        reasons = []
        values = self.evaluator.values(module, number)
        for value in values:
            kind = value[0]
            if kind == "function" or kind == "class":
                targets.append((value[1].module, value[1].number, "CALLS", self._tier(module, row, value)))
            elif kind == "instance":
                found = list(self._called(value))
                targets += [(cls.module, symbol, "CALLS", tier) for cls, symbol, tier in found]
                reasons += [] if found else ["no __call__ in the corpus"]
            elif kind == "external":
                reasons.append("builtin" if value[1].startswith("builtins.") else "external")
            elif kind == "method":
                reasons.append("builtin attribute")
            else:
                reasons.append("call of a value")
        if not values:
            reasons.append(self._why(module, row))
        return targets, min(reasons, default="")

    def _called(self, value: Value) -> Iterator[tuple[Class, int, str]]:
        for found in self.evaluator.attribute(value, "__call__"):
            if found[0] == "function":
                yield found[1], found[1].number, "typed"
        for base, method in self.hooks.items():
            if base in value[1].external:
                for found in self.evaluator.attribute(value, method):
                    if found[0] == "function":
                        yield found[1], found[1].number, "hook"

    def _why(self, module: Module, row: Row) -> str:
        if row[0] == "global":
            return "unresolved name"
        if row[0] == "attr":
            base = self.evaluator.values(module, row[1])
            if not base:
                return "receiver of unknown type"
            if any(value[0] == "module" for value in base):
                return "not in the module"
            if row[2].startswith("__") or base[0][0] == "super":
                return "builtin attribute"  # of object
            return "no such attribute"
        if row[0] == "from":
            return "import not found"
        return "value of unknown type"

    def _tier(self, module: Module, row: Row, value: Value) -> str:
        """How the reference was resolved, from the kind of its receiver."""
        if row[0] == "attr":
            base = module.rows[row[1]]
            if base[0] in ("self", "cls", "super"):
                return "self"
            kinds = {item[0] for item in self.evaluator.values(module, row[1])}
            if "module" in kinds:
                return "import"
            return "class" if kinds <= {"class", "variable"} else "typed"
        if row[0] in ("global", "sym", "from", "var", "or"):
            return "local" if value[1].module is module else "import"
        return "cls" if row[0] == "cls" else "typed"

    def _read(self, module: Module, number: int) -> tuple[list[Target], str]:
        return list(self._goto(module, number)), ""

    def _goto(self, module: Module, number: int, depth: int = 0) -> Iterator[Target]:
        """Yield the symbols that a row names, imports followed; what a variable holds is not looked at."""
        row = module.rows[number]
        kind = row[0]
        if depth > 20:
            return
        if kind == "sym" or kind == "var":
            yield module, row[1], "REFERENCES", "local"
        elif kind == "or":
            for part in row[1:]:
                yield from self._goto(module, part, depth + 1)
        elif kind == "attr":
            yield from self._members(module, row)
        elif kind in ("global", "from"):
            found = self.modules.binding(module, row[1]) if kind == "global" else self.evaluator.imported(module, row)
            if isinstance(found, tuple):
                for target, symbol, relation, _ in self._goto(*found, depth + 1):
                    yield target, symbol, relation, "local" if target is module else "import"

    def _members(self, module: Module, row: Row) -> Iterator[Target]:
        receiver = "self" if module.rows[row[1]][0] in ("self", "cls", "super") else ""
        for value in self.evaluator.values(module, row[1]):
            if value[0] == "module":
                found = self.evaluator.member(value[1], row[2])
                if isinstance(found, tuple):
                    for target, symbol, relation, _ in self._goto(*found, 1):
                        yield target, symbol, relation, "import"
            elif value[0] in ("class", "instance", "super"):
                for cls, number in self.evaluator.find(value, row[2]):
                    tier = receiver or ("class" if value[0] == "class" else "typed")
                    for target, symbol, _, _ in self._goto(cls.module, number, 1):
                        flags = target.facts.functions.get(symbol, {}).get("flags", ())
                        called = "property" in flags and value[0] != "class"
                        yield target, symbol, "CALLS" if called else "REFERENCES", "property" if called else tier
                    break

    def _base(self, module: Module, number: int) -> tuple[list[Target], str]:
        values = self.evaluator.values(module, number)
        targets = [(value[1].module, value[1].number, "INHERITS_FROM", self._tier(module, module.rows[number], value))
                   for value in values if value[0] == "class"]  # fmt: skip
        reason = "external" if values else self._why(module, module.rows[number])
        return targets, reason

    def _decorator(self, module: Module, number: int) -> tuple[list[Target], str]:
        targets = [(found, symbol, "REFERENCES", "decorator") for found, symbol, _, _ in self._goto(module, number)
                   if found.facts.symbols[symbol][0] != "variable"]  # fmt: skip
        if targets:
            return targets, ""
        values = self.evaluator.values(module, number)
        return [], "external" if values else self._why(module, module.rows[number])

    def _import(self, module: Module, number: int) -> tuple[list[Target], str]:
        row = module.rows[number]
        if row[0] == "module":
            found: Any = self.modules.locate(module.folder, row[1], row[2])
        else:
            found = self.evaluator.imported(module, row)
        if isinstance(found, tuple):
            targets = [(target, symbol, "IMPORTS", "import") for target, symbol, _, _ in self._goto(*found)]
            if not targets:  # a name that is an imported module
                targets = [(value[1], 0, "IMPORTS", "import") for value in self.evaluator.values(*found)
                           if value[0] == "module" and isinstance(value[1], Module)]  # fmt: skip
            return targets, "" if targets else "external"
        if isinstance(found, Module):
            return [(found, 0, "IMPORTS", "import")], ""
        if isinstance(found, Namespace):
            return [], "folder without __init__.py"
        return [], "import not found" if row[2] or self.modules.knows(module.folder, row[1]) else "external"

    def _fixture(self, module: Module, number: int) -> tuple[list[Target], str]:
        _, function, name, _ = module.rows[number]
        found = fixture_of(self.evaluator, module, function, name)
        return [(found.module, found.number, "CALLS", "fixture")] if found else [], ""

    def _string(self, module: Module, number: int) -> tuple[list[Target], str]:
        return self.named(module.folder, module.rows[number][1]), ""

    def named(self, folder: str, dotted: str) -> list[Target]:
        """Return the symbols that a dotted name written in a file of `folder` means: `pkg.module.Class.method`."""
        parts = dotted.replace(":", ".").split(".")
        for size in range(len(parts), 0, -1):
            found = self.modules.locate(folder, ".".join(parts[:size]), 0)
            if isinstance(found, Module):
                return list(self._named(found, parts[size:], size))
        return []

    def _named(self, module: Module, rest: list[str], size: int) -> Iterator[Target]:
        """Yield the symbol that the parts after a module's name lead to."""
        if not rest:
            if size > 1:
                yield module, 0, "REFERENCES", "string"
            return
        binding = self.modules.binding(module, rest[0])
        if not isinstance(binding, tuple):
            return
        if len(rest) == 1:
            for target, symbol, _, _ in self._goto(*binding):
                yield target, symbol, "REFERENCES", "string"
        elif len(rest) == 2:
            yield from self.members(*binding, rest[1])

    def members(self, module: Module, number: int, name: str) -> Iterator[Target]:
        """Yield the symbols that `.name` is, of the classes or objects that a row may be."""
        for value in self.evaluator.values(module, number):
            if value[0] in ("class", "instance"):
                for cls, row in self.evaluator.find(value, name):
                    for target, symbol, _, _ in self._goto(cls.module, row):
                        yield target, symbol, "REFERENCES", "string"
                    break

    def _written(self, module: Module, number: int) -> str:
        """A dotted name for a report, with … for what has none."""
        parts: list[str] = []
        while len(parts) < 6:
            row = module.rows[number]
            if row[0] == "attr":
                parts.append(row[2])
                number = row[1]
                continue
            if row[0] == "call" and number > NONE:
                parts.append("()")
                number = row[1]
                continue
            known = {"global": 1, "from": 3, "module": 1, "str": 1, "param": 2}.get(row[0])
            parts.append(row[known] if known else row[0] if row[0] in ("self", "cls", "super") else "…")
            break
        return ".".join(reversed(parts)).replace(".()", "()")
