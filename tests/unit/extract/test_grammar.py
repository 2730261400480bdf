"""The grammar against an independent reader of it: what it lets through, what not, and how long that can be."""

import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.answer import read_answer, schema_of
from pipelines.extract.grammar import grammar_of, longest, written
from pipelines.extract.taxonomy import NodeType, RelationType, Taxonomy, load_taxonomy
from tests.grammars import lets_through, walked

TAXONOMY = load_taxonomy()
GEOGRAPHY = Taxonomy(
    version="1",
    types=[NodeType(name=name, definition=name) for name in ("City", "Country", "River")],
    relations=[
        RelationType(name="capital_of", definition="x", heads=["City"], tails=["Country"]),
        RelationType(name="flows_through", definition="x", heads=["River"]),
    ],
)
BARE = Taxonomy(version="1", types=[NodeType(name="Thing", definition="x")])
UNEVEN = Taxonomy(
    version="1",
    types=[NodeType(name="Fn", definition="x"), NodeType(name="EnvironmentVariableOfAProcess", definition="x")],
    relations=[RelationType(name="USES", definition="x", heads=["Fn"])],
)
names = st.lists(
    st.text(st.sampled_from('ab_C.é中🚀"\\ {}|'), min_size=1, max_size=8).filter(lambda name: name.strip() == name),
    min_size=1,
    max_size=6,
    unique=True,
)
taxonomies = st.sampled_from([TAXONOMY, GEOGRAPHY, BARE, UNEVEN])


def accepts(offered, taxonomy, answer, relations=2):
    return lets_through(grammar_of(offered, taxonomy, relations), answer)


def spelt(offered, taxonomy, relations, choose):
    """An answer spelt byte by byte, each chosen among those that the grammar allows."""
    return walked(grammar_of(offered, taxonomy, relations), choose)


@settings(max_examples=60)
@given(names, taxonomies, st.integers(0, 3), st.randoms(use_true_random=False))
def test_whatever_the_grammar_lets_through_is_an_answer_about_the_names(offered, taxonomy, relations, chance):
    answer = spelt(offered, taxonomy, relations, lambda bits, _: chance.choice(bits))
    read = schema_of(taxonomy).validate_json(answer)
    order = [offered.index(name) for name, *_ in read]
    assert order == sorted(set(order))
    for name, kind, *out in read:
        assert len(out) <= relations
        for relation, target in out:
            assert target in offered
            assert target != name
            assert taxonomy.relation(relation).allows_head(kind), name
    assert written(json.loads(answer)) == answer
    assert len(answer.encode()) <= longest(offered, taxonomy, relations)


@settings(max_examples=40)
@given(names, taxonomies, st.integers(0, 3))
def test_the_longest_answer_is_as_long_as_is_said(offered, taxonomy, relations):
    def size(answer):
        return len(written(answer).encode())

    def entity(name, kind):
        out = [relation.name for relation in taxonomy.relations if relation.allows_head(kind)]
        others = [other for other in offered if other != name]
        return [name, kind, *([[max(out, key=len), max(others, key=size)]] * relations if out and others else [])]

    answer = written([max((entity(name, kind) for kind in taxonomy.type_names), key=size) for name in offered])
    assert len(answer.encode()) == longest(offered, taxonomy, relations)
    assert accepts(offered, taxonomy, answer, relations)


@pytest.mark.parametrize(
    ("answer", "fits"),
    [
        ("[]", True),
        ('[["Engine","Class"]]', True),
        ('[["load","Function",["CALLS","Engine"],["DEFINED_IN","Engine"]]]', True),
        ('[["Engine","Class"],["load","Function"]]', True),
        ('[["load","Function"],["Engine","Class"]]', False),
        ('[["Engine","Class"],["Engine","Class"]]', False),
        ('[["Engine", "Class"]]', False),
        ('[["Motor","Class"]]', False),
        ('[["Engine","Animal"]]', False),
        ('[["Engine","Class",["IMPORTS","load"]]]', False),
        ('[["Engine","Class",["CALLS","Motor"]]]', False),
        ('[["Engine","Class",["CALLS","Engine"]]]', False),
        ('[["Engine","Class",["CALLS","load"],["CALLS","load"],["CALLS","load"]]]', False),
        ("", False),
    ],
)
def test_what_the_grammar_lets_through(answer, fits):
    assert accepts(["Engine", "load"], TAXONOMY, answer) == fits


def test_a_model_that_says_as_much_as_it_can_is_not_cut_off():
    text = "class Engine: def load_all(self): Other.run_it()"
    offered = ["Engine", "load_all", "Other.run_it"]
    rng = random.Random(0)

    def talkative(bits, answer):
        going_on = [bit for bit in bits if bit != ord("]")] or bits
        return rng.choice([bit for bit in going_on if bit != 256] or bits)

    answer = spelt(offered, TAXONOMY, 4, talkative)
    assert len(answer) <= longest(offered, TAXONOMY, 4)
    assert {entity.name for entity in read_answer(text, answer, TAXONOMY).entities} <= set(offered)
