"""Answers: closed, grounded, and nothing else."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.extract.answer import InvalidAnswer, join, read_answer
from pipelines.extract.taxonomy import load_taxonomy

TAXONOMY = load_taxonomy()
TEXT = "The Engine class calls load(). Engine is in core.py."


def content(entities, relations=()):
    out = {}
    for source, relation, target in relations:
        out.setdefault(source, []).append([relation, target])
    return json.dumps([[name, kind, *out.pop(name, [])] for name, kind in entities])


def test_names_are_grounded_with_the_place_of_each_mention():
    answer = read_answer(TEXT, content([("Engine", "Class"), ("Nowhere", "Class"), ("Engin", "Class")]), TAXONOMY, 100)
    (engine,) = answer.entities
    assert [TEXT[start - 100 : start - 94] for start in engine.starts] == ["Engine", "Engine"]
    assert answer.ungrounded == 2


def test_junk_is_dropped_and_counted():
    answer = read_answer("self is x and None", content([("self", "Class"), ("x", "Variable")]), TAXONOMY)
    assert (answer.entities, answer.junk, answer.ungrounded) == ((), 2, 0)


def test_relations_need_two_entities_of_the_answer_and_the_rules_of_the_taxonomy():
    relations = [
        ("Engine", "CALLS", "load"),
        ("load", "INHERITS_FROM", "Engine"),
        ("Engine", "CALLS", "Engine"),
        ("Engine", "REFERENCES", "core.py"),
        ("Engine", "CALLS", "load"),
    ]
    answer = read_answer(TEXT, content([("Engine", "Class"), ("load", "Function")], relations), TAXONOMY)
    assert [(r.source, r.type, r.target) for r in answer.relations] == [("Engine", "CALLS", "load")]
    assert answer.refused == 3


def test_a_name_with_two_types_keeps_the_first():
    answer = read_answer(TEXT, content([("Engine", "Class"), ("Engine", "Module")]), TAXONOMY)
    assert [entity.type for entity in answer.entities] == ["Class"]


@pytest.mark.parametrize(
    "broken",
    [
        "",
        "null",
        "{}",
        "[" * 5000,
        "[[]]",
        '["Engine"]',
        '[["Engine"]]',
        '[[7,"Class"]]',
        '[["Engine","Animal"]]',
        '[["Engine","Class","CALLS"]]',
        '[["Engine","Class",["EATS","load"]]]',
        '[["Engine","Class",["CALLS","load","Class"]]]',
        '[["Al\\ud83dpha","Class"]]',
        "```json\n[]\n```",
    ],
)
def test_what_is_not_of_the_form_is_refused_with_a_reason(broken):
    with pytest.raises(InvalidAnswer) as refused:
        read_answer(TEXT, broken, TAXONOMY)
    assert str(refused.value)


names = st.sampled_from(["Engine", "load", "core.py", "Nowhere", "self", ""])
relations = st.lists(st.tuples(st.sampled_from([r.name for r in TAXONOMY.relations]), names), max_size=3)
entities = st.lists(st.tuples(names, st.sampled_from(TAXONOMY.type_names), relations), max_size=6)


@given(entities)
def test_whatever_is_said_what_is_kept_holds(said):
    answer = read_answer(TEXT, json.dumps([[name, kind, *out] for name, kind, out in said]), TAXONOMY)
    kept = {entity.name: entity.type for entity in answer.entities}
    for entity in answer.entities:
        assert all(TEXT[start : start + len(entity.name)] == entity.name for start in entity.starts)
    for relation in answer.relations:
        assert relation.source != relation.target
        assert TAXONOMY.relation(relation.type).allows(kept[relation.source], kept[relation.target])
    assert len(kept) + answer.ungrounded + answer.junk == len({name for name, _, _ in said})
    assert len(answer.relations) + answer.refused == len({(name, *one) for name, _, out in said for one in out})


def test_two_halves_say_together_what_each_says():
    first, second = TEXT[:31], TEXT[31:]
    one = read_answer(
        first, content([("Engine", "Class"), ("load", "Function")], [("Engine", "CALLS", "load")]), TAXONOMY
    )
    two = read_answer(second, content([("Engine", "Module"), ("core.py", "Module")]), TAXONOMY, 31)
    both = join(one, two)
    assert {entity.name: entity.type for entity in both.entities} == {
        "Engine": "Class",
        "load": "Function",
        "core.py": "Module",
    }
    whole = read_answer(TEXT, content([("Engine", "Class")]), TAXONOMY)
    assert both.entities[0].starts == whole.entities[0].starts
    assert both.relations == one.relations
