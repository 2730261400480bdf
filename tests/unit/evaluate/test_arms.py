"""What arms hand over: the rules on made-up rankings, and the arms of the graph on a small corpus."""

from pathlib import Path

import pytest

from cgrag import Corpus
from pipelines.errors import CgragError
from pipelines.evaluate import arms
from pipelines.evaluate.arms import MODES, Arm, Bench, chosen
from pipelines.evaluate.places import Places, Span, load_places
from pipelines.evaluate.questions import Question
from pipelines.evaluate.retrievers import open_retriever
from pipelines.lexical.index import load_index
from pipelines.settings import Settings
from tests.support import Home, write_tree

RANKED = [Span("a", at, at + 10) for at in range(0, 100, 10)]


def bench(*questions: Question) -> Bench:
    places = Places("c", "g", {"a": 100}, {})
    return Bench(Settings(home=Path("empty")), places, questions, lambda asked, k: [RANKED[:k] for _ in asked])


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
    assert chosen("arm", [], small.settings) == [
        "plain", "graph", "graph-code", "graph-all", "expand", "matched", "random",
    ]  # fmt: skip
    assert chosen("arm", ["matched", "plain", "matched"], small.settings) == ["matched", "plain"]
    with pytest.raises(CgragError, match="no embeddings yet"):
        MODES[chosen("mode", ["dense"], small.settings)[0]].open(small.settings)
    with pytest.raises(CgragError, match="no arm 'grahp'"):
        chosen("arm", ["grahp"], small.settings)


def test_a_home_without_graph_or_index_is_told_what_to_build(home, tree):
    with pytest.raises(CgragError, match="needs bm25_index, which this home does not hold"):
        chosen("arm", ["plain"], home.settings)
    home.build(write_tree(tree, {"a.md": "# A\n"}))
    home.layout.graph_record.unlink()
    assert chosen("arm", [], home.settings) == ["plain", "matched"]
    for arm in ("graph", "graph-all", "expand", "random"):
        with pytest.raises(CgragError, match=f"{arm} needs knowledge_graph") as error:
            chosen("arm", [arm], home.settings)
        assert "cgrag run --select knowledge_graph" in str(error.value.remedy)


@pytest.fixture(scope="module")
def busy(tmp_path_factory, clean_environment):
    """A home in which one function has thirty callers, each in a chunk of its own."""
    folder = tmp_path_factory.mktemp("busy")
    home = Home(folder / "home", chunking={"cap": 200, "section": 100})
    words = "a bell that has this number of all the bells there are"
    callers = "".join(f"def caller_{n}(argument):\n    return ring(argument, '{n} {words}')\n\n\n" for n in range(30))
    notes = {f"note_{n}.md": f"# Note {n}\n\nWho calls, and what is ring number {n} for?\n" for n in range(4)}
    home.build(write_tree(folder / "busy", {"bell.py": f"def ring(a, b):\n    return a\n\n\n{callers}", **notes}))
    return home


def bench_of(home, *questions):
    return Bench(
        home.settings,
        load_places(home.settings, load_index(home.settings)),
        questions,
        open_retriever("lexical")(home.settings),
    )


ASKS = Question("1", "Who calls `ring`?")
ASKS_NOT = Question("2", "what is the ring number for")


def test_the_graph_arm_is_search_with_graph(busy):
    tried = bench_of(busy, ASKS, ASKS_NOT)
    corpus = Corpus(busy.settings.home)
    corpus.settings = busy.settings
    for k in (1, 3, 8):
        for question, ranking in zip((ASKS, ASKS_NOT), tried.handed_over("graph", k), strict=True):
            found = [Span(r.path, r.start, r.end) for r in corpus.search(question.text, k, graph=True)]
            assert ranking == found
        assert tried.handed_over("graph-all", k) == tried.handed_over("graph", k)
        assert tried.handed_over("matched", k) == tried.handed_over("plain", k)
    assert tried.walks() == {"callers": {"": 1}}


def test_what_a_question_masks_leaves_its_slot_to_the_next(busy):
    whole = bench_of(busy, ASKS).handed_over("graph", 6)[0]
    masked = bench_of(busy, Question("1", ASKS.text, masked=(whole[3],))).handed_over("graph", 5)[0]
    assert masked == [*whole[:3], *whole[4:]]


def test_random_fills_the_slots_of_the_graph_the_same_way_each_time(busy):
    tried, again = bench_of(busy, ASKS, ASKS_NOT), bench_of(busy, ASKS, ASKS_NOT)
    random, plain = tried.handed_over("random", 8), tried.handed_over("plain", 8)
    assert random == again.handed_over("random", 8)
    assert random[1] == plain[1]
    assert random[0][:2] == plain[0][:2] and len(set(random[0])) == 8
    assert random[0] != tried.handed_over("graph", 8)[0]
    assert {span.path for span in random[0][2:]} == {"bell.py"}


def test_expansion_takes_half_of_the_slots(busy):
    tried = bench_of(busy, ASKS_NOT)
    own, found = tried.handed_over("plain", 8)[0], tried.handed_over("expand", 8)[0]
    assert found[:4] == own[:4] and len(found) == len(set(found)) == 8
    assert tried.handed_over("expand", 1) == tried.handed_over("plain", 1)
