"""The grammar against an independent reader of it: what it lets through, what not, and how long that can be."""

import json
import random
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.answer import read_answer, schema_of
from pipelines.extract.grammar import grammar_of, longest, written
from pipelines.extract.taxonomy import NodeType, RelationType, Taxonomy, load_taxonomy

xgrammar = pytest.importorskip("xgrammar", reason="xgrammar, which comes with vLLM, is not installed")
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
BYTES = [bytes([value]) for value in range(256)] + [b"<end>"]
names = st.lists(
    st.text(st.sampled_from('ab_C.é中🚀"\\ {}|'), min_size=1, max_size=8).filter(lambda name: name.strip() == name),
    min_size=1,
    max_size=6,
    unique=True,
)
taxonomies = st.sampled_from([TAXONOMY, GEOGRAPHY, BARE, UNEVEN])


@cache
def compiler():
    """A tokenizer of single bytes: every answer is spelt in as many tokens as it can be."""
    info = xgrammar.TokenizerInfo(BYTES, xgrammar.VocabType.RAW, stop_token_ids=[256])
    return xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def matcher(offered, taxonomy, relations=2):
    return xgrammar.GrammarMatcher(compiler().compile_grammar(grammar_of(offered, taxonomy, relations)))


def accepts(offered, taxonomy, answer, relations=2):
    found = matcher(offered, taxonomy, relations)
    return found.accept_string(answer) and found.accept_token(256)


def spelt(offered, taxonomy, relations, choose):
    """An answer spelt byte by byte, each chosen among those that the grammar allows."""
    return walked(grammar_of(offered, taxonomy, relations), choose)


def walked(grammar, choose):
    """A text that a grammar lets through, byte by byte."""
    found = xgrammar.GrammarMatcher(compiler().compile_grammar(grammar))
    mask = xgrammar.allocate_token_bitmask(1, len(BYTES))
    answer = bytearray()
    while True:
        found.fill_next_token_bitmask(mask, 0)
        bits = [number for number in range(len(BYTES)) if int(mask[0, number // 32]) >> (number % 32) & 1]
        token = choose(bits, bytes(answer))
        assert found.accept_token(token)
        if token == 256:
            return bytes(answer).decode()
        answer.append(token)


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
