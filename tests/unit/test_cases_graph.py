"""The nasty cases as graphs (tests/cases: c01, c02, c05, c07, c09, n02), without what needs a model or Neo4j."""

import pytest

from tests.support import case


def test_c01_symbols_of_the_graph_have_the_spans_of_the_definitions(built):
    home, expected = built("c01").home, built("c01").case.expected["defs"]
    entities = home.entities()
    for row in expected:
        entity = entities[f"astral.py::{row['qualname']}"]
        assert (entity["start"], entity["end"]) == (row["start"], row["end"])
        assert (entity["start_line"], entity["end_line"]) == (row["first_line"], row["end_line"])
        assert entity["type"] == ("Class" if row["kind"] == "ClassDef" else "Function")


def test_c01_calls_of_normalised_names_are_edges(built):
    calls = built("c01").home.edges("CALLS")
    assert {("astral.py::tail", "astral.py::find_first"), ("astral.py::Ω.éclair", "astral.py::Ω.ε")} <= calls


def test_c02_equal_methods_are_three_symbols_with_their_own_spans(built):
    entities = built("c02").home.entities()
    for row in built("c02").case.expected["close_spans"]:
        entity = entities[f"twins.py::{row['qualname']}"]
        assert (entity["start"], entity["end"], entity["start_line"]) == (row["start"], row["end"], row["def_line"])


def test_c02_equal_methods_are_mentioned_each_at_its_own_place(built):
    expected = {f"twins.py::{row['qualname']}": row for row in built("c02").case.expected["close_spans"]}
    places = [row for row in built("c02").home.rows("mentions") if row["entity"] in expected]
    assert sorted((row["entity"], row["line"]) for row in places if row["kind"] == "definition") == sorted(
        (name, row["def_line"]) for name, row in expected.items()
    )


def test_c05_symbols_of_every_encoding_are_entities(built):
    assert {"bom.py::from_bom", "latin1.py::from_latin", "cp1251.py::from_cyrillic"} <= set(
        built("c05").home.entities()
    )


def test_c07_calls_behind_deep_nesting_are_edges(built):
    calls = built("c07").home.edges("CALLS")
    for path in ("a_sum900.py", "e_chain.py", "f_elif.py", "g_dict.py"):
        assert (f"{path}::after", f"{path}::before") in calls
    assert {"e_chain.py::chain", "f_elif.py::pick", "z_good.py::good"} <= set(built("c07").home.entities())


def test_c09_no_entity_has_an_empty_name(built):
    rows = built("c09").home.rows("entities")
    assert rows
    assert all(row[column].strip() for row in rows for column in ("id", "name", "key", "path"))
    assert all(row["text"].strip() for row in built("c09").home.rows("mentions"))


# n02: documents that share entities, as far as parsing knows them


@pytest.mark.parametrize("gone", [["d1.md"], ["d1.md", "d2.md"], ["d1.md", "d2.md", "d3.md"]])
def test_n02_nothing_of_deleted_documents_is_left_in_the_graph(tmp_path, home, new_home, gone):
    root = case("n02").copy_to(tmp_path / "tree")
    home.build(root)
    assert {"d1.md", "d2.md", "d3.md"} <= {row["path"] for row in home.rows("entities")}
    chunks = {row["chunk_id"] for row in home.rows("chunks")}
    assert len(chunks) == 3
    for name in gone:
        (root / name).unlink()
    home.build(root)
    left = {"d1.md", "d2.md", "d3.md"} - set(gone)
    assert {row["path"] for row in home.rows("entities")} == left
    assert {row["chunk_id"] for row in home.rows("mentions")} <= {row["chunk_id"] for row in home.rows("chunks")}
    clean = new_home()
    clean.build(root)
    assert home.graph_hashes() == clean.graph_hashes()
