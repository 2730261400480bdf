"""Which entities and edges a picture shows, and what it says of them."""

from pathlib import Path

import pytest

from pipelines.graph.look_up import open_graph
from pipelines.picture.neighbourhood import neighbourhood
from pipelines.settings import Settings
from tests.graphs import WrittenHome, edge, entity, mention

STAR = [f"a.py::f{number:03}" for number in range(300)]


@pytest.fixture
def walk(tmp_path: Path):
    def opened(entities, edges, mentions=()):
        WrittenHome(tmp_path).write(entities, edges, list(mentions))
        return open_graph(Settings(home=tmp_path))

    return opened


def picture(graph, name, hops=1):
    matches = graph.find(name)
    return neighbourhood(graph, matches, graph.edges([match.id for match in matches], hops=hops))


def test_a_star_of_three_hundred_is_cut_to_the_heaviest_and_says_so(walk):
    rows = [entity("a.py::hub", "hub"), *(entity(id, id[6:]) for id in STAR)]
    edges = [edge(id, "CALLS", "a.py::hub", weight=1 + number % 7) for number, id in enumerate(STAR)]
    view = picture(walk(rows, edges), "hub")
    assert len(view.nodes) == 200
    assert view.nodes[0].start and view.nodes[0].size == 199
    shown = {line.source for line in view.lines}
    weights = {row["source"]: row["weight"] for row in edges}
    assert min(weights[id] for id in shown) >= max(weights[id] for id in STAR if id not in shown)
    assert view.note.startswith("The nearest 200 of 301 entities")


def test_what_is_nearer_comes_first(walk):
    rows = [entity(id, id) for id in "abc"]
    view = picture(walk(rows, [edge("a", "CALLS", "b"), edge("b", "CALLS", "c", weight=9)]), "a", hops=2)
    assert [node.id for node in view.nodes] == ["a", "b", "c"]
    assert view.note == "3 entities, 2 edges."


def test_edges_between_two_are_one_line_that_tells_of_each_with_its_places(walk):
    rows = [entity("a", "a"), entity("b", "b", "Class")]
    view = picture(walk(rows, [edge("a", "CALLS", "b", weight=3), edge("a", "REFERENCES", "b")]), "a")
    (line,) = view.lines
    assert (line.kinds, line.weight) == (["CALLS", "REFERENCES"], 4)
    assert line.lines == [
        "a CALLS b", "  parse, local ×3", "  a.py:1", "  a.py:2", "  a.py:3",
        "a REFERENCES b", "  parse, local", "  a.py:1",
    ]  # fmt: skip


def test_an_entity_is_called_by_its_own_name_and_told_with_its_place(walk):
    rows = [
        entity("pkg/__init__.py", "pkg/__init__.py", "Module", "pkg/__init__.py"),
        entity("pkg/x.py::A.f", "A.f", path="pkg/x.py"),
        entity("name:gpu", "GPU", "Concept", ""),
    ]
    edges = [edge("pkg/x.py::A.f", "DEFINED_IN", "pkg/__init__.py"), edge("name:gpu", "RELATES_TO", "pkg/x.py::A.f")]
    view = picture(walk(rows, edges, [mention("name:gpu", "c0")]), "A.f")
    assert {(node.label, node.kind, *node.lines) for node in view.nodes} == {
        ("A.f", "Function", "Function pkg/x.py::A.f", "pkg/x.py:1"),
        ("pkg/__init__.py", "Module", "Module pkg/__init__.py", "pkg/__init__.py:1"),
        ("GPU", "Concept", "Concept name:gpu", "a name, no symbol"),
    }


def test_an_entity_without_edges_is_a_picture_of_it_alone(walk):
    view = picture(walk([entity("a", "a")], []), "a")
    assert ([node.id for node in view.nodes], view.lines) == (["a"], [])
