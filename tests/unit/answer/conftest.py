"""A small corpus that can be asked: docs, a class with a base, and who calls what; and a scripted model."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.answer.answerer import Answerer
from pipelines.settings import Settings
from pipelines.tables import write_json
from tests.fake_model import MODEL, FakeModel
from tests.support import Home, write_tree

FILES = {
    "docs/lora.md": "# LoRA adapters\n\nTo enable LoRA, pass the flag `--enable-lora` to the server; adapters are then "
    "loaded by `load_adapter`.\n",
    "docs/cache.md": "# Prefix caching\n\nPrefix caching keeps the blocks of earlier prompts. It is turned off by "
    "`--no-prefix-caching`.\n",
    "shop/base.py": "class Keeper:\n    def store(self, thing):\n        return weigh(thing)\n\n\n"
    "def weigh(thing):\n    return len(thing)\n",
    "shop/till.py": "from shop.base import Keeper, weigh\n\n\nclass Till(Keeper):\n    def check(self, thing):\n"
    "        return weigh(thing)\n\n\ndef lonely():\n    return 1\n",
}
QUESTION = "How do I enable LoRA adapters?"


@pytest.fixture
def fake() -> Iterator[FakeModel]:
    with FakeModel() as model:
        yield model


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory, clean_environment: None) -> Path:
    """A folder with the corpus and a home in which it is built, to be copied."""
    place = tmp_path_factory.mktemp("filled")
    Home(place / "home").build(write_tree(place / "tree", FILES))
    return place


class Asked:
    """A home of one's own with the corpus, and an answerer of its settings."""

    def __init__(self, filled: Path, place: Path, url: str) -> None:
        shutil.copytree(filled, place)
        self.root = place / "tree"
        self.options = {"llm_urls": [url], "extract": {"model": MODEL, "backoff": 0, "retries": 0}}
        self.home = Home(place / "home", **self.options)
        write_json(self.home.layout.corpus_record, {"kind": "folder", "location": str(self.root), "version": ""})

    @property
    def settings(self) -> Settings:
        return self.home.settings

    def change(self, **settings: Any) -> None:
        """Take other settings from now on."""
        self.home = Home(self.settings.home, **self.options | settings)

    def answerer(self, **options: Any) -> Answerer:
        return Answerer(self.settings, **options)

    def answer(self, question: str = QUESTION, **options: Any) -> Any:
        with self.answerer() as answerer:
            return answerer.answer(question, **options)


@pytest.fixture
def asked(filled: Path, tmp_path: Path, fake: FakeModel) -> Asked:
    return Asked(filled, tmp_path / "asked", fake.url)
