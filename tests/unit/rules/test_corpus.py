"""The rules over small corpora: what they bind, what they leave alone, and what they do with bad input."""

import random
import time

import pytest

from pipelines.extract.taxonomy import NodeType, RelationType, Taxonomy, load_taxonomy
from pipelines.graph.build import build_graph
from pipelines.rules.corpus import find_by_rule
from tests.unit.graph.conftest import inputs
from tests.unit.rules.conftest import named, rules

ENGINE, RUN, MODEL = "pkg/engine.py::Engine", "pkg/engine.py::Engine.run", "pkg/engine.py::Model"


@pytest.mark.parametrize(
    ("text", "entity", "binding"),
    [
        ("the Engine.run method", RUN, "qualified"),
        ("the pkg.engine.Engine", ENGINE, "qualified"),
        ("the pkg.Engine", ENGINE, "qualified"),
        ("an `Engine`", ENGINE, "unique"),
        ("make_engine makes it", "pkg/engine.py::make_engine", "unique"),
        ("set `MAX_TOKENS=3`", "pkg/request.py::MAX_TOKENS", "unique"),
        ("call `Request()`", "pkg/request.py::Request", "unique"),
        ("```\nfrom pkg.request import request\n```\na `request`", "pkg/request.py::request", "import"),
        ("```\nfrom pkg import Engine as Core\n```\na `Core`", ENGINE, "import"),
        ("[this](../pkg/v1/engine.py) has `Twin`", "pkg/v1/engine.py::Twin", "link"),
    ],
)
def test_a_name_means_a_symbol_by_a_certain_rule(text, entity, binding):
    found = rules({"docs/use.md": f"# Use\n\n{text}\n"})
    edges = {(site.source, site.relation, site.target, site.tier) for site in found.sites["rule"]}
    assert ("docs/use.md::Use", "REFERENCES", entity, binding) in edges


@pytest.mark.parametrize(
    "text",
    [
        "a request of the Model by an Engine",  # words of the language
        "the `request`",  # a plain word in small letters, of whatever marks
        "the `Twin`",  # two of that name
        "a load_model",  # a member by its bare name
        "`FakeEngine`",  # of the tests
        "```\nfrom other import Engine\n```\nthe `Engine`",  # another package's
        "| `Engine` | b |\n|---|---|\n| `Model` | `Request` |",
        "pkg/engine.py and x/Engine",
        "`engine`",
    ],
)
def test_what_no_rule_is_sure_of_stays_a_word(text):
    assert not rules({"docs/use.md": f"# Use\n\n{text}\n"}).sites["rule"]


def test_titles_and_definitions_are_concepts():
    tree = {
        "docs/cache.md": "# Prefix Caching\n\nPrefix caching saves.\n\n## Data Structure\n\nBlock Table is a map.\n",
        "docs/use.md": "# Use\n\nWith Prefix Caching and a data structure, the Block Table grows by `--block-size`.\n",
    }
    found = rules(tree)
    edges = {(site.source, site.target) for site in found.sites["rule"]}
    assert ("docs/use.md::Use", "docs/cache.md::Prefix Caching") in edges
    assert ("docs/cache.md::Prefix Caching > Data Structure", "name:block table") in edges
    assert ("docs/use.md::Use", "name:--block-size") in edges
    assert not any("Data Structure" in target for _, target in edges)
    assert found.terms == {
        "name:block table": ("Block Table", "Concept"),
        "name:--block-size": ("--block-size", "Variable"),
    }


def test_a_name_that_several_have_is_a_name_of_their_type():
    found = rules({"docs/use.md": "# Use\n\nBoth `load_model` and `max_len` and `CACHE_DIR`.\n"})
    assert found.terms == {"name:load_model": ("load_model", "Function"), "name:max_len": ("max_len", "Variable")}


def test_an_abbreviation_relates_to_what_it_stands_for():
    found = rules({"docs/use.md": "# Use\n\nFor Mixture of Experts (MoE) and data parallelism (DP).\n"})
    edges = {(site.source, site.relation, site.target) for site in found.sites["rule"] if site.tier == "abbreviation"}
    assert edges == {
        ("name:moe", "RELATES_TO", "name:mixture of experts"),
        ("name:dp", "RELATES_TO", "name:data parallelism"),
    }


def test_an_example_shows_parameters_methods_and_modules():
    code = """from pkg.engine import Engine
engine = Engine(model="a, b=(", size=f(x=1), deep=[
    2])
engine.run(y=1)
other.run()
"""
    text = f"# Use\n\n```python\n{code}```\n"
    found = rules({"docs/use.md": text})
    edges = {(site.source, site.relation, site.target) for site in found.sites["rule"]}
    assert edges == {(f"name:{name}", "DEFINED_IN", ENGINE) for name in ("model", "size", "deep")}
    mentioned = {(text[start:end], entity) for entity, path, start, end, _ in found.mentions if path == "docs/use.md"}
    assert {("pkg.engine", "pkg/engine.py"), ("run", RUN), ("Engine", ENGINE)} <= mentioned
    assert sum(entity == RUN for entity, path, *_ in found.mentions if path == "docs/use.md") == 1


