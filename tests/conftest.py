"""Fixtures of all tests: each has a home and a Dagster instance of its own, and no setting of the machine's user."""

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import pytest

from pipelines.settings import PROJECT
from tests.support import Cli, Home, Said, run_command

hypothesis.settings.register_profile("project", deadline=None)  # how long an example takes is no test's business
hypothesis.settings.load_profile("project")


@pytest.fixture(scope="session", autouse=True)
def clean_environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No CGRAG_* variable and no cgrag.toml is seen by any test, not even by fixtures of a module."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(("CGRAG_", "DAGSTER_", "NEO4J_", "GIT_")):
                patch.delenv(name)
        patch.chdir(tmp_path_factory.mktemp("empty"))
        yield


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clean_environment: None) -> Path:
    """CGRAG_HOME, and a DAGSTER_HOME whose instance lies below it."""
    path = tmp_path / "home"
    dagster_home = tmp_path / "dagster-home"
    dagster_home.mkdir()
    shutil.copy(PROJECT / "dagster.yaml", dagster_home)
    monkeypatch.setenv("CGRAG_HOME", str(path))
    monkeypatch.setenv("CGRAG_DAGSTER_DIR", str(path / "dagster"))
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_home))
    monkeypatch.chdir(dagster_home)
    return path


@pytest.fixture
def home(own_home: Path) -> Home:
    return Home(own_home)


@pytest.fixture
def new_home(tmp_path: Path) -> Callable[..., Home]:
    """Make another home, with other settings if given."""
    made: list[Home] = []

    def make(**settings: Any) -> Home:
        made.append(Home(tmp_path / f"home-{len(made) + 2}", **settings))
        return made[-1]

    return make


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """An empty folder for a corpus."""
    folder = tmp_path / "tree"
    folder.mkdir()
    return folder


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Run `cgrag` with these words; it prints no traceback, whatever happens."""

    def run(*words: str, stdin: bytes = b"") -> Said:
        return run_command(monkeypatch, capsys, *words, stdin=stdin)

    return run
