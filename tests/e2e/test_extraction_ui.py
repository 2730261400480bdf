"""A backfill of `extractions` in the UI: its failed partition is red until that one has been done."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from pipelines.corpus.scan import load_plan
from pipelines.layout import Layout
from pipelines.state import failures
from tests.e2e.conftest import CHROMIUM, PROJECT, cgrag_in, page_of, ui_of
from tests.extraction import docs
from tests.fake_model import MODEL, FakeModel
from tests.support import write_tree

KEYS = [f"d{number:02}" for number in range(20)]
FILES = {path: text for key in KEYS for path, text in docs(key, 2).items()}
PICTURES = os.environ.get("CGRAG_TEST_PICTURES")
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


def backfill(url: str, keys: list[str]) -> str:
    """Do a backfill of `extractions` as the page's dialog does, and return its status once it has ended."""

    def asked(query: str, **variables: Any) -> Any:
        answer = httpx.post(f"{url}/graphql", json={"query": query, "variables": variables}, timeout=60).json()
        assert "errors" not in answer, answer
        return answer["data"]

    launch = (
        "mutation($p: LaunchBackfillParams!) { launchPartitionBackfill(backfillParams: $p) "
        "{ __typename ... on LaunchBackfillSuccess { backfillId } } }"
    )
    launched = asked(launch, p={"assetSelection": [{"path": ["extractions"]}], "partitionNames": keys})
    number = launched["launchPartitionBackfill"]["backfillId"]
    state = "query($id: String!) { partitionBackfillOrError(backfillId: $id) { ... on PartitionBackfill { status } } }"
    deadline = time.monotonic() + 240
    while time.monotonic() < deadline:
        status = asked(state, id=number)["partitionBackfillOrError"]["status"]
        if not status.startswith(("REQUESTED", "CANCELING", "COMPLETING", "FAILING")):
            return str(status)
        time.sleep(0.5)  # between two looks
    raise TimeoutError(status)


def test_a_backfill_of_twenty_partitions_with_one_failing_and_then_of_that_one(
    tmp_path: Path, fake: FakeModel, settings: dict[str, str]
) -> None:
    cgrag = cgrag_in(tmp_path / "home")
    cgrag("run", "--corpus", str(write_tree(tmp_path / "tree", FILES)), "--select", "corpus_files,chunks", **settings)
    fake.act = lambda text: {"status": 400} if "Thing1d07" in text else None
    with ui_of(tmp_path / "home", **settings) as url, page_of(url) as page:
        assert backfill(url, KEYS).endswith("FAILED")
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
        assert backfill(url, ["d07"]).endswith("SUCCESS")
        assert fake.requests == len(FILES) + 1
        page.goto("/assets/extractions?view=partitions")
        page.get_by_text("Materialized (20)").wait_for()
        assert "Failed (0)" in page.inner_text("body")
