"""Recipes: what is sent, what its key depends on, and how they are kept."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import CgragError
from pipelines.extract.recipe import CANARY, Recipe, active_recipe, recipe_of, store_recipe, stored_recipe
from pipelines.settings import ExtractSettings, Settings

RECIPE = recipe_of(ExtractSettings(model="m"))


@given(st.text(max_size=200))
def test_the_chunk_reaches_the_model_as_it_is_whatever_it_holds(text):
    request = RECIPE.request(f"{text} Name")
    assert request.body["messages"][-1]["content"] == f"{text} Name"
    assert request.body["messages"][0]["content"] == RECIPE.system


def test_the_prompt_has_no_name_that_a_model_could_copy_out_of_an_example():
    assert "xample" not in RECIPE.system
    assert "$" not in RECIPE.system


def test_the_grammar_lists_the_names_of_the_chunk_and_the_types_of_the_taxonomy():
    schema = RECIPE.request("LoRAManager loads Punica")
    properties = schema.body["response_format"]["json_schema"]["schema"]["properties"]
    assert properties["entities"]["items"]["properties"]["name"]["enum"] == ["LoRAManager", "Punica"]
    assert properties["relations"]["items"]["properties"]["source"]["enum"] == ["LoRAManager", "Punica"]
    assert "CALLS" in properties["relations"]["items"]["properties"]["type"]["enum"]


def test_a_text_without_names_makes_no_request():
    assert RECIPE.request("1234 and so on.") is None


def test_the_same_text_has_the_same_key_and_any_other_setting_another():
    key = RECIPE.request("Some Name").key
    assert RECIPE.request("Some Name").key == key
    others = [
        RECIPE.request("Some  Name"),
        RECIPE.model_copy(update={"revision": "2"}).request("Some Name"),
        recipe_of(ExtractSettings(model="n")).request("Some Name"),
        recipe_of(ExtractSettings(model="m", max_tokens=99)).request("Some Name"),
        Recipe(**RECIPE.model_dump() | {"prompt": "Other. $types $relations"}).request("Some Name"),
    ]
    assert len({key, *(other.key for other in others)}) == 6


def test_recipes_differ_in_their_ids_whenever_their_requests_do():
    other = Recipe(**RECIPE.model_dump() | {"prompt": "Other. $types $relations"})
    assert other.id != RECIPE.id
    assert Recipe(**RECIPE.model_dump()).id == RECIPE.id


def test_only_the_answer_that_the_grammar_demands_passes_the_canary():
    request = RECIPE.canary()
    assert request.body["messages"][-1]["content"] == CANARY
    schema = request.body["response_format"]["json_schema"]["schema"]["properties"]["entities"]
    (name,) = schema["items"]["properties"]["name"]["enum"]
    right = {"entities": [{"name": name, "type": "Function"}], "relations": []}
    assert name not in CANARY
    assert not RECIPE.fails_canary(json.dumps(right))
    for wrong in ("The sea is wide.", "", "[" * 5000, json.dumps({"entities": [], "relations": []})):
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
    for name in ("unknown-12345678", "../x", ""):
        if name:
            with pytest.raises(CgragError, match="no ledger of a recipe"):
                active_recipe(Settings(home=home.settings.home, extract={"recipe": name}))


def test_a_damaged_description_is_named(home):
    store_recipe(home.layout, RECIPE)
    file = home.layout.ledgers / RECIPE.id / "recipe.json"
    file.write_text("{}")
    with pytest.raises(CgragError, match=r"recipe\.json is damaged"):
        stored_recipe(home.layout, RECIPE.id)
