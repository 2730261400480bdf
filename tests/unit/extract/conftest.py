"""Fixtures of the extraction tests: a scripted model, and a home that asks it."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.extraction import Extracted
from tests.fake_model import FakeModel


@pytest.fixture
def fake() -> Iterator[FakeModel]:
    """A model that answers by each chunk's own names, and counts."""
    with FakeModel() as model:
        yield model


@pytest.fixture
def extracted(tmp_path: Path, fake: FakeModel) -> Callable[..., Extracted]:
    """Build a corpus of these files, its policy `llm`, and return what extracts it."""
    made: list[Extracted] = []

    def build(files: Mapping[str, str], **settings: Any) -> Extracted:
        place = tmp_path / f"corpus-{len(made)}"
        made.append(Extracted(place, files, fake.url, **settings))
        return made[-1]

    return build
