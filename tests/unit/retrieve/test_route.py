"""The router on many wordings, and what must hold for any."""

import json
import random
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.retrieve.route import Names, route

CLASSES = ["LoRAManager", "SchedulerBase", "QuantConfig", "_BaseParser"]
FUNCTIONS = [
    "Scheduler.step", "load_weights", "EngineCore._process_input", "get_rope", "VllmConfig.__post_init__",
    "Worker.load_model",
]  # fmt: skip
METHODS = ["load_model", "forward", "_get_scale", "from_config"]
KNOWN = {*CLASSES, *FUNCTIONS, *METHODS}
NAMES = Names(KNOWN.__contains__, CLASSES.__contains__, lambda _, name: name in METHODS)
NOTHING = Names(lambda _: False, lambda _: False, lambda _owner, _name: False)
RELATIONS = {"tests_indirect": "tests", "tests_direct": "tests", "none": None}
"""Kinds of wordings whose relation has another name."""
DEVELOPMENT = {
    "callers": 36, "callees": 38, "bases": 28, "subclasses": 28, "inherited": 26, "base_callees": 29,
    "tests_indirect": 26, "tests_direct": 12, "importers": 11, "overrides": 11, "none": 95,
}  # fmt: skip
HELD_OUT = {
    "callers": 27, "callees": 28, "bases": 19, "subclasses": 19, "inherited": 19, "base_callees": 19,
    "tests_indirect": 19, "none": 59,
}  # fmt: skip


def is_right(kind, found):
    wanted = RELATIONS.get(kind, kind)
    if found is None or wanted is None:
        return found is wanted
    return found.relation == wanted and (wanted != "tests" or found.indirect == (kind == "tests_indirect"))


@pytest.mark.parametrize(("file", "least"), [("development", DEVELOPMENT), ("held_out", HELD_OUT)])
def test_it_understands_wordings(file, least):
    """`least` is a little below what it was when this was written (README, Structural questions)."""
    rows = json.loads((Path(__file__).parent / f"wordings_{file}.json").read_text())
    draws = random.Random(0)
    right, wrong = defaultdict(int), []
    for row in rows:
        kind = row["kind"]
        of_class = kind in ("bases", "subclasses", "inherited", "base_callees")
        fillings = {"{X}": CLASSES if of_class else FUNCTIONS, "{M}": METHODS, "{C}": CLASSES}
        question = row["question"]
        for place, names in fillings.items():
            question = question.replace(place, draws.choice(names))
        found = route(question, NAMES)
        right[kind] += is_right(kind, found)
        if not is_right(kind, found):
            wrong.append((kind, found, question))
    assert {kind: right[kind] for kind in least if right[kind] < least[kind]} == {}, wrong


@pytest.mark.parametrize(
    ("question", "relation", "names"),
    [
        ("What does `Scheduler.step` call?", "callees", ("Scheduler.step",)),
        ("What calls `Scheduler.step`?", "callers", ("Scheduler.step",)),
        ("What is called by get_rope?", "callees", ("get_rope",)),
        ("By what is get_rope called?", "callers", ("get_rope",)),
        ("get_rope() - called from where?", "callers", ("get_rope",)),
        ("When get_rope runs, what does it call?", "callees", ("get_rope",)),
        ("Which calls does get_rope make?", "callees", ("get_rope",)),
        ("Apart from load_weights, which functions call get_rope?", "callers", ("get_rope",)),
        ("Besides load_weights, what does get_rope call?", "callees", ("get_rope",)),
        ("What does QuantConfig inherit from?", "bases", ("QuantConfig",)),
        ("QuantConfig is built on top of which base class?", "bases", ("QuantConfig",)),
        ("For which classes is QuantConfig the parent?", "subclasses", ("QuantConfig",)),
        ("Which classes derive from the base class QuantConfig?", "subclasses", ("QuantConfig",)),
        ("Which methods override `Worker.load_model`?", "overrides", ("Worker.load_model",)),
        ("Which method does `Worker.load_model` override?", "overridden", ("Worker.load_model",)),
        ("Where is `Worker.load_model` defined?", "definition", ("Worker.load_model",)),
        ("Which modules import get_rope?", "importers", ("get_rope",)),
        ("What does the forward of the parent of QuantConfig call?", "base_callees", ("QuantConfig", "forward")),
        ("Who calls the forward that QuantConfig inherits?", "base_callers", ("QuantConfig", "forward")),
        ("What does SchedulerBase get from its ancestors?", "inherited", ("SchedulerBase",)),
        ("incoming calls of get_rope", "callers", ("get_rope",)),
        ("Which methods in the code base end up calling Worker.load_model?", "callers", ("Worker.load_model",)),
        ("What methods are passed down to QuantConfig?", "inherited", ("QuantConfig",)),
    ],
)
def test_the_place_of_the_name_decides(question, relation, names):
    found = route(question, NAMES)
    assert found is not None
    assert (found.relation, found.names) == (relation, names)


@pytest.mark.parametrize(
    "question",
    [
        "Which data types of get_rope are supported?",
        "Is there a class action about QuantConfig?",
        "Why is get_rope so slow?",
        "What's the base learning rate that QuantConfig starts with?",
        "Shop > get_rope > Usage example",
        "Is get_rope called twice?",
        "Which environment variable overrides get_rope?",
        "What is the difference between get_rope and the older implementation?",
        "What does the call stack of get_rope look like?",
        "get_rope",
        "",
        "`` ``` ` \x00 \x00\x00 7",
        "Wer ruft get_rope auf?",
        "get_rope 는 누가 호출합니까?",
    ],
)
def test_words_without_a_meaning_for_the_graph(question):
    assert route(question, NAMES) is None


@settings(max_examples=300)
@given(st.text(max_size=200))
def test_no_text_breaks_it(text):
    assert route(text, NOTHING) is None
    route(text, Names(lambda _: True, lambda name: len(name) % 2 == 0, lambda _, name: len(name) % 3 == 0))


WORDS = (
    "who what which calls called call by from is does in the of tests inherits base subclasses methods it where "
    "import override defined not indirectly , ? `QuantConfig` get_rope load_model Unknown.thing x"
)
words = st.sampled_from(WORDS.split(" "))


@settings(max_examples=500)
@given(st.lists(words, max_size=14).map(" ".join))
def test_a_route_starts_from_a_name_that_is_known_and_asked_for(question):
    assert route(question, NOTHING) is None
    found = route(question, NAMES)
    if found is not None:
        assert found.names
        assert all(name in KNOWN and name in question for name in found.names)
        assert found == route(question, NAMES)


@pytest.mark.parametrize(
    ("question", "relation", "indirect"),
    [
        ("Which classes inherit from `Uploader`?", "subclasses", False),
        ("What calls `get_middleware`?", "callers", False),
        ("Who calls `send_via`?", "callers", False),
        ("Where in `Engine` is `update_weights` called?", "callers", False),
        ("Who calls `send_via` indirectly?", "callers", True),
    ],
)
def test_no_cue_hides_in_a_name(question, relation, indirect):
    classes = ("Uploader", "Engine")
    names = Names(lambda name: True, classes.__contains__, lambda _owner, _name: False)
    found = route(question, names)
    assert (found.relation, found.indirect) == (relation, indirect)
