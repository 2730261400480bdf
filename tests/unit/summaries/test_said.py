"""What a model may say of facts: the grammar against an independent reader of it, and what is read of an answer."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.extract.answer import InvalidAnswer
from pipelines.summaries.recipe import PROMPT
from pipelines.summaries.said import grammar_of, longest, names_in, read, written
from pipelines.summaries.triples import shown_name
from tests.grammars import lets_through

FACTS = ["`A.go` calls `load_b`", "`load_b` calls `C`", "`C` inherits from `D`"]
TEXT = written(FACTS)
plain = st.from_regex(r"[A-Z]?[a-z]{1,9},?", fullmatch=True)
first = st.from_regex(r"[A-Z][a-z]{0,8}", fullmatch=True)
written_names = st.text(st.characters(blacklist_categories=("Cs",)), max_size=20).map(shown_name).filter(bool)


@st.composite
def answers(draw, names, facts):
    """A title and sentences as the grammar's own words describe them."""

    def words(low, high):
        return draw(st.lists(plain, min_size=low, max_size=high))

    lines = [" ".join([draw(first), *words(1, 6)])]
    for _ in range(draw(st.integers(1, 3))):
        said = [draw(first), *words(0, 6)]
        for _ in range(draw(st.integers(1, 3))):
            said += [f"`{draw(st.sampled_from(names))}`", *words(1, 6)]
        cites = "".join(f"[{n}]" for n in draw(st.lists(st.integers(1, facts), min_size=1, max_size=3)))
        lines.append(f"{' '.join(said)}. {cites}")
    return "\n".join(lines)


def accepts(text, content):
    return lets_through(grammar_of(text), content)


@settings(max_examples=60)
@given(st.data(), st.lists(written_names, min_size=1, max_size=5, unique=True))
def test_what_the_grammar_lets_through_is_read_and_bounded(data, names):
    text = written(f"`{name}` calls `{names[0]}`" for name in names)
    assert names_in(text) == names
    content = data.draw(answers(names, len(names)))
    assert accepts(text, content) and len(content.encode()) <= longest(text)
    said = read(text, content)
    assert said.title == content.split("\n")[0] and said.dropped == 0
    assert [one.text for one in said.sentences] == [line.rpartition(" ")[0] for line in content.split("\n")[1:]]
    assert all(set(one.cites) <= set(range(1, len(names) + 1)) and one.cites for one in said.sentences)


@pytest.mark.parametrize(
    "content",
    [
        "Here `A.go` works.",
        "On it\nHere `A.go` works",
        "On it\nHere `A.go` works. [4]",
        "On it\nHere `other` works. [1]",
        "On it\nHere load_b works. [1]",
        "On it\n" + "\n".join(["Here `C` works. [1]"] * 4),
        "",
    ],
)
def test_others_are_not_let_through(content):
    assert not accepts(TEXT, content)


@pytest.mark.parametrize("content", ["", "On it", "On it\nHere `A.go` works.", "On it\nHere `A.go` works. [9]"])
def test_what_is_no_summary_is_refused(content):
    with pytest.raises(InvalidAnswer):
        read(TEXT, content)


def test_a_sentence_with_an_identifier_of_its_own_is_dropped():
    said = read(TEXT, "On it\nHere `A.go` works. [1]\nHere `C` uses `made_up` things. [2]")
    assert ([one.text for one in said.sentences], said.dropped) == (["Here `A.go` works."], 1)
    with pytest.raises(InvalidAnswer, match="identifier"):
        read(TEXT, "On it\nHere `made_up` works. [1]")


def test_a_citation_that_names_nothing_of_its_sentence_is_moved_to_one_that_does():
    said = read(TEXT, "On it\nHere `C` and `D` work. [1]\nHere `C` works. [1][3]")
    assert ([one.cites for one in said.sentences], said.moved) == ([(3,), (3,)], 1)


def test_the_prompts_example_keeps_its_own_rules():
    facts, answer = PROMPT.read_text().split("For example, of the facts\n")[1].rstrip("\n").split("\nthe answer is\n")
    said = read(facts, answer)
    assert (said.dropped, said.moved, len(said.sentences)) == (0, 0, 2) and accepts(facts, answer)
