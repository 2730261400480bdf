"""Spellings that may be of one name, and those that must not be taken for it."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.entities.candidates import find_candidates
from pipelines.entities.spelling import bare_key, is_near, likeness


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("tensor parallel", "Tensor Parallelism"),
        ("embedding model", "Embedding Models"),
        ("GPU", "GPUs"),
        ("LoRA", "LoRAs"),
        ("quantization", "quantisation"),
    ],
)
def test_endings_and_slips_are_near(a, b):
    assert is_near(a, b)
    assert is_near(b, a)
    found = find_candidates({"name:a": a, "name:b": b}, {})
    assert found.near | found.same_key.keys() == {("name:a", "name:b")}


@pytest.mark.parametrize(
    "names",
    [
        ("C", "C++", "C#", "F#"),
        (".NET", "Net"),
        ("HTTP", "HTTPS"),
        ("loadUser", "loadUsers"),
        ("FP8", "FP16", "FP4"),
        ("Qwen2", "Qwen2.5", "Qwen25", "Qwen3"),
        ("max_lora", "max_loras", "min_lora"),
        ("--quantization", "quantization"),
        ("kv consumer", "kv producer"),
        ("online mode", "offline mode"),
        ("cat", "car"),
        ("V0", "V1"),
    ],
)
def test_what_a_mark_a_number_or_a_word_tells_apart_is_never_brought_together(names):
    found = find_candidates({f"name:{name.casefold()}": name for name in names}, {})
    assert not found.near
    assert not found.same_key


@pytest.mark.parametrize("names", [("Node.js", "Nodejs", "node_js"), ("--hf-overrides", "--hf_overrides")])
def test_what_stands_between_words_does_not_tell_names_apart(names):
    assert len({bare_key(name) for name in names}) == 1
    assert likeness(*names[:2]) == 1


words = st.sampled_from(
    ["tensor", "tensors", "parallel", "parallelism", "GPU", "GPUs", "cache", "kv", "model", "models"]
)
spelt = st.lists(words, min_size=1, max_size=3).map(" ".join)


@given(st.sets(spelt, max_size=12))
def test_blocking_finds_every_near_pair_that_shares_enough(spellings):
    names = {f"name:{name}": name for name in sorted(spellings)}
    found = find_candidates(names, {})
    compared = {
        (a, b) for a in names for b in names
        if a < b and is_near(names[a], names[b]) and _share(names[a], names[b]) >= 0.4
    }  # fmt: skip
    assert found.near | found.same_key.keys() == compared | found.same_key.keys()


def _share(a: str, b: str) -> float:
    pieces = [{f"^{bare_key(name)}$"[at : at + 3] for at in range(len(bare_key(name)))} for name in (a, b)]
    return len(pieces[0] & pieces[1]) / len(pieces[0] | pieces[1])


def test_a_key_of_many_symbols_is_evidence_for_none():
    placed = {f"m{number}.py::A.load": ["A.load", "load"] for number in range(21)}
    found = find_candidates({"name:load": "load"}, placed)
    assert (found.same_key, found.passed_over) == ({}, 1)
    del placed["m0.py::A.load"]
    assert set(find_candidates({"name:load": "load"}, placed).same_key.values()) == {20}


def test_many_names_of_one_kind_cost_no_comparison_of_all():
    names = {f"name:option_{number}_of_many": f"option_{number}_of_many" for number in range(5_000)}
    begun = time.process_time()
    assert not find_candidates(names, {}).near
    assert time.process_time() - begun < 8
