"""A failed partition of `extractions` in the UI: red until it has been resumed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import CHROMIUM, cgrag_in, page_of, ui_of
from tests.extraction import docs
from tests.fake_model import MODEL, FakeModel
from tests.support import write_tree

FILES = docs("a", 4) | docs("b", 3) | docs("c", 2)
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture
def fake() -> Iterator[FakeModel]:
    with FakeModel() as model:
        yield model


@pytest.fixture
def settings(fake: FakeModel) -> dict[str, str]:
    return {
        "CGRAG_LLM_URLS": fake.url,
        "CGRAG_EXTRACT__MODEL": MODEL,
        "CGRAG_EXTRACT__BACKOFF": "0",
        "CGRAG_PARTITION_CHUNKS": "0",
    }


@pytest.fixture
def page(tmp_path: Path, settings: dict[str, str]):
    """A page of a headless Chromium at `cgrag ui` on this test's home."""
    with ui_of(tmp_path / "home", **settings) as url, page_of(url) as page:
        yield page


def test_one_failed_partition_of_three_is_red_until_it_is_resumed(
    tmp_path: Path, fake: FakeModel, settings: dict[str, str], page
) -> None:
    cgrag = cgrag_in(tmp_path / "home")
    cgrag("run", "--corpus", str(write_tree(tmp_path / "tree", FILES)), "--select", "corpus_files,chunks", **settings)
    fake.act = lambda text: {"status": 400} if "Thing1b" in text else None
    assert cgrag("run", "--select", "extractions", "--yes", check=False, **settings).returncode == 1
    page.goto("/assets/extractions?view=partitions")
    page.get_by_text("Failed (1)").wait_for()
    assert "Materialized (2)" in page.inner_text("body")
    page.goto("/assets/extractions?view=partitions&partition=b")
    page.get_by_text("Failed").first.wait_for()
    fake.act = lambda text: None
    cgrag("resume", "--failed", **settings)
    assert fake.requests == len(FILES) + 1
    page.goto("/assets/extractions?view=partitions")
    page.get_by_text("Materialized (3)").wait_for()
    assert "Failed (0)" in page.inner_text("body")
