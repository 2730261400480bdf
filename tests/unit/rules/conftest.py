"""Small corpora for the rules."""

from collections.abc import Mapping
from typing import Any

import pytest

from pipelines.extract.taxonomy import Taxonomy, load_taxonomy
from pipelines.graph.build import build_graph
from pipelines.rules.corpus import Ruled, find_by_rule
from tests.unit.graph.conftest import inputs

ENGINE = """class Engine:
    def run(self): 1
    def load_model(self): 1


def make_engine(): 1


class Model: 1
"""
CODE = {
    "pkg/__init__.py": "from pkg.engine import Engine\n",
    "pkg/engine.py": ENGINE,
    "pkg/request.py": "class Request: 1\n\n\ndef request(): 1\n\n\nMAX_TOKENS = 1\n",
    "pkg/v1/engine.py": "class Twin: 1\n",
    "pkg/twin.py": "class Twin: 1\n",
    "tests/test_engine.py": "class FakeEngine: 1\n\n\ndef make_engine(): 1\n",
}


def rules(tree: Mapping[str, str], taxonomy: Taxonomy | None = None, cap: int = 2000) -> Ruled:
    """What the rules find in CODE and some other files."""
    facts, documents, outline, chunks, sites = inputs({**CODE, **tree}, cap)
    graph = build_graph(facts, documents, outline, chunks, sites)
    entities = {row["id"]: row for row in graph.entities.to_pylist() if row["path"]}
    imports = [site for site in sites["parse"] if site.relation == "IMPORTS"]
    return find_by_rule(entities, documents, outline, chunks, sites["link"], imports, taxonomy or load_taxonomy())


def named(tree: Mapping[str, str], **options: Any) -> set[tuple[str, str]]:
    """(text, entity) of the mentions in pages."""
    found = rules(tree, **options)
    return {(tree[path][start:end], entity) for entity, path, start, end, _ in found.mentions if path in tree}


@pytest.fixture
def found():
    return rules({"docs/use.md": "# Use\n\nCall `Engine.run` of [Model](../pkg/engine.py).\n"})
