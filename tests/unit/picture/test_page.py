"""The page: one file, nothing fetched, and no name that becomes markup."""

import json
import re
from html.parser import HTMLParser

import pytest

from pipelines.errors import CgragError
from pipelines.picture.page import Line, Node, View, render, write_page

NASTY = [
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "\"'&amp;",
    "${hashes}",
    "\u2028\u2029\x00",
    "<img src=x>",
]


def page_of(*names: str) -> str:
    nodes = [Node(f"{name}{number}", name, name, 1, [name]) for number, name in enumerate(names)]
    lines = [Line(nodes[0].id, node.id, [node.kind], 1, [node.label]) for node in nodes[1:]]
    return render(names[0], [View("all", nodes, lines, names[0])])


class Tags(HTMLParser):
    """Every tag with its attributes, and the text of scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.tags and self.tags[-1][0] == "script":
            self.texts.append(data)


def parsed(page: str) -> Tags:
    tags = Tags()
    tags.feed(page)
    return tags


@pytest.mark.parametrize("name", NASTY)
def test_a_name_is_data_whatever_it_is(name):
    plain, nasty = parsed(page_of("A", "B")), parsed(page_of(name, "B"))
    assert [tag for tag, _ in nasty.tags] == [tag for tag, _ in plain.tags]
    data = page_of(name, "B").split('id="data">')[1].split("</script>")[0]
    assert json.loads(data)["views"][0]["nodes"][0]["label"] == name
    assert not set("<>&") & set(data)


def test_nothing_outside_the_file_is_named_and_the_policy_forbids_it():
    tags = parsed(page_of("A", "B"))
    (policy,) = [attrs["content"] for tag, attrs in tags.tags if attrs.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "http" not in policy
    assert not any({"src", "href", "srcset"} & attrs.keys() for _, attrs in tags.tags)
    assert "sourceMappingURL" not in page_of("A", "B")


def test_kinds_have_colours_the_most_frequent_first_and_a_given_one_stays():
    nodes = [Node("a", "a", "X", 1, []), Node("b", "b", "Y", 1, []), Node("c", "c", "Y", 1, [])]
    page = render("t", [View("all", nodes, [], colours={"X": "#123456"})])
    kinds = json.loads(page.split('id="data">')[1].split("</script>")[0])["views"][0]["kinds"]
    assert [(kind["kind"], kind["count"]) for kind in kinds] == [("Y", 2), ("X", 1)]
    assert kinds[1]["colour"] == "#123456"
    assert re.fullmatch("#[0-9a-f]{6}", kinds[0]["colour"])


def test_the_licence_of_the_library_comes_with_it():
    from pipelines.picture import page

    names = {file.name for file in page._HERE.glob("vis-network.*")}
    assert names == {"vis-network.min.js", "vis-network.LICENSE-MIT", "vis-network.LICENSE-APACHE-2.0"}


def test_a_file_that_cannot_be_written_is_named(tmp_path):
    with pytest.raises(CgragError, match=r"none.*x.html cannot be written"):
        write_page(tmp_path / "none" / "x.html", "t", [])
    with pytest.raises(CgragError, match="cannot be written"):
        write_page(tmp_path, "t", [])
