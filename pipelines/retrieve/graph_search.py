"""`search --graph`: the retriever's ranking with the graph's chunks put in where a question asks for structure."""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from pipelines.chunking.python import collector_off
from pipelines.graph.look_up import Store, open_graph
from pipelines.lexical.index import LexicalIndex
from pipelines.retrieve.rankers import Lexical
from pipelines.retrieve.route import Route
from pipelines.retrieve.search import Ranker, Result, best_part_of, checked, results_of, search, top_k
from pipelines.retrieve.structural import KEPT, Step, Structural, Structure, insert
from pipelines.retrieve.symbols import Symbol, Symbols
from pipelines.settings import Settings

_SEEDS = 3
_BEGINNING = 200
"""Characters of a definition that decide which chunk shows it: its first line may be the last of a chunk of imports."""


@dataclass(frozen=True)
class Placed:
    """The chunks that a walk gives a question, by number, each with what it is there for."""

    structure: Structure
    definitions: dict[int, Symbol]
    reached: dict[int, Step]

    def into(self, ranked: Sequence[int], k: int) -> list[int]:
        """Return at most `k` chunks: those of a ranking with these put in."""
        return insert(ranked, list(self.definitions), list(self.reached), k)


class GraphSearch:
    """A loaded index and the current graph, to be asked many questions.

    Only edges with an origin in `origins` are seen, all of them where it is None; searches follow those of
    `admitted_origins`. The walk's chunks are put into the ranking of `ranker`, the lexical one unless told; which walk
    is taken does not depend on it.

    Raises:
        CgragError: there is no graph in that store.
    """

    def __init__(
        self,
        index: LexicalIndex,
        settings: Settings,
        origins: Iterable[str] | None,
        store: Store = "duckdb",
        ranker: Ranker | None = None,
    ) -> None:
        self._index = index
        self._lexical = Lexical(index)
        self._ranker = ranker or self._lexical
        with collector_off():
            self.graph = open_graph(settings, origins, store)
            self._symbols = Symbols(map(Symbol._make, self.graph.symbols()))
        self._structural = Structural(self._symbols, self.graph)

    def route(self, question: str) -> Route | None:
        """Return what a question asks of a symbol that it names; None where it asks for no structure."""
        return self._structural.route(question)

    def structure(self, question: str) -> Structure | None:
        """Return the walk that a question asks for, None where it asks for none."""
        return self._structural.answer(question, lambda: self._seeds(question))

    def placed(self, question: str) -> Placed | None:
        """Return the chunks of the walk that a question asks for, None where it asks for none."""
        found = self.structure(question)
        if found is None:
            return None
        reached: dict[int, Step] = {}
        for step in found.found:  # the walk's own order: by lexical score less was found
            for number in self._chunks_of([step.symbol]):
                reached.setdefault(number, step)
        return Placed(found, self._chunks_of(found.starts), reached)

    def search(self, question: str, k: int = 5) -> list[Result]:
        """Return at most `k` chunks, as `search` does; those that the graph put in say `via` graph and why."""
        checked(question, k)
        (scored,) = self._ranker.score([question])
        ranked = top_k(scored.scores, k)
        placed = self.placed(question)
        order = placed.into(ranked, k) if placed else ranked
        results = results_of(self._ranker, order, scored)
        if placed is None:
            return results
        return [
            _explained(result, number, placed) if number not in ranked[:KEPT] else result
            for number, result in zip(order, results, strict=True)
        ]

    def ranking(self, question: str, k: int) -> list[int]:
        """Return the chunk numbers of `search`, without the rest of the results."""
        (scored,) = self._ranker.score([question])
        ranked = top_k(scored.scores, k)
        placed = self.placed(question)
        return placed.into(ranked, k) if placed else ranked

    def defining(self) -> list[int]:
        """Return the chunks that show the beginning of a symbol, in order."""
        return sorted(self._chunks_of(list(self._symbols.by_id.values())))

    def _seeds(self, question: str) -> list[Symbol]:
        """The innermost symbols of the lexical ranking's best hits."""
        found = []
        for result in search(self._lexical, question, _SEEDS):
            symbol = self._symbols.by_id.get(f"{result.path}::{result.part.name}")
            if symbol is not None:
                found.append(symbol)
        return found

    def _chunks_of(self, symbols: Sequence[Symbol]) -> dict[int, Symbol]:
        """{chunk: symbol} of the chunks that show the symbols: those with most of the beginning of a definition."""
        found: dict[int, Symbol] = {}
        for symbol in symbols:
            starts, ends, numbers = self._places.get(symbol.path, ([], [], []))
            first, last = symbol.start, self._head_end(symbol)
            places = range(max(bisect_right(starts, first) - 1, 0), bisect_left(starts, last))
            held = [(min(ends[at], last) - max(starts[at], first), -at) for at in places]
            most, at = max(held, default=(0, 0))
            if most > 0:
                found.setdefault(numbers[-at], symbol)
        return found

    def _head_end(self, symbol: Symbol) -> int:
        """Where the beginning of a definition ends; that of a class before its first method."""
        methods = (method.start for method in self._symbols.members(symbol.id).values())
        return max(min([symbol.end, symbol.start + _BEGINNING, *methods]), symbol.start + 1)

    @cached_property
    def _places(self) -> dict[str, tuple[list[int], list[int], list[int]]]:
        """{path: (starts, ends, numbers)} of its chunks, by start."""
        table = self._index.table
        rows = zip(table["path"].to_pylist(), table["start"].to_pylist(), table["end"].to_pylist(), strict=True)
        places: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        for number, (path, start, end) in enumerate(rows):
            places[path].append((start, end, number))
        return {
            path: ([s for s, _, _ in found], [e for _, e, _ in found], [n for _, _, n in found])
            for path, found in ((path, sorted(found)) for path, found in places.items())
        }


def _explained(result: Result, number: int, placed: Placed) -> Result:
    if number in placed.reached:
        step = placed.reached[number]
        return replace(result, via="graph", why=step.why, part=best_part_of(result.part, step.symbol))
    if number in placed.definitions:
        symbol = placed.definitions[number]
        return replace(result, via="graph", why=f"defines {symbol.place}", part=best_part_of(result.part, symbol))
    return result
