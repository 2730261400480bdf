"""What a model may say: the grammar against an independent reader of it, and what is read of an answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.answer.said import NOT_IN_SOURCES, Said, Unreadable, grammar_of, read
from tests.grammars import lets_through

words = st.text(
    st.characters(blacklist_characters="[]\n ", blacklist_categories=("Cs", "Cc", "Z")), min_size=1, max_size=12
)
sentences = st.lists(words, min_size=2, max_size=12).map(lambda found: f"It {' '.join(found)}")
SOURCES = 5


def accepts(text, sources=SOURCES):
    return lets_through(grammar_of(sources), text)


@given(st.lists(sentences, min_size=1, max_size=2), st.lists(st.integers(1, SOURCES), min_size=1, max_size=3))
def test_cited_sentences_are_let_through_and_read(said, cites):
    text = "\n".join(f"{sentence} {''.join(f'[{number}]' for number in cites)}" for sentence in said)
    assert accepts(text)
    found = read(text, SOURCES)
    assert found.cites == tuple(sorted(set(cites)))
    assert [line.rpartition(" ")[0] for line in found.text.split("\n")] == said


@pytest.mark.parametrize(
    "text",
    [
        "It is so, but nothing is cited.",
        "It is so. [6]",
        "It is so. [0]",
        "It is [7] so. [1]",
        "It is so. [1] [2] and more",
        "[1]",
        "",
        "It is so. [1]\nAnd this says no source.",
    ],
)
def test_what_cites_nothing_or_what_was_not_given_is_neither_let_through_nor_read(text):
    assert not accepts(text)
    if "[7]" not in text:  # a server that does not bind could say so; it is then part of the sentence
        with pytest.raises(Unreadable):
            read(text, SOURCES)


@pytest.mark.parametrize("text", ["It returns list[int] or dict[str, list[int]]. [2]", "`a[b]` is Fmt[x] then. [1][2]"])
def test_code_with_brackets_may_be_said(text):
    assert accepts(text)
    assert read(text, SOURCES).text == text


def test_not_in_the_sources_is_an_answer_without_citations():
    assert accepts(NOT_IN_SOURCES)
    assert read(f"{NOT_IN_SOURCES}\n", 3) == Said(NOT_IN_SOURCES, ())


def test_no_more_sources_than_there_are_can_be_cited():
    assert accepts("It is so. [12]", 12)
    assert not accepts("It is so. [12]", 11)


@pytest.mark.parametrize("mark", ["\u2028", "\x0b", "\x0c", "\x85", "\r"])
def test_what_other_programs_take_for_the_end_of_a_line_is_a_blank(mark):
    assert read(f"It is{mark}so. [1]", 3) == Said("It is so. [1]", (1,))


def test_a_citation_that_comes_twice_counts_once():
    assert read("So it is. [3][1][3]", 3) == Said("So it is. [1][3]", (1, 3))


def test_of_an_answer_that_was_cut_off_the_whole_sentences_count():
    assert read("So it is. [1]\nAnd becau", 3, cut=True) == Said("So it is. [1]", (1,))
    with pytest.raises(Unreadable, match="no source"):
        read("So it is becau", 3, cut=True)
