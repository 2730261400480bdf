"""Rankings of many questions at once, as spans: no text is read, no reason is given."""

from collections.abc import Callable, Sequence

from pipelines.evaluate.places import Span
from pipelines.evaluate.questions import Question
from pipelines.evaluate.scoring import Ranking
from pipelines.lexical.index import load_index
from pipelines.retrieve.rankers import open_ranker
from pipelines.retrieve.search import Mode, Ranker, top_k
from pipelines.settings import Settings

Retriever = Callable[[Sequence[Question], int], list[Ranking]]
"""(questions, k) -> for each question at most k spans, best first, each list a prefix of any longer one."""


def open_retriever(mode: Mode) -> Callable[[Settings], Retriever]:
    """Return what opens the retriever of a mode; it raises CgragError as `open_ranker` does."""
    return lambda settings: retriever(open_ranker(mode, load_index(settings), settings))


def retriever(ranker: Ranker) -> Retriever:
    """Return the retriever of a ranker, as `cgrag search` uses it."""
    paths, starts, ends = (ranker.index.table[name].to_pylist() for name in ("path", "start", "end"))

    def retrieve(questions: Sequence[Question], k: int) -> list[Ranking]:
        scored = ranker.score([question.text for question in questions])
        best = (top_k(one.scores, k) for one in scored)
        return [[Span(paths[number], starts[number], ends[number]) for number in numbers] for numbers in best]

    return retrieve
