"""The Dagster UI in a real browser, as `cgrag ui` serves it."""

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from pipelines.state import ASSETS, ON_REQUEST
from tests.e2e.conftest import PROJECT, stop_group

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PICTURES = os.environ.get("CGRAG_TEST_PICTURES")  # a folder: the pictures of the README are made by this test
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def ui(vllm_home: Path) -> Iterator[str]:
    """The address of `cgrag ui` on the default corpus; it has said that it serves."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "cgrag"), "ui", "--port", str(port)]
    environment = os.environ | {"CGRAG_HOME": str(vllm_home), "DAGSTER_HOME": str(PROJECT)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if "Serving dagster-webserver" in line:
                break
        else:
            pytest.fail("cgrag ui ended before it served")
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            stop_group(process)


@pytest.fixture(scope="module")
def page(ui: str):
    """A page of a headless Chromium at the UI."""
    from playwright.sync_api import sync_playwright

    flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
        page = browser.new_page(base_url=ui, viewport={"width": 1500, "height": 620})
        page.set_default_timeout(60_000)
        yield page
        browser.close()


def test_the_asset_graph_shows_every_asset(page) -> None:
    from playwright.sync_api import expect

    groups = ",".join(f"global@global:{group}" for group in ("corpus", "retrieval", "graph", "eval"))
    page.goto(f"/asset-groups?expanded={groups}", wait_until="networkidle")
    for name in ("directory_contents", *ASSETS, *ON_REQUEST):
        expect(page.get_by_text(name, exact=True).first).to_be_attached()
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
