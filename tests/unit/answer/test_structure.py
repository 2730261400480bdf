"""Structural questions: the rows of `cgrag graph`, and nothing asked of a model."""

import pytest

from pipelines.graph.look_up import open_graph
from pipelines.retrieve.graph_search import ADMITTED


def rows(asked, name, relation, direction):
    graph = open_graph(asked.settings, ADMITTED)
    edges = graph.edges([match.id for match in graph.find(name)], [relation], direction)
    return [
        (edge.source, edge.relation, edge.target, places)
        for edge, places in zip(edges, graph.evidence(edges), strict=True)
    ]


@pytest.mark.parametrize(
    ("question", "name", "relation", "direction", "named"),
    [
        ("Who calls `weigh`?", "weigh", "CALLS", "in", ["Keeper.store", "Till.check"]),
        ("What does `Till.check` call?", "Till.check", "CALLS", "out", ["weigh"]),
        ("What does Till inherit from?", "Till", "INHERITS_FROM", "out", ["Keeper"]),
        ("Which classes inherit from Keeper?", "Keeper", "INHERITS_FROM", "in", ["Till"]),
        ("What imports `Keeper`?", "Keeper", "IMPORTS", "in", ["shop/till.py"]),
    ],
)
def test_one_relation_is_answered_by_its_rows(asked, fake, question, name, relation, direction, named):
    answer = asked.answer(question)
    wanted = rows(asked, name, relation, direction)
    assert wanted
    assert [(row["source"], row["relation"], row["target"], row["evidence"]) for row in answer.edges] == wanted
    assert (answer.by, answer.found, answer.missing) == ("graph", True, "")
    assert [(source.path, source.start_line) for source in answer.sources] == [
        (places[0]["path"], places[0]["start_line"]) for *_, places in wanted
    ]
    assert all(f"`{end}` [{n}]" in answer.text for n, end in enumerate(named, 1))
    assert fake.requests == 0


def test_what_nothing_calls_is_said_to_be_called_by_nothing(asked, fake):
    answer = asked.answer("Who calls `lonely`?")
    assert (answer.by, answer.found, answer.edges) == ("graph", False, [])
    assert "nothing in the corpus calls `lonely`" in answer.text
    assert answer.sources[0].path == "shop/till.py"
    assert fake.requests == 0


def test_a_walk_of_several_relations_names_what_it_reached(asked, fake):
    answer = asked.answer("Which methods does Till inherit?")
    assert (answer.by, answer.edges) == ("graph", [])
    assert "`Keeper.store` [1]" in answer.text
    assert (answer.sources[0].path, answer.sources[0].start_line) == ("shop/base.py", 2)
    assert fake.requests == 0


@pytest.mark.parametrize(
    "question", ["How do I enable LoRA adapters?", "Why does `weigh` call len?", "Where is Till defined?"]
)
def test_other_questions_are_not_the_graphs(asked, question):
    assert asked.answer(question, ask=False).by == "nobody"


def test_naive_does_not_ask_the_graph(asked, fake):
    asked.change(answer={"evidence": 0})
    with asked.answerer(mode="naive") as answerer:
        assert answerer.answer("Who calls `weigh`?").by == "model"


def test_a_follow_up_asks_the_graph_about_what_was_spoken_of(asked):
    from pipelines.answer.conversation import turn_of

    first = asked.answer("What does `Till.check` call?")
    answer = asked.answer("And who calls it?", turns=[turn_of(first)])
    assert "`Till.check`" in answer.text
