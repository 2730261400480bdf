"""Modes (how chunks are ranked) and arms (what is handed over): a later stage adds itself to the two tables below.

A mode gives a retriever; an arm is a function of a bench. The scorer knows neither by name.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pipelines.dense.index import can_ask_vectors
from pipelines.errors import CgragError
from pipelines.evaluate import graph_arms
from pipelines.evaluate.places import Places
from pipelines.evaluate.questions import Question
from pipelines.evaluate.retrievers import Retriever, open_retriever
from pipelines.evaluate.scoring import Ranking
from pipelines.lexical.index import current_generation
from pipelines.progress import Progress, silent
from pipelines.settings import Settings

_BATCH = 100


@dataclass(frozen=True)
class Mode:
    """A way to rank chunks."""

    asset: str
    """What it reads."""
    open: Callable[[Settings], Retriever]
    is_built: Callable[[Settings], bool]


@dataclass(frozen=True)
class Arm:
    """What is handed over at k: `hand_over(bench, k)` gives a ranking for each question of the bench."""

    asset: str
    hand_over: Callable[["Bench", int], list[Ranking]]
    is_built: Callable[[Settings], bool]


@dataclass
class Bench:
    """Questions and a retriever; remembers what it has retrieved, and leaves out what a question masks."""

    settings: Settings
    places: Places
    questions: Sequence[Question]
    retriever: Retriever
    progress: Progress = silent
    _deepest: tuple[int, list[Ranking]] = (0, [])
    _handed: dict[tuple[str, int], list[Ranking]] = field(default_factory=dict)
    _graphs: dict[graph_arms.View, graph_arms.Graph] = field(default_factory=dict)

    def retrieve(self, k: int) -> list[Ranking]:
        """Return the retriever's first `k` spans for each question."""
        if k > self._deepest[0]:
            hidden = max((self.places.overlapping(question.masked) for question in self.questions), default=0)
            rankings: list[Ranking] = []
            for first in range(0, len(self.questions), _BATCH):
                rankings += self.retriever(self.questions[first : first + _BATCH], k + hidden)
                self.progress(len(rankings), len(self.questions))
            self._deepest = (k, [ranking[:k] for ranking in self.unmasked(rankings)])
        return [ranking[:k] for ranking in self._deepest[1]]

    def handed_over(self, arm: str, k: int) -> list[Ranking]:
        """Return what an arm hands over at `k`: at most k spans, or more where it adds context by design."""
        if (arm, k) not in self._handed:
            self._handed[arm, k] = self.unmasked(ARMS[arm].hand_over(self, k))
        return self._handed[arm, k]

    def filled(self, arm: str, k: int, characters: int) -> list[Ranking]:
        """Return what an arm hands over at `k` and then the retriever's next spans, cut after so many characters."""
        own, depth = self.handed_over(arm, k), 2 * k
        while True:
            more = self.retrieve(depth)
            joined = [list(dict.fromkeys([*a, *b])) for a, b in zip(own, more, strict=True)]
            short = (sum(max(end - start, 0) for _, start, end in ranking) < characters for ranking in joined)
            if not any(lacks and len(b) == depth for lacks, b in zip(short, more, strict=True)):
                return [_cut(ranking, characters) for ranking in joined]
            depth *= 2

    def graph(self, arm: graph_arms.View) -> graph_arms.Graph:
        """Return the graph as an arm sees it, with its answers to these questions, opened once."""
        if arm not in self._graphs:
            self._graphs[arm] = graph_arms.Graph(self, arm)
        return self._graphs[arm]

    def walks(self) -> dict[str, dict[str, int]]:
        """Return {relation: {split: questions}} of the walks taken so far; of no arm that takes any, nothing."""
        opened = next(iter(self._graphs.values()), None)
        return opened.walks(self.questions) if opened else {}

    def unmasked(self, rankings: list[Ranking]) -> list[Ranking]:
        """Return rankings of the questions without what these mask."""
        return [
            [
                span
                for span in ranking
                if not any(m.path == span.path and m.start < span.end and span.start < m.end for m in question.masked)
            ]
            if question.masked
            else ranking
            for question, ranking in zip(self.questions, rankings, strict=True)
        ]


def _cut(ranking: Ranking, characters: int) -> Ranking:
    kept, left = [], characters
    for span in ranking:
        if left <= 0:
            break
        kept.append(span._replace(end=min(span.end, span.start + left)))
        left -= max(span.end - span.start, 0)
    return kept


def plain(bench: Bench, k: int) -> list[Ranking]:
    """The retriever's first `k`."""
    return bench.retrieve(k)


def matched(bench: Bench, k: int) -> list[Ranking]:
    """The retriever alone, for each question as many as the graph arm handed over, `k` where it added none.

    What the graph is worth is what it gives beyond this. While there is no graph, it is the plain arm.
    """
    if not ARMS["graph"].is_built(bench.settings):
        return bench.retrieve(k)
    wanted = [max(k, len(ranking)) for ranking in bench.handed_over("graph", k)]
    deep = bench.retrieve(max(wanted, default=k))
    return [ranking[:many] for ranking, many in zip(deep, wanted, strict=True)]


def _is_indexed(settings: Settings) -> bool:
    return current_generation(settings) is not None


MODES = {
    "lexical": Mode("bm25_index", open_retriever("lexical"), _is_indexed),
    "dense": Mode("chunk_embeddings", open_retriever("dense"), can_ask_vectors),
    "hybrid": Mode("chunk_embeddings", open_retriever("hybrid"), can_ask_vectors),
}
ARMS = {
    "plain": Arm("bm25_index", plain, _is_indexed),
    "graph": Arm("knowledge_graph", graph_arms.graph, graph_arms.has_graph),
    "graph-code": Arm("knowledge_graph", graph_arms.graph_code, graph_arms.has_graph),
    "graph-all": Arm("knowledge_graph", graph_arms.graph_all, graph_arms.has_graph),
    "expand": Arm("knowledge_graph", graph_arms.expand, graph_arms.has_graph),
    "matched": Arm("bm25_index", matched, _is_indexed),
    "random": Arm("knowledge_graph", graph_arms.random_chunks, graph_arms.has_graph),
}


def chosen(kind: Literal["mode", "arm"], names: Sequence[str], settings: Settings) -> list[str]:
    """Return the modes or arms to evaluate: those named, each once; without names all whose data is built.

    Raises:
        CgragError: a name is unknown, or an arm's data is not built; the message says which.
    """
    table: dict[str, Mode] | dict[str, Arm] = MODES if kind == "mode" else ARMS
    built = [name for name, entry in table.items() if entry.is_built(settings)]
    for name in names:
        if name not in table:
            raise CgragError(f"There is no {kind} {name!r}.", f"The {kind}s are: {', '.join(table)}")
        if name not in built and kind == "arm":  # what a mode lacks is said best by what opens it
            raise CgragError(
                f"The arm {name} needs {table[name].asset}, which this home does not hold.",
                f"Build it:  cgrag run --select {table[name].asset}",
            )
    return list(dict.fromkeys(names)) or built
