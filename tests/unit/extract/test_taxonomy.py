"""Taxonomies: the product's own, a corpus's own, and broken ones."""

import re

import pytest

from pipelines.errors import CgragError
from pipelines.extract.recipe import recipe_of
from pipelines.extract.taxonomy import load_taxonomy
from pipelines.settings import PROJECT, Settings

GEOGRAPHY = """
version = "1"
[[types]]
name = "City"
definition = "a city"
[[types]]
name = "Country"
definition = "a country"
[[relations]]
name = "capital_of"
definition = "the city is the capital"
heads = ["City"]
tails = ["Country"]
"""


def test_the_products_own_is_as_designed():
    taxonomy = load_taxonomy()
    assert taxonomy.type_names == ("Function", "Class", "Module", "Variable", "Concept", "Entity")
    assert [kind.name for kind in taxonomy.types if kind.last_resort] == ["Entity"]
    assert [relation.name for relation in taxonomy.relations if relation.last_resort] == ["RELATES_TO"]


def test_a_corpus_may_bring_its_own(tmp_path):
    file = tmp_path / "geography.toml"
    file.write_text(GEOGRAPHY)
    capital = load_taxonomy(file).relation("capital_of")
    assert capital.allows("City", "Country")
    assert not capital.allows("Country", "City")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ('heads = ["City"]', 'heads = ["Town"]', "Town, which is not defined"),
        ('name = "Country"', 'name = "City"', "City is defined twice"),
        ('name = "City"', 'name = "a b"', "types.0.name"),
        ('definition = "a city"', "", "types.0.definition"),
        ('version = "1"', "", "version"),
        ("[[types]]", "[[types]", "not TOML"),
        ('version = "1"', 'version = "1"\ncolour = "red"', "colour"),
    ],
)
def test_a_broken_one_is_refused_and_the_place_is_named(tmp_path, old, new, told):
    file = tmp_path / "geography.toml"
    file.write_text(GEOGRAPHY.replace(old, new, 1))
    with pytest.raises(CgragError, match=told) as refused:
        load_taxonomy(file)
    assert str(file) in str(refused.value)


def test_a_missing_one_is_named(tmp_path):
    with pytest.raises(CgragError, match="cannot be read"):
        load_taxonomy(tmp_path / "none.toml")


def test_the_one_in_the_readme_can_be_used(tmp_path):
    file = tmp_path / "geography.toml"
    file.write_text(re.search(r"```toml\n(version.*?)```", (PROJECT / "README.md").read_text(), re.DOTALL)[1])
    recipe = recipe_of(Settings(extract={"model": "m", "taxonomy": file}))
    assert recipe.taxonomy.type_names == ("City", "Country")
    assert "Quorvale" in recipe.system


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        ('[["Nowhere", "City"]]', "1 names and 0 relations"),
        ('[["Quorvale", "City", ["capital_of", "Quorvale"]]]', "0 names and 1 relations"),
        ('[["Quorvale", "Town"]]', "Input should be"),
    ],
)
def test_an_example_that_breaks_the_taxonomy_itself_is_refused(tmp_path, answer, told):
    file = tmp_path / "geography.toml"
    file.write_text(f'{GEOGRAPHY}[example]\ntext = "Quorvale is the capital of Ostmere."\nanswer = {answer}\n')
    with pytest.raises(CgragError, match=told) as refused:
        recipe_of(Settings(extract={"model": "m", "taxonomy": file}))
    assert str(file) in str(refused.value)


@pytest.mark.parametrize("side", ["heads", "tails"])
def test_a_relation_that_could_never_hold_is_refused(tmp_path, side):
    file = tmp_path / "geography.toml"
    file.write_text(re.sub(f"{side} = .*", f"{side} = []", GEOGRAPHY))
    with pytest.raises(CgragError, match=f"allows no {side}, so it never holds"):
        load_taxonomy(file)
