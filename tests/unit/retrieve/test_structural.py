"""Each relation on a small corpus, and questions that ask for no walk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.retrieve.structural import KEPT, insert

chunks = st.lists(st.integers(0, 30), max_size=12)


@given(st.lists(st.integers(0, 30), max_size=12, unique=True), chunks, chunks, st.integers(1, 30))
def test_insertion_keeps_the_best_has_no_duplicates_and_only_grows(ranked, definitions, reached, k):
    found = insert(ranked, definitions, reached, k)
    assert found[:KEPT] == (ranked[:KEPT] + found[len(ranked[:KEPT]) :])[: min(k, KEPT)]
    assert len(found) == len(set(found)) == min(k, len({*ranked, *definitions, *reached}))
    assert insert(ranked, definitions, reached, k + 1)[: len(found)] == found
    assert insert(ranked, [], [], k) == ranked[:k]


@pytest.fixture
def reached(asked):
    """What a question's walk finds, by name, in its order; None where none is taken."""

    def names(question):
        found = asked.structure(question)
        return found and [step.symbol.name for step in found.found]

    return names


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Who calls `weigh`?", "Keeper.check make_drawer"),  # a nested function counts as the one around it
        ("Which functions call `Till`?", "open_shop"),
        ("Who calls `Till.__init__`?", "open_shop"),
        ("What does `make_drawer` call?", "weigh make_drawer.<locals>.numbered"),
        ("What does `open_shop` call?", "Till Keeper.store"),
        ("What does `Till` inherit from?", "Keeper Labelled"),
        ("Which classes derive from `Keeper`?", "Till"),
        ("Which methods does `Till` inherit?", "Keeper.count Keeper.store Labelled.count Labelled.label"),
        (
            "Which methods does `FastTill` inherit?",
            "Till.__init__ Till.check Keeper.count Labelled.count Labelled.label",
        ),
        ("What does the base class version of `store` call, seen from `FastTill`?", "Keeper.check"),
        ("Who calls the `store` of the parent of `FastTill`?", "open_shop FastTill.store"),
        ("What overrides `Keeper.check`?", "Till.check"),
        ("Which method does `Till.check` override?", "Keeper.check"),
        ("Which tests call `settle`?", "test_settling helper_of_tests"),
        ("Which tests reach `register` indirectly?", "test_settling helper_of_tests"),
        ("Which tests test `Till`?", "test_opening"),
        ("Who calls `make_drawer` indirectly, through another function?", "open_shop"),
        ("Who imports `weigh`?", "shop/till.py"),
        ("What does `shop/till.py` import?", "shop/base.py Keeper Labelled weigh"),
        ("Where is `weigh` defined?", ""),
        ("Who calls shop.base.weigh?", "Keeper.check make_drawer"),
        ("Who calls `shop/base.py::weigh`?", "Keeper.check make_drawer"),
    ],
)
def test_relations(reached, question, names):
    assert sorted(reached(question)) == sorted(names.split())


def test_a_walk_that_finds_nothing_is_none(reached):
    assert reached("Who calls `open_mall`?") is None
    assert reached("Which classes derive from `Labelled.label`?") is None


def test_tests_come_before_their_helpers(reached):
    assert reached("Which tests call `settle`?") == ["test_settling", "helper_of_tests"]


def test_nearer_bases_come_first_and_hide_what_they_define(reached):
    found = reached("Which methods does `FastTill` inherit?")
    assert found.index("Till.check") < found.index("Keeper.count")
    assert not {"Keeper.check", "Keeper.store"} & set(found)


def test_a_description_starts_from_the_best_hits(asked):
    found = asked.structure("Which functions call the function that returns the weight of a parcel in grams?")
    assert found.starts[0].name == "weigh"
    assert "Keeper.check" in [step.symbol.name for step in found.found]


@pytest.mark.parametrize(
    "question",
    [
        "Who calls `unpack`?",  # five classes have one
        "Who calls `closed_shop`?",  # there was one once
        "Which functions call the function that nobody described?",
        "Quelles fonctions appellent weigh ?",
        "Which data types of `weigh` are there?",
        "Was there a class action about Till?",
        "How is a shop opened?",
        "def f():\n    return weigh(Till('x').store('y'))\n" * 3,
        "Who calls `weigh`? " + "x = weigh(1)\n" * 300,
        "",
    ],
)
def test_no_walk(asked, question):
    assert asked.structure(question) is None
    assert asked.ranking(question, 5) == asked.ranking(question, 9)[:5]


def test_of_ten_names_the_one_beside_the_verb_counts(reached):
    others = "`Till`, `FastTill`, `Keeper`, `Labelled`, `make_drawer`, `open_shop`, `open_mall`, `register`, `settle`"
    assert set(reached(f"Apart from {others}: which functions call `weigh`?")) == {"Keeper.check", "make_drawer"}


def test_a_name_with_many_callers_keeps_the_retrievers_best(asked):
    found = asked.structure("Who calls `tick`?")
    assert len(found.found) == 60
    plain = asked.ranking("tick", 2)
    assert len(asked.ranking("Who calls `tick`?", 10)) == 10
    assert asked.ranking("Who calls `tick`?", 2) == plain
