"""The symbol and edge checks of the case bank."""

import json
import sys

import pytest

from pipelines.code.facts import file_facts
from tests.unit.code.conftest import CASES, facts_of


def case_data(name: str) -> dict:
    return json.loads((CASES / name / "case.json").read_text())["expect"]["data"]


@pytest.mark.parametrize("name", ["g01-local-wins", "g02-import-alias"])
def test_calls_that_must_and_must_not_be(name, edges, case_tree):
    found = edges(case_tree(f"{name}/tree"))
    data = case_data(name)
    assert {tuple(pair) for pair in data["calls_yes"]} <= found
    for source, target in data["calls_no"]:
        suffix = target.removeprefix("*")
        assert not [pair for pair in found if pair[0] == source and pair[1].endswith(suffix)], (source, target)


def test_g01_four_functions_of_one_name(case_tree):
    names = [
        facts.symbol_id(number)
        for facts in facts_of(case_tree("g01-local-wins/tree"))
        for number, symbol in enumerate(facts.symbols)
        if symbol[0] == "function" and symbol[1].endswith("locate")
    ]
    assert sorted(names) == ["a.py::locate", "b.py::locate", "c.py::locate", "f.py::shadow.<locals>.locate"]


def test_g02_modules_imported_and_callers(edges, case_tree):
    tree = case_tree("g02-import-alias/tree")
    wanted = {("uses.py", "pkg/meter.py"), ("uses.py", "pkg/scale.py"), ("pkg/sub/deep.py", "pkg/meter.py")}
    assert wanted <= edges(tree, "IMPORTS")
    assert len([source for source, target in edges(tree) if target == "pkg/meter.py::measure"]) == 9


def test_g04_definitions_inside_anything(edges, case_tree):
    tree = case_tree("g04-nested-conditional/tree")
    data = case_data("g04-nested-conditional")
    (facts,) = facts_of(tree)
    symbols = {symbol[1]: symbol for symbol in facts.symbols}
    names = {row["qualname"] for row in data["defs"]}
    assert names <= set(symbols) and len(names) == 20
    last = {row["qualname"]: row for row in data["defs"]}
    for name, row in last.items():
        assert symbols[name][3:5] == [row["start"], row["end"]]
        assert symbols[name][7] == row["def_line"]
    calls = edges(tree)
    helpers = {source.partition("::")[2] for source, target in calls if target == "nest.py::helper"}
    assert set(data["callers_of_helper"]) <= helpers
    assert "create_app" not in helpers
    stream = "nest.py::create_app.<locals>.stream"
    assert (stream, f"{stream}.<locals>.chunk") in calls
    inside = edges(tree, "DEFINED_IN")
    for name in ("handler", "stream", "Local"):
        assert (f"nest.py::create_app.<locals>.{name}", "nest.py::create_app") in inside
    assert {("nest.py::Outer.Inner", "nest.py::Outer"), ("nest.py::Outer.Inner.deep", "nest.py::Outer.Inner")} <= inside


def test_g06_same_names_in_different_places(edges, case_tree):
    tree = case_tree("g06-same-names/tree")
    assert edges(tree) == {(f"app{n}/cli.py::main", f"app{n}/cli.py::load") for n in (1, 2)}
    defined = {source for source, _ in edges(tree, "DEFINED_IN")}
    assert {"a/b_c.py::f", "a_b/c.py::f", "a.b/c.py::f", "web/frame.py::draw"} <= defined


def test_c01_spans_and_names_beyond_ascii(edges, case_tree):
    tree = case_tree("c01-astral-offsets/tree")
    (facts,) = facts_of(tree)
    found = {symbol[1]: symbol[3:5] for symbol in facts.symbols if symbol[0] in ("function", "class")}
    assert found == {row["qualname"]: [row["start"], row["end"]] for row in case_data("c01-astral-offsets")["defs"]}
    assert {("astral.py::tail", "astral.py::find_first"), ("astral.py::Ω.éclair", "astral.py::Ω.ε")} <= edges(tree)


def test_c05_other_encodings(case_tree):
    names = {symbol[1] for facts in facts_of(case_tree("c05-bom-cookie/tree")) for symbol in facts.symbols}
    assert {"from_bom", "from_latin", "from_cyrillic"} <= names


def test_c07_deep_trees(edges, case_tree):
    tree = case_tree("c07-deep-ast/tree")
    assert {"a_sum900.py", "e_chain.py", "f_elif.py", "g_dict.py", "z_good.py"} <= set(tree)
    limit = sys.getrecursionlimit()
    calls = edges(tree)
    assert sys.getrecursionlimit() == limit
    for name in ("a_sum900.py", "e_chain.py", "f_elif.py", "g_dict.py"):
        assert (f"{name}::after", f"{name}::before") in calls
    names = {facts.symbol_id(n) for facts in facts_of(tree) for n in range(len(facts.symbols))}
    assert {"e_chain.py::chain", "f_elif.py::pick", "z_good.py::good"} <= names


def test_s01_edges_follow_every_version(edges, case_tree):
    for version, wanted in case_data("s01-rename-and-callers")["edges"].items():
        found = edges(case_tree(f"s01-rename-and-callers/{version}"))
        assert {pair for pair in found if pair[1].endswith("::assist")} == {tuple(pair) for pair in wanted}, version


def test_s04_a_broken_file_leaves_no_edge_and_comes_back(edges, case_tree):
    broken = edges(case_tree("s04-syntax-error-window/v2"))
    assert not [pair for pair in broken if pair[0] == "caller.py::outside"]
    mended = edges(case_tree("s04-syntax-error-window/v3"))
    wanted = {("outside", "first"), ("first", "third"), ("Keep.use", "first")}
    files = {"outside": "caller.py"}
    assert {tuple(f"{files.get(name, 'work.py')}::{name}" for name in pair) for pair in wanted} <= mended


def test_s05_a_file_that_is_gone_or_empty(edges, case_tree):
    tree = case_tree("s05-out-of-scope/tree")
    assert ("b.py::b", "a.py::a") in edges(tree) or any(target.startswith("a.py::") for _, target in edges(tree))
    assert not edges({path: text for path, text in tree.items() if path != "a.py"})
    assert not edges({**tree, "a.py": ""})


def test_a_module_without_code_is_a_symbol_alone():
    assert [row[:2] for row in file_facts("empty.py", "").symbols] == [["module", ""]]