def test_a_sentence_pairs_its_names_but_for_siblings_and_parts():
    text = "The `Engine` needs a `Model`. A `Request`, `Model` and `Engine`. `Engine.run` of `Engine`."
    pairs = [(site.source, site.target) for site in rules({"docs/a.md": f"# A\n\n{text}\n"}).sites["cooccurrence"]]
    assert pairs == [(ENGINE, MODEL)]


def test_a_title_that_many_pages_say_is_no_reference():
    tree = {f"docs/p{number}.md": f"# Page {number}\n\nOf Fast Start.\n" for number in range(12)}
    tree["docs/fast.md"] = "# Fast Start\n\ntext\n"
    assert not rules(tree).sites["rule"]


def test_comments_and_docstrings_refer_from_the_definition_around_them():
    code = '''from pkg.engine import Engine


def go(x):
    """Runs the :class:`Engine`, as `make_engine` and `x` do."""
    # `Engine.run`, not make_engine
    return [x]


VALUE = 1  # like `Engine`
'''
    found = rules({"app.py": code})
    assert {(site.source, site.target) for site in found.sites["rule"]} == {
        ("app.py::go", ENGINE),
        ("app.py::go", RUN),
        ("app.py::go", "pkg/engine.py::make_engine"),
        ("app.py", ENGINE),
    }
    assert all(code[start:end] in ("Engine", "Engine.run", "make_engine") for _, _, start, end, _ in found.mentions)


def test_a_corpus_brings_its_taxonomy():
    tree = {"docs/use.md": "# Prefix Caching\n\nPrefix Caching is a `Model` of `Engine` with `--flag`.\n"}
    names = ("Function", "Class", "Module")
    types = [NodeType(name=name, definition="x") for name in names]
    relates = RelationType(name="RELATES_TO", definition="x")
    found = rules(tree, Taxonomy(version="1", types=types, relations=[relates]))
    assert found.terms == {}
    assert {site.relation for site in found.sites["rule"] + found.sites["cooccurrence"]} == {"RELATES_TO"}
    assert not any(rules(tree, Taxonomy(version="1", types=types)).sites.values())


@pytest.mark.parametrize("language", ["klingon", "", "python {.x #y}", "c++"])
def test_code_in_any_language_is_no_prose(language):
    text = f"# Use\n\n```{language}\nEngine Model make_engine() `Request`\n```\n"
    assert not rules({"docs/use.md": text}).sites["rule"]


def test_a_language_without_spaces():
    text = "# 使用\n\n使用`Engine`来加载Engine.run。然后`Model`。\n"
    assert named({"docs/zh.md": text}) == {("Engine", ENGINE), ("Engine.run", RUN), ("Model", MODEL)}


def test_a_long_changelog_and_a_generated_listing_are_read_in_no_time():
    lines = [
        f"- Fix `Engine.run` in make_engine for #{n} (`--flag-{n % 50}`, **Big Change {n % 9}**)" for n in range(10_000)
    ]
    listing = "\n\n".join(f"## pkg.Engine.m{n}\n\n`pkg.Engine.m{n}(a, b)` " + "`Engine` " * 20 for n in range(500))
    tree = {"CHANGELOG.md": "# Changes\n\n" + "\n".join(lines), "docs/api.md": "# API\n\n" + listing}
    _, documents, outline, chunks, sites = inputs(tree)
    entities = {ENGINE: {"id": ENGINE, "type": "Class", "path": "pkg/engine.py"}}
    started = time.process_time()
    found = find_by_rule(entities, documents, outline, chunks, sites["link"], [], load_taxonomy())
    assert time.process_time() - started < 5
    assert not found.sites["cooccurrence"] or len(found.sites["cooccurrence"]) < 25_000
    assert any(site.path == "CHANGELOG.md" for site in found.sites["rule"])


@pytest.mark.parametrize("cap", [200, 2000])
def test_cuts_and_order_change_nothing(cap):
    page = (
        "# Use\n\n"
        + "Call `Engine.run` for a `Model`.\n\n" * 30
        + "```\n"
        + "code Engine\n\n" * 40
        + "```\nLast `Request`.\n"
    )
    tree = {"docs/use.md": page, "app.py": "# see `Engine`\n"}
    whole, cut = rules(tree), rules(tree, cap=cap)
    assert (sorted(cut.mentions), cut.sites, cut.terms) == (sorted(whole.mentions), whole.sites, whole.terms)


def test_the_graph_has_its_rules_whatever_the_order():
    parts = list(inputs({"pkg/a.py": "class Engine: 1\n", "docs/use.md": "# Use\n\nAn `Engine` with `--flag`.\n"}))
    graph = build_graph(*parts)
    for part in parts[:4]:
        random.Random(3).shuffle(part)
    assert build_graph(*parts).tables() == graph.tables()
    edges = {(row["target"], row["origin"], row["binding"]) for row in graph.edges.to_pylist()}
    assert {("pkg/a.py::Engine", "rule", "unique"), ("name:--flag", "rule", "option")} <= edges
    (flag,) = [row for row in graph.mentions.to_pylist() if row["entity"] == "name:--flag"]
    assert (flag["kind"], flag["text"], flag["line"]) == ("rule", "--flag", 3)
