"""Taxonomies: the product's own, a corpus's own, and broken ones."""

import pytest

from pipelines.errors import CgragError
from pipelines.extract.taxonomy import load_taxonomy

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
