"""The Dagster UI in a real browser, as `cgrag ui` serves it."""

import os
import re
from pathlib import Path

import pytest

from pipelines.state import EVERY
from tests.e2e.conftest import CHROMIUM, PROJECT, page_of, ui_of

PICTURES = os.environ.get("CGRAG_TEST_PICTURES")  # a folder: the pictures of the README are made by this test
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def page(vllm_home: Path):
    """A page of a headless Chromium at `cgrag ui` on the default corpus."""
    with ui_of(vllm_home) as url, page_of(url) as page:
        yield page


def _drawn(name: str) -> re.Pattern[str]:
    """A name as the page draws it: the middle of a long one is left out."""
    return re.compile(rf"^(?:{name}|{name[:5]}\w*…\w*{name[-5:]})$")


def test_the_asset_graph_shows_every_asset(page) -> None:
    from playwright.sync_api import expect

    groups = ",".join(f"global@global:{group}" for group in ("corpus", "retrieval", "graph", "eval"))
    page.set_viewport_size({"width": 1500, "height": 820})  # all of it fits
    page.goto(f"/asset-groups?expanded={groups}", wait_until="networkidle")
    for name in ("directory_contents", *EVERY):
        expect(page.get_by_text(_drawn(name)).first).to_be_attached()
    page.wait_for_load_state("networkidle")
    if PICTURES:
        page.screenshot(path=str(PROJECT / PICTURES / "lineage.png"), animations="disabled")


def test_the_partitions_of_chunks_are_counted(page, vllm) -> None:
    import json

    partitions = json.loads(vllm("status", "--json").stdout)["partitions"]
    page.goto("/assets/chunks?view=partitions")
    page.get_by_text(f"Materialized ({partitions})").wait_for()
    assert "Failed (0)" in page.inner_text("body")
    page.goto("/assets/chunks?view=partitions&partition=vllm%2Flora")
    page.get_by_text("chunks_preview").wait_for()
    if PICTURES:
        page.screenshot(path=str(PROJECT / PICTURES / "partitions.png"), animations="disabled")


def test_an_asset_can_be_materialized_from_the_page(page) -> None:
    page.goto("/assets/bm25_index")
    with page.expect_response(_is_launch) as launched:
        page.get_by_text("Materialize", exact=True).click()
    run = re.search(r'"run":{"id":"([0-9a-f-]+)"', launched.value.text())
    assert run, launched.value.text()[:500]
    page.goto(f"/runs/{run[1]}")
    page.get_by_text("Success", exact=True).first.wait_for()
    page.goto("/assets/bm25_index?view=checks")
    page.get_by_text("index_has_every_chunk").first.wait_for()


def _is_launch(response) -> bool:
    return "/graphql" in response.url and "mutation Launch" in (response.request.post_data or "")
