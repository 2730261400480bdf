"""Which names a text offers, and where they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.extract.names import MOST, find_name, is_junk, ranked_names


def names_in(text):
    """The names that a text offers, in its order."""
    return [name for _, name in sorted(ranked_names(text))]


text = st.text(st.sampled_from("Aab_C. `\n+é#"), max_size=60)


@given(text)
def test_every_name_offered_stands_in_the_text_and_is_none_of_the_junk(words):
    for name in names_in(words):
        assert find_name(words, name)
        assert not is_junk(name)


@given(text, st.text("Aab_C", min_size=1, max_size=4))
def test_a_name_is_found_where_a_naive_search_finds_a_whole_word(words, name):
    padded = f" {words} "
    naive = [
        at - 1
        for at in range(1, len(padded))
        if padded[at : at + len(name)] == name
        and not _word(padded[at - 1])
        and not _word(padded[at + len(name) : at + len(name) + 1] or " ")
        and not (name[0].isupper() and padded[at + len(name) :].startswith(("++", "#")))
    ]
    assert find_name(words, name) == naive


def _word(character):
    return character.isalnum() or character == "_"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("use `--enable-lora` here", ["--enable-lora"]),
        ("call self.load_adapter() if x", ["load_adapter"]),
        ("C++ and C# are two", ["C++", "C#"]),
        ("nothing 1234 to see", []),
        ("中文中文", []),
        ("", []),
        ("This is the New York Times", ["New York Times"]),
    ],
)
def test_names_of_code_and_prose(words, names):
    assert names_in(words) == names


def test_of_many_names_the_most_frequent_are_offered():
    words = ", ".join(f"Name{n}" for n in range(200)) + ", Often" * 3
    names = names_in(words)
    assert len(names) == MOST
    assert "Often" in names


def test_a_blob_offers_no_endless_name():
    assert names_in("x = '" + "aB3" * 600 + "'") == []
