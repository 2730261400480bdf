"""Small trees of Python files, and their edges as pairs."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from pipelines.code.facts import Facts, file_facts
from pipelines.code.link import Links, link

CASES = Path(__file__).resolve().parents[2] / "cases"
Tree = Mapping[str, str]


def facts_of(tree: Tree) -> list[Facts]:
    return [file_facts(path, text) for path, text in tree.items()]


@pytest.fixture
def links() -> Callable[..., Links]:
    return lambda tree, **settings: link(facts_of(tree), **settings)


@pytest.fixture
def edges(links) -> Callable[..., set[tuple[str, str]]]:
    """The (source, target) pairs of one relation in a tree."""

    def find(tree: Tree, relation: str = "CALLS", **settings) -> set[tuple[str, str]]:
        return {(site.source, site.target) for site in links(tree, **settings).sites if site.relation == relation}

    return find


@pytest.fixture
def case_tree() -> Callable[[str], dict[str, str]]:
    """The Python files of a case's folder that CPython can parse, decoded as the corpus stage does."""
    from pipelines.chunking.python import Unparsable, parse_source
    from pipelines.corpus.decode import decode

    def read(folder: str) -> dict[str, str]:
        root = CASES / folder
        tree = {}
        for path in sorted(root.rglob("*.py")):
            decoded = decode(path.read_bytes(), python=True)
            try:
                parse_source(decoded.text)
            except Unparsable:
                continue
            if not decoded.problem:
                tree[path.relative_to(root).as_posix()] = decoded.text
        return tree

    return read
