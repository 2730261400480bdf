"""A small corpus with docs in two markups and code, built once for all tests of a module."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipelines.evaluate.places import Places, load_places
from pipelines.lexical.index import load_index
from tests.support import Home, write_tree

FILES = {
    "docs/index.md": (
        "# Handbook\n\nThis handbook tells how adapters, caches and workers fit together in a running engine.\n"
        "Nothing in it is needed to follow the first steps of a newcomer.\n\n"
        "## First steps\n\n"
        "Before anything can be served, read [the adapter guide](lora.md#serve-an-adapter) carefully. "
        "Those who tune throughput want to learn about eviction, see [caches](guide.rst).\n"
        "The engine keeps every loaded weight inside [Engine][pkg.app.Engine] until shutdown.\n\n"
        "| table | row |\n| --- | --- |\n| a long table row about caching with a link | [caches](guide.rst) |\n\n"
        "```\nA fenced example with several words linking nowhere: [caches](guide.rst)\n```\n"
    ),
    "docs/lora.md": (
        "# Adapters\n\n"
        "Low rank adapters are small matrices that change a frozen model at run time, and nothing else.\n\n"
        "## Serve an adapter\n\nStart the server with the flag and give a name and a path for each of the matrices. "
        "Several can be active at once, and each request names the one that it wants.\n"
    ),
    "docs/guide.rst": (
        "Caches\n======\n\nBlocks of keys and values are evicted when memory runs out, the oldest first of all.\n"
        "A block that a running request reads is never evicted.\n\n.. _sizing:\n\nSizing blocks\n-------------\n\n"
        "The size of a block is a power of two, and larger ones waste memory at the end of each sequence.\n"
        "To watch what the running workers do, call :meth:`~pkg.app.Engine.status` from another thread.\n"
    ),
    "src/pkg/app.py": (
        '"""The engine."""\n\n\nclass Engine:\n    """Keeps loaded weights and gives them back."""\n\n'
        '    def status(self) -> dict[str, int]:\n        """Return how many workers are busy."""\n'
        '        return {"busy": 0}\n\n\ndef main() -> None:\n    print(Engine().status())\n'
    ),
    "blank.txt": "\n\n",
}


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory, clean_environment: None) -> Home:
    """A built home of FILES, chunks of at most 300 characters; tests must not change it."""
    folder = tmp_path_factory.mktemp("small")
    home = Home(folder / "home", chunking={"cap": 300, "section": 100})
    home.build(write_tree(folder / "handbook-1.0", FILES))
    return home


@pytest.fixture(scope="module")
def places(small: Home) -> Places:
    return load_places(small.settings, load_index(small.settings))


@pytest.fixture
def question_file(tmp_path: Path) -> Callable[..., Path]:
    """Write a question file of rows (question_id and question are made up where missing)."""

    def write(*rows: dict[str, Any], name: str = "questions.json") -> Path:
        whole = [
            {"question_id": f"q{number}", "question": "how are blocks evicted"} | r for number, r in enumerate(rows)
        ]
        path = tmp_path / name
        path.write_text(json.dumps({"rag_questions": whole}))
        return path

    return write
