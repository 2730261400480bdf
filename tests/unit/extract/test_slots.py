"""Answers in slots: what the grammar lets through, how long it can be, and what is read out of it."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.answer import InvalidAnswer, Relation, read_answer
from pipelines.extract.grammar import written
from pipelines.extract.recipe import SLOTS_PROMPT, recipe_of
from pipelines.extract.slots import MOST_PAIRS, candidate_pairs, longest_slots, slots_grammar
from pipelines.extract.taxonomy import NodeType, Taxonomy, load_taxonomy
from pipelines.settings import Settings
from tests.unit.extract.test_grammar import GEOGRAPHY, walked

TAXONOMY = load_taxonomy()
BARE = Taxonomy(version="1", types=[NodeType(name="Thing", definition="x")])
NAMES = ["Engine", "Base", "run_it", 'a "b"', "C++"]
TEXT = 'Engine inherits Base. run_it calls Engine. A "b" is C++, a "b" of Base.'


def slots(**more):
    return recipe_of(Settings(llm_urls=["http://localhost/v1"], extract={"model": "m", "format": "slots", **more}))


@settings(max_examples=60)
@given(
    st.sets(st.sampled_from(NAMES), min_size=1),
    st.sampled_from([TAXONOMY, GEOGRAPHY, BARE]),
    st.randoms(use_true_random=False),
)
def test_whatever_the_grammar_lets_through_is_an_answer_about_these_names(offered, taxonomy, chance):
    names = sorted(offered)
    pairs = candidate_pairs(TEXT, names) if taxonomy.relations else []
    answer = walked(slots_grammar(names, pairs, taxonomy), lambda bits, _: chance.choice(bits))
    entities, edges = json.loads(answer)
    assert [name for name, _ in entities] == names
    assert [frozenset((one, other)) for one, _, other in edges] == [frozenset(pair) for pair in pairs]
    assert all(one != other for one, _, other in edges) and len({frozenset((a, b)) for a, _, b in edges}) == len(edges)
    assert len(answer.encode()) <= longest_slots(names, pairs, taxonomy)
    said = read_answer(TEXT + 'a "b"', answer, taxonomy, format="slots")
    assert not said.ungrounded and not said.junk


def test_the_longest_answer_is_as_long_as_is_said():
    names, pairs = ["Ab", "Cde"], [("Ab", "Cde")]
    answer = written([[[name, "Function"] for name in names], [["Ab", "INHERITS_FROM", "Cde"]]])
    assert longest_slots(names, pairs, TAXONOMY) == len(answer)
    assert longest_slots(["Ab"], [], BARE) == len('[[["Ab","Thing"]],[]]')


def test_what_is_none_is_left_out_and_the_rest_keeps_the_taxonomy():
    content = written([
        [["Engine", "Class"], ["Base", "Class"], ["run_it", "NONE"]],
        [["Engine", "INHERITS_FROM", "Base"], ["Base", "NONE", "Engine"], ["run_it", "CALLS", "Engine"]],
    ])  # fmt: skip
    said = read_answer(TEXT, content, TAXONOMY, format="slots")
    assert [entity.name for entity in said.entities] == ["Engine", "Base"]
    assert said.relations == (Relation("Engine", "Base", "INHERITS_FROM"),)
    assert said.refused == 1


@pytest.mark.parametrize(
    "content", ["[]", '[[["Engine","Klass"]],[]]', '[[["Engine","Class"]]]', '[["Engine","Class"]]']
)
def test_another_form_is_invalid(content):
    with pytest.raises(InvalidAnswer):
        read_answer(TEXT, content, TAXONOMY, format="slots")


def test_pairs_are_of_one_sentence_the_most_salient_first_without_parts():
    text = "Engine of Base, and far away from both run_it. Engine.run of Engine."
    names = ["run_it", "Base", "Engine", "Engine.run"]
    assert candidate_pairs(text, names, 2) == [("Engine", "run_it"), ("Base", "run_it")]
    assert ("Engine.run", "Engine") not in candidate_pairs(text, names)
    many = " ".join(f"Name{number}" for number in range(40))
    assert len(candidate_pairs(many, many.split())) == MOST_PAIRS


def test_pairs_of_code_go_with_the_definition_around_them():
    text = "class Engine(Base):\n    def run(self):\n        load()\n        return stop()\n\n\nlater(Base)\n"
    names = ["Engine", "Base", "run", "load", "stop", "later"]
    assert set(candidate_pairs(text, names)) == {
        ("Engine", "Base"), ("Engine", "run"), ("run", "load"), ("run", "stop"),
    }  # fmt: skip


def test_pairs_of_docs_go_with_the_heading_above():
    text = "# Use\n\nThe Engine is new.\n\n# Other\n\nA Base.\n"
    assert candidate_pairs(text, ["Use", "Engine", "Other", "Base"]) == [("Use", "Engine"), ("Other", "Base")]


def test_the_format_is_a_part_of_the_recipe_and_its_keys():
    one, other = slots(), slots(format="list")
    assert (
        one.id != other.id
        and other.id == recipe_of(Settings(llm_urls=["http://localhost/v1"], extract={"model": "m"})).id
    )
    assert one.request(TEXT).key != other.request(TEXT).key
    assert SLOTS_PROMPT.read_text().startswith(one.system[:40])
    assert '[["TidalSluice","INHERITS_FROM","OrbwellGate"]' in one.system.replace("],[[", "],\n[[")


def test_slots_are_left_out_until_the_longest_answer_fits():
    text = " and ".join(f"LongNameOfThing{number}" for number in range(32))
    request = slots(max_tokens=600).request(text)
    assert request.max_tokens <= 600
    assert request.grammar.count('t "]"') > 0
    assert slots(max_tokens=64).request("LongNameOfThing " * 3) is not None
