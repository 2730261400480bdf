"""The reviewed file: what it may hold, and which names are one by it."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import CgragError
from pipelines.graph.reviewed import Decision, Merges, merges_of, read_decisions, write_decisions

FILE = Path("entities.jsonl")


def accepted(goes: str, into: str) -> Decision:
    a, b = sorted((goes, into))
    return Decision(a=a, b=b, verdict="accepted", into=into)


def rejected(a: str, b: str) -> Decision:
    return Decision(a=a, b=b, verdict="rejected")


def onto(*decisions: Decision, present=None) -> dict[str, str]:
    merges = merges_of(decisions, FILE)
    return merges.onto({*merges.members()} if present is None else present)


def test_pairs_are_one_through_each_other_and_the_last_stays():
    assert onto(accepted("name:a", "name:b"), accepted("name:b", "name:c")) == {"name:a": "name:c", "name:b": "name:c"}


def test_a_symbol_stays_whatever_goes_where():
    assert onto(accepted("name:a", "name:b"), accepted("name:a", "x.py::A")) == {
        "name:a": "x.py::A",
        "name:b": "x.py::A",
    }


def test_of_what_nothing_else_takes_in_the_last_id_stays():
    assert onto(accepted("name:m", "name:z"), accepted("name:m", "name:a")) == {"name:m": "name:z", "name:a": "name:z"}


def test_what_is_not_there_takes_no_part_and_the_others_are_still_one():
    chain = (accepted("name:a", "name:b"), accepted("name:b", "name:c"))
    assert onto(*chain, present={"name:a", "name:b"}) == {"name:a": "name:b"}
    assert onto(*chain, present={"name:a", "name:c"}) == {"name:a": "name:c"}
    assert onto(*chain, present={"name:b"}) == {}


names = st.sampled_from([f"name:{letter}" for letter in "abcdefg"])


@given(st.lists(st.tuples(names, names).filter(lambda pair: pair[0] < pair[1]), max_size=8, unique=True), st.randoms())
def test_the_order_of_lines_does_not_matter_and_the_one_that_stays_goes_nowhere(pairs, chance):
    decisions = [accepted(*pair) for pair in pairs]
    merged = onto(*decisions)
    chance.shuffle(decisions)
    assert onto(*decisions) == merged
    assert not merged.keys() & set(merged.values())
    assert all(merged.get(a, a) == merged.get(b, b) for a, b in pairs)


def test_a_circle_is_refused():
    circle = [accepted("name:a", "name:b"), accepted("name:b", "name:c"), accepted("name:c", "name:a")]
    with pytest.raises(CgragError, match=r"in a circle: name:.* -> name:.*\nTake one of these pairs out"):
        onto(*circle)


def test_two_symbols_are_never_one():
    with pytest.raises(CgragError, match=r"two different symbols one, through name:a: x.py::A and y.py::A"):
        onto(accepted("name:a", "x.py::A"), accepted("name:a", "y.py::A"))


def test_a_rejected_pair_is_not_one_through_others():
    chain = [accepted("name:a", "name:b"), accepted("name:b", "name:c")]
    with pytest.raises(CgragError, match="rejects name:a and name:c, and accepts them through others"):
        onto(*chain, rejected("name:a", "name:c"))
    assert onto(*chain, rejected("name:a", "name:d"))


def test_a_file_is_sorted_one_decision_a_line_and_comes_back_as_it_was(tmp_path):
    path = tmp_path / "git" / "entities.jsonl"
    decisions = [rejected("name:c", "name:c++"), accepted("name:gpus", "name:gpu"), rejected("name:a", "name:é")]
    write_decisions(path, decisions)
    assert path.read_text(encoding="utf-8").splitlines() == [
        '{"a": "name:a", "b": "name:é", "verdict": "rejected"}',
        '{"a": "name:c", "b": "name:c++", "verdict": "rejected"}',
        '{"a": "name:gpu", "b": "name:gpus", "verdict": "accepted", "into": "name:gpu"}',
    ]
    assert read_decisions(path) == sorted(decisions, key=lambda one: one.pair)
    assert [file.name for file in path.parent.iterdir()] == ["entities.jsonl"]
    assert read_decisions(tmp_path / "none") == []


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("{", "Invalid JSON"),
        ("[]", "should be an object"),
        ({"a": "name:b", "b": "name:a", "verdict": "rejected"}, "in their order"),
        ({"a": "name:a", "b": "name:a", "verdict": "rejected"}, "two different ids"),
        ({"a": "name:a", "b": "name:b", "verdict": "maybe"}, "'accepted' or 'rejected'"),
        ({"a": "name:a", "b": "name:b", "verdict": "accepted"}, "neither a nor b"),
        ({"a": "name:a", "b": "name:b", "verdict": "rejected", "into": "name:a"}, "goes into neither"),
        ({"a": "x.py::A", "b": "y.py::A", "verdict": "accepted", "into": "x.py::A"}, "never one"),
        ({"a": "name:a", "b": "x.py::A", "verdict": "accepted", "into": "name:a"}, "not go into a bare name"),
        ({"a": "name:a", "b": "name:b", "verdict": "rejected", "why": "x"}, "not permitted"),
    ],
)
def test_a_line_that_is_no_decision_is_named(tmp_path, line, problem):
    path = tmp_path / "entities.jsonl"
    path.write_text("\n" + (line if isinstance(line, str) else json.dumps(line)) + "\n")
    with pytest.raises(CgragError, match=problem) as error:
        read_decisions(path)
    assert f"{path}:2" in error.value.problem


def test_two_lines_about_one_pair_are_refused(tmp_path):
    path = tmp_path / "entities.jsonl"
    path.write_text("".join(one.model_dump_json(exclude_defaults=True) + "\n" for one in
                            (accepted("name:a", "name:b"), rejected("name:a", "name:b"))))  # fmt: skip
    with pytest.raises(CgragError, match=r":2 is about a pair that an earlier line is about"):
        read_decisions(path)


def test_a_rejection_changes_no_graph():
    assert merges_of([rejected("name:a", "name:b")], FILE).fingerprint == Merges([]).fingerprint
    assert merges_of([accepted("name:a", "name:b")], FILE).fingerprint != Merges([]).fingerprint
