"""Rankings of many questions at once, as spans: no text is read, no reason is given."""

from collections.abc import Callable, Sequence

from pipelines.evaluate.places import Span
from pipelines.evaluate.questions import Question
from pipelines.evaluate.scoring import Ranking
from pipelines.lexical.index import LexicalIndex, load_index
from pipelines.lexical.tokens import query_terms
from pipelines.retrieve.search import lexical_scores, top_k
from pipelines.settings import Settings

Retriever = Callable[[Sequence[Question], int], list[Ranking]]
"""(questions, k) -> for each question at most k spans, best first, each list a prefix of any longer one."""


def open_lexical(settings: Settings) -> Retriever:
    """Return the retriever of the lexical index; raises CgragError where there is none of these settings."""
    return lexical(load_index(settings))


def lexical(index: LexicalIndex) -> Retriever:
    """Return the retriever of `cgrag search`; a question without a term of the corpus has no results."""
    paths, starts, ends = (index.table[name].to_pylist() for name in ("path", "start", "end"))

    def retrieve(questions: Sequence[Question], k: int) -> list[Ranking]:
        asked = (query_terms(question.text) for question in questions)
        best = (top_k(lexical_scores(index, terms), k) for terms in asked)
        return [[Span(paths[number], starts[number], ends[number]) for number in numbers] for numbers in best]

    return retrieve
