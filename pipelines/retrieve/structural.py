"""Structural questions: the router's walk over typed edges, and where its chunks stand among the retriever's.

A graph result must earn its place: the walk is taken only where a name of the question means at most three symbols, a
cue chooses a relation, and there is something at its end. The retriever's first two stay, then the named symbol's own
definition, then what the walk found, then the rest (README, Structural questions).
"""

import re
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pipelines.graph.traversal import Direction, Traversal
from pipelines.retrieve.route import Names, Route, route
from pipelines.retrieve.symbols import Symbol, Symbols

Chunk = TypeVar("Chunk", bound=Hashable)
LONGEST = 2_000
"""Characters of a question that is read for names and cues; more is a pasted file."""
KEPT = 2
"""How many of the retriever's own stay in front."""
DESCRIBED = "described_symbol"
"""Stands in a question for "the function that …", whose symbols are those of the best seeds."""
_DESCRIPTION = re.compile(
    r"\b(?:the|an?|that|this)\s+(?:\w+\s+)?(function|method|class|code|routine|helper|procedure|callable)\s+"
    r"(?:that|which|who|responsible for|in charge of|for|used to|to|\w+ing)\b[^?.,;:]*?"
    r"(?=\s+(?:calls?|invokes?|uses?|inherits?|derives?|extends?|called|invoked|used|defined)\b|[?.,;:]|$)",
    re.IGNORECASE,
)
_TEST = re.compile(r"(?:^|/)(?:tests?|testing)/|(?:^|/)(?:test_[^/]*|[^/]*_test|conftest)\.py$")


@dataclass(frozen=True)
class Step:
    """A symbol that the walk reached, and why: `calls LoRARequest (vllm/lora/request.py:9)`."""

    symbol: Symbol
    why: str


@dataclass(frozen=True)
class Structure:
    """What a question's walk found: where it starts, and the symbols at its end, nearest first."""

    route: Route
    starts: list[Symbol]
    found: list[Step]


