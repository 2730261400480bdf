"""What arms hand over, with a graph arm put in as a later stage would."""

import pytest

from pipelines.errors import CgragError
from pipelines.evaluate import arms
from pipelines.evaluate.arms import Arm, Bench, chosen
from pipelines.evaluate.places import Places, Span
from pipelines.evaluate.questions import Question

RANKED = [Span("a", at, at + 10) for at in range(0, 100, 10)]


def bench(*questions: Question) -> Bench:
    places = Places("c", "g", {"a": 100}, {})
    return Bench(None, places, questions, lambda asked, k: [RANKED[:k] for _ in asked])


@pytest.fixture
def graph(monkeypatch):
    """The graph adds two spans to the questions that name it."""

    def hand_over(bench: Bench, k: int) -> list[list[Span]]:
        extra = [Span("g", 0, 10), Span("g", 10, 20)]
        more = [extra if "graph" in question.text else [] for question in bench.questions]
        return [[*ranking, *spans] for ranking, spans in zip(bench.retrieve(k), more, strict=True)]

    monkeypatch.setitem(arms.ARMS, "graph", Arm("knowledge_graph", hand_over, lambda _settings: True))


def test_matched_is_plain_while_there_is_no_graph():
    tried = bench(Question("1", "x"))
    assert tried.handed_over("matched", 3) == tried.handed_over("plain", 3) == [RANKED[:3]]


def test_matched_is_the_retriever_with_as_many_spans_as_the_graph_arm(graph):
    tried = bench(Question("1", "the graph"), Question("2", "x"))
    assert [len(ranking) for ranking in tried.handed_over("graph", 3)] == [5, 3]
    assert tried.handed_over("matched", 3) == [RANKED[:5], RANKED[:3]]


def test_equal_characters_are_filled_up_by_the_retriever_and_cut(graph):
    tried = bench(Question("1", "the graph"))
    assert tried.filled("graph", 2, 45) == [
        [Span("a", 0, 10), Span("a", 10, 20), Span("g", 0, 10), Span("g", 10, 20), Span("a", 20, 25)]
    ]
    assert tried.filled("plain", 2, 45) == [[*RANKED[:4], Span("a", 40, 45)]]
    assert tried.filled("plain", 2, 10_000) == [RANKED]


def test_what_a_question_masks_is_never_handed_over():
    places = Places(
        "c", "g", {"a": 100}, {"a": __import__("numpy").array([[at, at + 10, 1] for at in range(0, 100, 10)])}
    )
    masked = Question("1", "x", masked=(Span("a", 5, 12),))
    tried = Bench(None, places, [masked, Question("2", "x")], lambda asked, k: [RANKED[:k] for _ in asked])
    assert tried.retrieve(3) == [RANKED[2:5], RANKED[:3]]


def test_names_are_chosen_or_refused(small):
    assert chosen("mode", [], small.settings) == ["lexical"]
    assert chosen("arm", [], small.settings) == ["plain", "matched"]
    assert chosen("arm", ["matched", "plain", "matched"], small.settings) == ["matched", "plain"]
    for kind, name, asset in (("mode", "dense", "chunk_embeddings"), ("arm", "graph-all", "knowledge_graph")):
        with pytest.raises(CgragError, match=f"{name} needs {asset}, which is not built"):
            chosen(kind, [name], small.settings)
    with pytest.raises(CgragError, match="no arm 'grahp'"):
        chosen("arm", ["grahp"], small.settings)


def test_a_home_without_an_index_is_told_what_to_build(home):
    with pytest.raises(CgragError, match="needs bm25_index, which this home does not hold"):
        chosen("mode", ["lexical"], home.settings)
