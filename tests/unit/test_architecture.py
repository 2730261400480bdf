"""The house rules, read from the source itself, and the worked examples of its docstrings."""

import ast
import doctest
import importlib

import pytest

from pipelines.settings import PROJECT

LAYERS = ["pipelines", "resources", "assets", "eval_jobs", "cgrag"]
"""Each imports itself and what is before it."""
FILES = [file for layer in LAYERS for file in sorted((PROJECT / layer).rglob("*.py"))]
ids = [file.relative_to(PROJECT).as_posix() for file in FILES]


def imported(file):
    """Yield the modules that a file names in any import, also inside functions."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, f"{file}:{node.lineno} imports by dots"
            yield node.module


def environment_reads(file):
    """Yield the lines that read a variable of the environment."""
    for node in ast.walk(ast.parse(file.read_text())):
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "environb", "getenv", "getenvb"):
            yield node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module == "os":
            yield from (node.lineno for alias in node.names if alias.name in ("environ", "getenv"))


@pytest.mark.parametrize("file", FILES, ids=ids)
def test_imports_go_one_way(file):
    own = file.relative_to(PROJECT).parts[0]
    allowed = LAYERS[: LAYERS.index(own) + 1]
    for module in imported(file):
        top = module.partition(".")[0]
        assert top not in LAYERS or top in allowed, f"{own} imports {module}"
        assert top != "tests"


@pytest.mark.parametrize("file", FILES, ids=ids)
def test_pipelines_know_nothing_of_dagster(file):
    if file.is_relative_to(PROJECT / "pipelines"):
        assert not [module for module in imported(file) if module.startswith("dagster")]


def test_only_the_settings_read_the_environment():
    """git.py hands all of it on to git, and reads no variable of it."""
    reading = {
        file.relative_to(PROJECT).as_posix()
        for file in FILES
        if file.is_relative_to(PROJECT / "pipelines") and list(environment_reads(file))
    }
    assert reading <= {"pipelines/settings.py", "pipelines/corpus/git.py"}
    git = (PROJECT / "pipelines" / "corpus" / "git.py").read_text()
    assert {line.strip() for line in git.splitlines() if "os.environ" in line} == {
        "own = {name: value for name, value in os.environ.items() if name not in _OTHERS}"
    }


def test_no_file_is_longer_than_400_lines():
    assert [file.name for file in FILES if len(file.read_text().splitlines()) > 400] == []


@pytest.mark.parametrize("file", FILES, ids=ids)
def test_worked_examples_work(file):
    if ">>>" not in file.read_text():
        return
    name = ".".join(file.relative_to(PROJECT).with_suffix("").parts).removesuffix(".__init__")
    results = doctest.testmod(importlib.import_module(name))
    assert results.attempted
    assert results.failed == 0
