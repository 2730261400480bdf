"""The overview of communities: levels, sizes, and what crosses between them."""

from dataclasses import dataclass, field

from pipelines.picture.communities import overview, write_overview
from pipelines.settings import Settings
from tests.graphs import WrittenHome, edge, entity


@dataclass(frozen=True)
class Row:
    id: str
    level: int
    parent: str
    members: list[str]
    name: str = ""
    central: list[str] = field(default_factory=list)
    words: list[str] = field(default_factory=list)
    summary: str = ""

    @property
    def size(self) -> int:
        return len(self.members)


ROWS = [
    Row("b", 0, "", ["e", "f"], "lora"),
    Row("a", 0, "", ["x", "y", "z"], "attention", ["x"], ["flash"], "Attention is computed here."),
    Row("a1", 1, "a", ["x", "y"], "backends"),
    Row("a2", 1, "a", ["z"], "ops"),
    Row("b1", 1, "b", ["e", "f"], "lora"),
]
EDGES = [("x", "y", 5.0), ("x", "e", 2.0), ("f", "z", 1.0), ("y", "z", 4.0), ("x", "elsewhere", 9.0)]


def test_a_view_for_each_level_the_largest_first_with_what_crosses():
    top, parts = overview(ROWS, EDGES)
    assert (top.name, parts.name) == ("level 0", "level 1")
    assert [(node.id, node.size) for node in top.nodes] == [("a", 3), ("b", 2)]
    assert [(line.source, line.target, line.weight) for line in top.lines] == [("a", "b", 3)]
    assert [(line.source, line.target, line.weight) for line in parts.lines] == [
        ("a1", "a2", 4), ("a1", "b1", 2), ("a2", "b1", 1),
    ]  # fmt: skip
    assert not any(line.arrow for line in top.lines)


def test_a_part_has_the_colour_of_its_whole_and_says_what_it_is_part_of():
    top, parts = overview(ROWS, EDGES)
    assert {node.id: node.kind for node in parts.nodes} == {"a1": "attention", "a2": "attention", "b1": "lora"}
    assert parts.nodes[0].lines[:2] == ["backends: 2 members", "part of attention"]
    assert top.nodes[0].lines == [
        "attention: 3 members", "words: flash", "", "Attention is computed here.", "", "x",
    ]  # fmt: skip


def test_of_many_communities_the_largest_are_shown_and_it_says_so():
    rows = [Row(f"c{number:03}", 0, "", [f"m{number}"] * (1 + number), f"c{number}") for number in range(250)]
    (view,) = overview(rows, [(f"m{number}", f"m{number + 1}", 1.0) for number in range(249)])
    assert len(view.nodes) == 60
    assert min(node.size for node in view.nodes) == 191
    assert view.note == "The largest 60 of 250 communities, 59 of 249 links between communities, the heaviest."
    assert {node.kind for node in view.nodes} == {*(f"c{number}" for number in range(240, 250)), "others"}


def test_no_communities_are_an_empty_picture():
    (view,) = overview([], [])
    assert (view.nodes, view.note) == ([], "There are no communities.")


def test_an_overview_is_written_with_the_edges_that_searches_follow(tmp_path):
    rows = [entity(id, id) for id in ("x", "y", "z", "e", "f")]
    WrittenHome(tmp_path / "home").write(
        rows, [edge("x", "CALLS", "e", weight=2), edge("f", "RELATES_TO", "z", "llm", weight=7)]
    )
    views = write_overview(Settings(home=tmp_path / "home"), ROWS, tmp_path / "c.html")
    assert [(line.source, line.target, line.weight) for line in views[0].lines] == [("a", "b", 2)]
    assert "attention: 3 members" in (tmp_path / "c.html").read_text()
