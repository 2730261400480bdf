"""A failed partition of `extractions` in the UI: red until it has been resumed."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.conftest import PROJECT, cgrag_in, stop_group
from tests.extraction import docs
from tests.fake_model import MODEL, FakeModel
from tests.support import write_tree

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
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
    from playwright.sync_api import sync_playwright

    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [str(Path(sys.executable).parent / "cgrag"), "ui", "--port", str(port)]
    environment = os.environ | settings | {"CGRAG_HOME": str(tmp_path / "home"), "DAGSTER_HOME": str(PROJECT)}
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        assert process.stdout is not None
        if not any("Serving dagster-webserver" in line for line in process.stdout):
            pytest.fail("cgrag ui ended before it served")
        flags = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        try:
            with sync_playwright() as playwright:
                browser = playwright.chromium.launch(executable_path=CHROMIUM, args=flags)
                page = browser.new_page(base_url=f"http://127.0.0.1:{port}", viewport={"width": 1500, "height": 620})
                page.set_default_timeout(60_000)
                yield page
                browser.close()
        finally:
            stop_group(process)


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
