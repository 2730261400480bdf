"""A backfill of `extractions` in the UI: its failed partition is red until that one has been done."""

import os
from pathlib import Path

import pytest

from pipelines.corpus.scan import load_plan
from pipelines.layout import Layout
from pipelines.state import failures
from tests.e2e.conftest import CHROMIUM, PROJECT, backfill, cgrag_in, end_of, page_of, ui_of
from tests.extraction import docs
from tests.fake_model import FakeModel
from tests.support import write_tree

KEYS = [f"d{number:02}" for number in range(20)]
FILES = {path: text for key in KEYS for path, text in docs(key, 2).items()}
PICTURES = os.environ.get("CGRAG_TEST_PICTURES")
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


def test_a_backfill_of_twenty_partitions_with_one_failing_and_then_of_that_one(
    tmp_path: Path, fake: FakeModel, fake_settings: dict[str, str]
) -> None:
    cgrag = cgrag_in(tmp_path / "home")
    tree = write_tree(tmp_path / "tree", FILES)
    cgrag("run", "--corpus", str(tree), "--select", "corpus_files,chunks", **fake_settings)
    fake.act = lambda text: {"status": 400} if "Thing1d07" in text else None
    with ui_of(tmp_path / "home", **fake_settings) as url, page_of(url) as page:
        assert end_of(url, backfill(url, KEYS)).endswith("FAILED")
        page.goto("/assets/extractions?view=partitions")
        page.get_by_text("Failed (1)").wait_for()
        assert "Materialized (19)" in page.inner_text("body")
        if PICTURES:
            page.screenshot(path=str(PROJECT / PICTURES / "backfill.png"), animations="disabled")
        page.goto("/assets/extractions?view=partitions&partition=d07")
        page.get_by_text("Failed").first.wait_for()
        layout = Layout(tmp_path / "home")
        (reason,) = failures(layout, "extractions", load_plan(layout)).values()
        assert "d07/d001.md" in reason and "http 400" in reason
        fake.act = lambda text: None
        assert end_of(url, backfill(url, ["d07"])).endswith("SUCCESS")
        assert fake.requests == len(FILES) + 1
        page.goto("/assets/extractions?view=partitions")
        page.get_by_text("Materialized (20)").wait_for()
        assert "Failed (0)" in page.inner_text("body")
