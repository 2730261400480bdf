"""The arms that need the graph: what `search --graph` hands over, generic expansion, and a random control."""

import random
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pipelines.evaluate.places import Span
from pipelines.evaluate.questions import Question
from pipelines.evaluate.scoring import Ranking
from pipelines.graph.look_up import admitted_origins
from pipelines.graph.store import graph_record
from pipelines.layout import Layout
from pipelines.lexical.index import current_generation, load_index
from pipelines.retrieve.doc_hop import spread
from pipelines.retrieve.expand import Expansion
from pipelines.retrieve.graph_search import GraphSearch, Placed
from pipelines.retrieve.structural import KEPT, insert
from pipelines.settings import Settings

View = Literal["graph", "graph-all", "graph-code"]
"""Arms that see the graph through other origins."""

if TYPE_CHECKING:
    from pipelines.evaluate.arms import Bench


class Graph:
    """The current graph, asked all questions of a bench, as an arm sees it."""

    def __init__(self, bench: "Bench", arm: View) -> None:
        self._settings = bench.settings
        self._index = load_index(bench.settings)
        self._search = GraphSearch(self._index, bench.settings, _origins(arm, bench.settings))
        self.placed: list[Placed | None] = [self._search.placed(question.text) for question in bench.questions]
        columns = (self._index.table[name].to_pylist() for name in ("path", "start", "end"))
        self.spans = [Span(*place) for place in zip(*columns, strict=True)]

    def walks(self, questions: Sequence[Question]) -> dict[str, dict[str, int]]:
        """Return how many questions of each split a walk was taken for, by its relation; "" is no split."""
        found: dict[str, Counter[str]] = {}
        for question, placed in zip(questions, self.placed, strict=True):
            if placed:
                found.setdefault(placed.structure.route.relation, Counter())[question.split] += 1
        return {relation: dict(sorted(counts.items())) for relation, counts in sorted(found.items())}

    def hopped(self, ranking: Ranking) -> Ranking:
        """Return the spans of code that the docs at the top of a ranking refer to."""
        ranked = [self.numbers[span] for span in ranking if span in self.numbers]
        return [self.spans[number] for number in self._search.hopped(ranked)]

    @cached_property
    def defining(self) -> list[int]:
        return self._search.defining()

    @cached_property
    def numbers(self) -> dict[Span, int]:
        return {span: number for number, span in enumerate(self.spans)}

    @cached_property
    def expansion(self) -> Expansion:
        return Expansion(self._index, self._settings, admitted_origins(self._settings))


def _origins(arm: View, settings: Settings) -> tuple[str, ...] | None:
    return {"graph": admitted_origins(settings), "graph-all": None, "graph-code": ("parse",)}[arm]


def has_graph(settings: Settings) -> bool:
    return current_generation(settings) is not None and graph_record(Layout(settings.home)) is not None


def graph(bench: "Bench", k: int) -> list[Ranking]:
    """The retriever's ranking with the walk's chunks put in, or those that docs refer to, at most `k`."""
    return _inserted(bench, bench.graph("graph"), k)


def graph_code(bench: "Bench", k: int) -> list[Ranking]:
    """The same over the parser's edges alone: without links, and without what else docs say."""
    return _inserted(bench, bench.graph("graph-code"), k)


def graph_all(bench: "Bench", k: int) -> list[Ranking]:
    """The same over all edges, also those of origins that are not admitted."""
    return _inserted(bench, bench.graph("graph-all"), k)


def random_chunks(bench: "Bench", k: int) -> list[Ranking]:
    """The graph arm with other chunks of the graph in its slots: what just any of them would give."""
    opened = bench.graph("graph")
    handed = []
    for question, placed, ranking in zip(bench.questions, opened.placed, bench.retrieve(k), strict=True):
        if placed:
            own = {opened.spans[number] for number in (*placed.definitions, *placed.reached)}
            slots = sum(span in own for span in insert(ranking, *_spans(opened, placed), k)[KEPT:])
            drawn = random.Random(question.key).sample(opened.defining, min(slots, len(opened.defining)))
            ranking = insert(ranking, [], [opened.spans[number] for number in drawn], k)
        handed.append(ranking)
    return handed


def expand(bench: "Bench", k: int) -> list[Ranking]:
    """The retriever's first half, as many chunks that expansion finds from these, then the retriever's next."""
    opened = bench.graph("graph")
    handed = []
    for ranking in bench.retrieve(k):
        own = ranking[: k - k // 2]
        found = opened.expansion.expand([opened.numbers[span] for span in own if span in opened.numbers], k // 2)
        handed.append(list(dict.fromkeys([*own, *(opened.spans[number] for number in found), *ranking]))[:k])
    return handed


def _inserted(bench: "Bench", opened: Graph, k: int) -> list[Ranking]:
    """The walks' chunks among the rankings: what a question masks is taken out before the first `k` are counted."""
    whole = []
    for placed, ranking in zip(opened.placed, bench.retrieve(k), strict=True):
        if placed is None:
            whole.append(spread(ranking, opened.hopped(ranking), 2 * k))
            continue
        definitions, reached = _spans(opened, placed)
        whole.append(insert(ranking, definitions, reached, k + len(definitions) + len(reached)))
    return [ranking[:k] for ranking in bench.unmasked(whole)]


def _spans(opened: Graph, placed: Placed) -> tuple[list[Span], list[Span]]:
    return [opened.spans[number] for number in placed.definitions], [opened.spans[number] for number in placed.reached]
