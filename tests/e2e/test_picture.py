"""`cgrag graph --html` as a browser shows it: offline, whole, and with nothing run that a name would like to run."""

from pathlib import Path

import pytest

from tests.e2e.conftest import CHROMIUM, cgrag_in, page_of
from tests.graphs import WrittenHome, edge, entity

HUB = "a.py::<img src=x onerror=alert(1)></script><script>alert(2)</script>\"'&"
pytestmark = [
    pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this machine"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]


@pytest.fixture(scope="module")
def file(tmp_path_factory) -> Path:
    """The picture of a hub with 199 others around it."""
    folder = tmp_path_factory.mktemp("picture")
    others = [f"pkg/m{number % 9}.py::Class{number}.method_of_a_long_name_{number}" for number in range(199)]
    rows = [entity(HUB, HUB[6:]), *(entity(id, id.partition("::")[2], path=id.partition("::")[0]) for id in others)]
    edges = [edge(id, "CALLS" if number % 3 else "IMPORTS", HUB, weight=3) for number, id in enumerate(others)]
    WrittenHome(folder / "home").write(rows, edges)
    path = folder / "hub.html"
    done = cgrag_in(folder / "home")("graph", HUB, "--html", str(path))
    assert "200 entities, 199 edges" in done.stderr
    return path


@pytest.fixture(scope="module")
def seen(file):
    """The page, with what it asked for, said and complained of."""
    with page_of("about:blank") as page:
        page.context.set_offline(True)
        told: dict[str, list[str]] = {"requests": [], "dialogs": [], "errors": []}
        page.on("request", lambda request: told["requests"].append(request.url))
        page.on("dialog", lambda dialog: (told["dialogs"].append(dialog.message), dialog.dismiss()))
        page.on("pageerror", lambda error: told["errors"].append(str(error)))
        page.on("console", lambda message: told["errors"].append(message.text))
        page.goto(file.as_uri())
        page.wait_for_selector("body[data-drawn='200']")
        yield page, told


def test_every_node_is_drawn_and_nothing_is_fetched_or_run(seen, file) -> None:
    page, told = seen
    assert told == {"requests": [file.as_uri()], "dialogs": [], "errors": []}
    assert page.locator("#list button").count() == 200
    assert page.inner_text("h1") == HUB
    coloured = page.evaluate(
        """() => { const canvas = document.querySelector("canvas");
        const bytes = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        let many = 0;
        for (let at = 3; at < bytes.length; at += 4) many += bytes[at] > 0;
        return many / (bytes.length / 4); }"""
    )
    assert 0.02 < coloured < 0.9


def test_a_name_is_found_and_told_with_its_edges_and_places(seen) -> None:
    page, told = seen
    page.fill("#search", "Class42.")
    assert page.locator("#list button").count() == 1
    page.press("#search", "Enter")
    words = page.inner_text("#told")
    assert "pkg/m6.py::Class42.method_of_a_long_name_42 IMPORTS" in words
    assert "a.py:3" in words
    assert told["errors"] == []


def test_the_legend_names_types_and_relations(seen) -> None:
    page, _ = seen
    assert page.locator("#legend li").all_inner_texts() == ["Function 200", "CALLS 132", "IMPORTS 67"]
