"""The prompt: one's own template is checked, and nothing in a question or source is read as a part of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.answer.recipe import LONGEST_QUESTION, AnswerRecipe, Turn, answer_recipe, load_prompt
from pipelines.answer.sources import Source
from pipelines.errors import CgragError
from pipelines.settings import Settings

RECIPE = answer_recipe(Settings(extract={"model": "m"}))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Answer $question", r"needs the placeholder \$sources once"),
        ("$sources", r"needs the placeholder \$question once"),
        ("$sources $sources $question", r"needs the placeholder \$sources once"),
        ("$question $sources", r"\$question stands before \$sources"),
        ("$sources $question $more", r"\$more, which is not known"),
        ("$sources $question costs 3 $", "lone"),
    ],
)
def test_a_template_that_cannot_work_is_refused_by_name(tmp_path, text, said):
    file = tmp_path / "mine.txt"
    file.write_text(text)
    with pytest.raises(CgragError, match=said) as error:
        load_prompt(file)
    assert "mine.txt" in error.value.problem
    assert "CGRAG_ANSWER__PROMPT" in error.value.remedy


def test_a_template_that_is_not_there_is_named(tmp_path):
    with pytest.raises(CgragError, match="gone"):
        load_prompt(tmp_path / "gone.txt")


@given(st.text(max_size=60), st.text(max_size=200))
def test_question_and_sources_stand_in_the_request_as_they_are(question, text):
    request = RECIPE.request(question, [Source(1, "a.md", 1, 2, "", text=text)])
    shown = request.messages[-1]["content"]
    assert shown.endswith(f"Question: {question}")
    assert text.strip("\n") in shown
    assert request.messages[0]["content"] == RECIPE.system


def test_another_model_revision_or_prompt_is_another_recipe():
    keys = {AnswerRecipe(*parts).key for parts in [("m", "", "p"), ("n", "", "p"), ("m", "r", "p"), ("m", "", "q")]}
    assert len(keys) == 4


def test_the_conversation_comes_before_the_question():
    request = RECIPE.request("And it?", [Source(1, "a.md", 1, 2, "", text="x")], [Turn("What?", "That.")])
    assert [message["role"] for message in request.messages] == ["system", "user", "assistant", "user"]
    assert [message["content"] for message in request.messages[1:3]] == ["What?", "That."]


def test_a_very_long_question_is_cut():
    shown = RECIPE.request("why " * 5000, [Source(1, "a.md", 1, 2, "", text="x")]).messages[-1]["content"]
    assert len(shown) < LONGEST_QUESTION + 200


def test_sources_get_what_a_servers_context_leaves():
    assert RECIPE.room(None, 3000, "why") == 3000
    assert RECIPE.room(100_000, 3000, "why") == 3000
    small = RECIPE.room(2048, 3000, "why")
    assert 300 < small < 2048 - RECIPE.max_tokens
    assert RECIPE.room(2048, 3000, "why " * 400) < small