class Structural:
    """Takes the walks that questions ask for."""

    def __init__(self, symbols: Symbols, graph: Traversal[Any, Any]) -> None:
        self._symbols = symbols
        self._graph = graph

    def route(self, question: str) -> Route | None:
        """Return what a question asks of a symbol that it names; None where it names none, or asks for no structure."""
        return None if len(question) > LONGEST else route(question, self._names())

    def answer(self, question: str, seeds: Callable[[], Sequence[Symbol]]) -> Structure | None:
        """Return what the graph has for a question, None where it is none for the graph.

        `seeds` gives the symbols of the retriever's best hits; they are the start where a question describes what it
        asks about instead of naming it.
        """
        asked = self.route(question)
        if asked is None:
            if len(question) > LONGEST:
                return None
            described = _DESCRIPTION.search(question)
            if described is None:
                return None
            is_class = described[1].lower() == "class"
            names = Names(lambda name: name == DESCRIBED, lambda name: is_class, lambda owner, name: False)
            asked = route(f"{question[: described.start()]}`{DESCRIBED}`{question[described.end() :]}", names)
            if asked is None or asked.names != (DESCRIBED,):
                return None
            wanted = {"Class"} if is_class else {"Function"}
            starts = [symbol for symbol in seeds() if symbol.type in wanted][:3]
        else:
            starts = self._symbols.start(asked.names[0])
        found: dict[str, Step] = {}
        for step in self._steps(asked, starts):
            found.setdefault(step.symbol.id, step)
        if not starts or (not found and asked.relation != "definition"):
            return None
        own = {symbol.id for symbol in starts}
        return Structure(asked, starts, [step for name, step in found.items() if name not in own])

    def _names(self) -> Names:
        start, resolve = self._symbols.start, self._symbols.resolve
        return Names(
            lambda name: bool(start(name)),
            lambda name: any(symbol.type == "Class" for symbol in resolve(name)),
            lambda owner, name: any(self._method(symbol, name) for symbol in start(owner)),
        )

    def _method(self, owner: Symbol, name: str) -> Symbol | None:
        """A method of a class or of its nearest base that has one."""
        for level in self._levels(owner):
            for above in level:
                if name in self._symbols.members(above.id):
                    return self._symbols.members(above.id)[name]
        return None

    def _steps(self, asked: Route, starts: list[Symbol]) -> Iterator[Step]:
        for start in starts:
            match asked.relation:
                case "callers":
                    yield from self._callers(start, asked.indirect)
                case "callees":
                    yield from self._callees(start)
                case "bases":
                    yield from self._ends([start], "INHERITS_FROM", "out", f"base of {start.place}")
                case "subclasses":
                    yield from self._ends([start], "INHERITS_FROM", "in", f"inherits from {start.place}")
                case "inherited":
                    yield from self._inherited(start)
                case "base_callees" | "base_callers":
                    for method in self._above(start, asked.names[1]):
                        called = asked.relation == "base_callees"
                        yield from self._callees(method) if called else self._callers(method, indirect=False)
                case "tests":
                    yield from self._tests(start, asked.indirect)
                case "importers":
                    yield from self._ends([start], "IMPORTS", "in", f"imports {start.place}")
                case "imports":
                    module = self._symbols.by_id.get(start.path, start)
                    yield from self._ends([module], "IMPORTS", "out", f"imported by {module.place}")
                case "overrides":
                    yield from self._overrides(start)
                case "overridden":
                    owner, _, name = start.name.rpartition(".")
                    above = self._symbols.by_id.get(f"{start.path}::{owner}")
                    for method in self._above(above, name) if above else ():
                        yield Step(method, f"overridden by {start.place}")
                case "definition":
                    return

    def _ends(self, starts: Sequence[Symbol], relation: str, direction: Direction, why: str) -> Iterator[Step]:
        edges = self._graph.edges([symbol.id for symbol in starts], [relation], direction)
        for edge in edges:
            symbol = self._symbols.by_id.get(edge.source if direction == "in" else edge.target)
            if symbol is not None:
                yield Step(symbol, why)

    def _callable(self, symbol: Symbol) -> list[Symbol]:
        """A class is called by its name and by its constructor's, and so is the constructor."""
        owner, _, name = symbol.name.rpartition(".")
        other = self._symbols.members(symbol.id).get("__init__") if symbol.type == "Class" else None
        if name == "__init__":
            other = self._symbols.by_id.get(f"{symbol.path}::{owner}")
        return [symbol, other] if other else [symbol]

    def _callers(self, start: Symbol, indirect: bool) -> Iterator[Step]:
        direct = self._outer(self._ends(self._callable(start), "CALLS", "in", f"calls {start.place}"))
        if not indirect:
            yield from direct
            return
        for step in direct:
            why = f"calls {step.symbol.name}, which calls {start.place}"
            yield from self._outer(self._ends(self._callable(step.symbol), "CALLS", "in", why))

    def _outer(self, steps: Iterator[Step]) -> Iterator[Step]:
        return (replace(step, symbol=self._symbols.outermost(step.symbol)) for step in steps)

    def _callees(self, start: Symbol) -> Iterator[Step]:
        methods = self._symbols.members(start.id).values() if start.type == "Class" else ()
        inside = [s for symbol in (start, *methods) for s in (symbol, *self._symbols.nested(symbol.id))]
        yield from self._ends(inside, "CALLS", "out", f"called by {start.place}")

    def _levels(self, start: Symbol) -> Iterator[list[Symbol]]:
        """A class, its bases, their bases and so on, each once."""
        level, seen = [start], {start.id}
        while level:
            yield level
            above = [step.symbol for step in self._ends(level, "INHERITS_FROM", "out", "")]
            level = [symbol for symbol in dict.fromkeys(above) if symbol.id not in seen]
            seen |= {symbol.id for symbol in level}

    def _inherited(self, start: Symbol) -> Iterator[Step]:
        hidden = set(self._symbols.members(start.id))
        for level in list(self._levels(start))[1:]:
            for base in level:
                for name, method in sorted(self._symbols.members(base.id).items()):
                    if name not in hidden:
                        yield Step(method, f"inherited by {start.place} from {base.name}")
            hidden |= {name for base in level for name in self._symbols.members(base.id)}

    def _above(self, start: Symbol, name: str) -> list[Symbol]:
        """The method of that name in the nearest bases that have one."""
        for level in list(self._levels(start))[1:]:
            found = [self._symbols.members(base.id)[name] for base in level if name in self._symbols.members(base.id)]
            if found:
                return found
        return []

    def _tests(self, start: Symbol, indirect: bool) -> list[Step]:
        """Tests that call it, or call a caller of it; helpers and fixtures of the tests after the tests themselves."""

        def in_tests(steps: Iterator[Step]) -> list[Step]:
            found = [step for step in steps if _TEST.search(step.symbol.path)]
            return sorted(found, key=lambda step: not step.symbol.name.rpartition(".")[2].startswith("test"))

        direct = [] if indirect else in_tests(self._callers(start, indirect=False))
        steps = direct or in_tests(self._callers(start, indirect=True))
        return [replace(step, why=f"tests: {step.why}") for step in steps]

    def _overrides(self, start: Symbol) -> Iterator[Step]:
        owner, _, name = start.name.rpartition(".")
        level = [symbol for symbol in [self._symbols.by_id.get(f"{start.path}::{owner}")] if symbol]
        seen = {symbol.id for symbol in level}
        while level:
            below = [step.symbol for step in self._ends(level, "INHERITS_FROM", "in", "")]
            level = [symbol for symbol in dict.fromkeys(below) if symbol.id not in seen]
            seen |= {symbol.id for symbol in level}
            for symbol in level:
                if name in self._symbols.members(symbol.id):
                    yield Step(self._symbols.members(symbol.id)[name], f"overrides {start.place}")


def insert(ranked: Sequence[Chunk], definitions: Sequence[Chunk], reached: Sequence[Chunk], k: int) -> list[Chunk]:
    """Return at most `k` chunks: the retriever's first two, definitions, what the walk reached, then the rest.

    >>> insert([1, 2, 3, 4, 5], [9], [3, 8, 7], k=5)
    [1, 2, 9, 3, 8]
    """
    return list(dict.fromkeys([*ranked[:KEPT], *definitions, *reached, *ranked]))[:k]
