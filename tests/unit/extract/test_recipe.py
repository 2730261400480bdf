"""Recipes: what is sent, what its key depends on, and how they are kept."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import CgragError
from pipelines.extract.recipe import (
    CANARY,
    Recipe,
    active_recipe,
    load_prompt,
    recipe_of,
    store_recipe,
    stored_recipe,
)
from pipelines.settings import Settings
from tests.fake_model import offered

RECIPE = recipe_of(Settings(extract={"model": "m"}))


def other(**changes):
    """The recipe with some parts changed."""
    return Recipe(**RECIPE.model_dump() | changes)


@given(st.text(max_size=200))
def test_the_chunk_reaches_the_model_as_it_is_whatever_it_holds(text):
    request = RECIPE.request(f"{text} Name")
    assert request.messages[-1]["content"] == f"{text} Name"
    assert request.messages[0]["content"] == RECIPE.system


def test_the_prompt_is_filled_in_and_shows_the_example_of_the_taxonomy():
    assert "$" not in RECIPE.system
    assert "TidalSluice" in RECIPE.system
    bare = RECIPE.taxonomy.model_copy(update={"example": None})
    assert "xample" not in other(taxonomy=bare).system


def test_what_the_prompt_says_after_the_chunk_follows_it():
    recipe = other(prompt="$types $relations\n$chunk\nNow answer for $$5.\n")
    assert recipe.request("Some Name").messages[-1]["content"] == "Some Name\nNow answer for $5."


@pytest.mark.parametrize(
    ("prompt", "told"),
    [
        ("$types $chunk", r"lacks the placeholder \$relations"),
        ("$relations $chunk", r"lacks the placeholder \$types"),
        ("$types $relations", r"lacks the placeholder \$chunk"),
        ("$types $relations $names $chunk", r"\$names, which is not known"),
        ("$types $relations 5 $ $chunk", "a lone"),
        ("$types $chunk $relations", r"\$relations stands after \$chunk"),
        ("$types $relations $chunk $chunk", r"\$chunk stands after"),
    ],
)
def test_a_prompt_that_cannot_be_used_is_refused_by_name(tmp_path, prompt, told):
    file = tmp_path / "prompt.txt"
    file.write_text(prompt)
    with pytest.raises(CgragError, match=told) as refused:
        recipe_of(Settings(extract={"model": "m", "prompt": file}))
    assert str(file) in str(refused.value)


def test_a_missing_prompt_is_named(tmp_path):
    with pytest.raises(CgragError, match="cannot be read"):
        load_prompt(tmp_path / "none.txt")


def test_the_request_is_one_that_outlines_makes_for_vllm():
    body = RECIPE.request("LoRAManager loads Punica").body
    assert body["structured_outputs"].keys() == {"grammar"}
    assert offered(body) == (["LoRAManager", "Punica"], "Function")
    assert (body["temperature"], body["chat_template_kwargs"]) == (0, {"enable_thinking": False})


@given(st.lists(st.text("abXY_é", min_size=2, max_size=40), min_size=1, max_size=60), st.integers(64, 4096))
def test_names_are_left_out_until_the_longest_answer_fits(names, most):
    recipe = other(max_tokens=most)
    request = recipe.request(" ".join(f"`{name}`" for name in names))
    if request is not None:
        offered_names, _ = offered(request.body)
        assert set(offered_names) <= set(names)
        assert request.max_tokens <= most + 2


def test_a_text_without_names_makes_no_request():
    assert RECIPE.request("1234 and so on.") is None


def test_the_same_text_has_the_same_key_and_any_other_setting_another():
    key = RECIPE.request("Some Name").key
    assert RECIPE.request("Some Name").key == key
    others = [
        RECIPE.request("Some  Name"),
        other(revision="2").request("Some Name"),
        recipe_of(Settings(extract={"model": "n"})).request("Some Name"),
        other(prompt="Other. $types $relations $chunk").request("Some Name"),
    ]
    assert len({key, *(other.key for other in others)}) == 5


def test_shorter_answers_are_another_request_where_that_leaves_something_out():
    short = recipe_of(Settings(extract={"model": "m", "max_tokens": 99}))
    assert short.request("Some_name").key == RECIPE.request("Some_name").key
    assert short.request("Some_name Other_name").key != RECIPE.request("Some_name Other_name").key


def test_recipes_differ_in_their_ids_whenever_their_requests_do():
    changed = other(prompt="Other. $types $relations $chunk")
    assert changed.id != RECIPE.id
    assert Recipe(**RECIPE.model_dump()).id == RECIPE.id


def test_only_the_answer_that_the_grammar_demands_passes_the_canary():
    request = RECIPE.canary()
    assert request.messages[-1]["content"] == CANARY
    right = json.loads(request.grammar.removeprefix("root ::= "))
    ((name, kind),) = json.loads(right)
    assert (name in CANARY, kind) == (False, "Function")
    assert not RECIPE.fails_canary(right)
    for wrong in ("The sea is wide.", "", "[" * 5000, "[]", json.dumps(json.loads(right))):
        assert RECIPE.fails_canary(wrong)


@given(st.text(st.sampled_from("ab \n"), min_size=400, max_size=900))
def test_a_long_text_is_cut_near_its_middle_a_short_one_not_at_all(text):
    at = RECIPE.split(text)
    assert abs(at - len(text) // 2) <= len(text) // 4
    assert RECIPE.split(text[:399]) is None


def test_a_stored_recipe_renders_what_it_did(home):
    store_recipe(home.layout, RECIPE)
    found = stored_recipe(home.layout, RECIPE.id)
    assert found == RECIPE
    assert found.request("Some Name") == RECIPE.request("Some Name")


def test_the_active_recipe_is_a_setting(home):
    store_recipe(home.layout, RECIPE)
    settings = Settings(home=home.settings.home, extract={"model": "other", "recipe": RECIPE.id})
    assert active_recipe(settings) == RECIPE
    for name in ("unknown-12345678", "../x"):
        with pytest.raises(CgragError, match="no ledger of a recipe"):
            active_recipe(Settings(home=home.settings.home, extract={"recipe": name}))


def test_a_damaged_description_is_named(home):
    store_recipe(home.layout, RECIPE)
    file = home.layout.ledgers / RECIPE.id / "recipe.json"
    file.write_text("{}")
    with pytest.raises(CgragError, match=r"recipe\.json is damaged"):
        stored_recipe(home.layout, RECIPE.id)
