"""The nasty cases, built once for all tests of a module."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support import Case, Home, case


@dataclass(frozen=True)
class Built:
    """A case whose `tree` has been built."""

    case: Case
    root: Path
    home: Home


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, clean_environment: None) -> Callable[..., Built]:
    """Build the case of this name, or part of it, without Dagster."""
    made: dict[tuple[str, str], Built] = {}

    def build(name: str, part: str = "tree") -> Built:
        if (name, part) not in made:
            folder = tmp_path_factory.mktemp(name)
            found = case(name)
            root = found.copy_to(folder / part, part)
            home = Home(folder / "home")
            home.build(root)
            made[name, part] = Built(found, root, home)
        return made[name, part]

    return build
