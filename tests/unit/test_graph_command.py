"""`cgrag graph`: names, relations, directions, hops, paths, and the JSON that scripts read."""

import json

import pytest

from pipelines.communities.stage import make_communities
from pipelines.settings import Settings
from tests.support import Home, write_tree

TREE = {
    "pkg/base.py": "class Base:\n    def run(self):\n        return helper()\n\n\ndef helper():\n    return LIMIT\n\n\n"
    "LIMIT = 3\n",
    "pkg/more.py": "from pkg.base import Base\n\n\nclass More(Base):\n    def go(self):\n        self.run()\n"
    "        self.run()\n",
    "pkg/other.py": "from pkg.more import More\n\n\nclass Other:\n    def run(self):\n        return More().go()\n",
    "docs/use.md": "# Use\n\nSee `pkg.base.helper`.\n",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory, clean_environment):
    folder = tmp_path_factory.mktemp("graph")
    home = Home(folder / "home")
    home.build(write_tree(folder / "tree", TREE))
    return home.settings.home


@pytest.fixture
def ask(filled, cli, monkeypatch):
    """The JSON of `cgrag graph` with these words."""
    monkeypatch.setenv("CGRAG_HOME", str(filled))

    def run(*words):
        said = cli("graph", *words, "--json")
        assert (said.code, said.err) == (0, "")
        return said.json

    return run


def matches(answer):
    return [row["id"] for row in answer["matches"]]


def triples(answer):
    return {(row["source"], row["relation"], row["target"]) for row in answer["edges"]}


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("pkg/base.py::Base.run", ["pkg/base.py::Base.run"]),
        ("Base.run", ["pkg/base.py::Base.run"]),
        ("Base.run()", ["pkg/base.py::Base.run"]),
        ("run", ["pkg/base.py::Base.run", "pkg/other.py::Other.run"]),
        ("helper", ["pkg/base.py::helper"]),
        ("HELPER", ["pkg/base.py::helper"]),
        ("pkg/base.py", ["pkg/base.py"]),
        ("base.py", ["pkg/base.py"]),
        ("docs/use.md", ["docs/use.md"]),
        ("docs/use.md::Use", ["docs/use.md::Use"]),
    ],
)
def test_names_that_are_found(ask, name, found):
    assert matches(ask(name)) == found


def test_all_relations_and_both_directions_unless_told(ask):
    assert triples(ask("helper")) == {
        ("pkg/base.py::helper", "DEFINED_IN", "pkg/base.py"),
        ("pkg/base.py::helper", "REFERENCES", "pkg/base.py::LIMIT"),
        ("pkg/base.py::Base.run", "CALLS", "pkg/base.py::helper"),
        ("docs/use.md::Use", "REFERENCES", "pkg/base.py::helper"),
    }


def test_edges_of_an_ambiguous_name_are_those_of_all_matches(ask):
    found = triples(ask("run", "--relation", "CALLS"))
    assert found == triples(ask("Base.run", "--relation", "CALLS")) | triples(ask("Other.run", "--relation", "CALLS"))


@pytest.mark.parametrize("relations", ["CALLS,DEFINED_IN", "calls, defined_in", "CALLS,,DEFINED_IN"])
def test_only_the_relations_that_are_asked_for(ask, relations):
    assert triples(ask("helper", "--relation", relations)) == {
        ("pkg/base.py::helper", "DEFINED_IN", "pkg/base.py"),
        ("pkg/base.py::Base.run", "CALLS", "pkg/base.py::helper"),
    }


def test_directions(ask):
    calls = ("--relation", "CALLS", "--direction")
    assert triples(ask("More.go", *calls, "out")) == {("pkg/more.py::More.go", "CALLS", "pkg/base.py::Base.run")}
    assert triples(ask("More.go", *calls, "in")) == {("pkg/other.py::Other.run", "CALLS", "pkg/more.py::More.go")}
    both = triples(ask("More.go", *calls, "in")) | triples(ask("More.go", *calls, "out"))
    assert triples(ask("More.go", *calls, "both")) == both


def test_hops(ask):
    answer = ask("Other.run", "--relation", "CALLS", "--direction", "out", "--hops", "3")
    assert {(row["target"], row["distance"]) for row in answer["edges"]} == {
        ("pkg/more.py::More", 1),
        ("pkg/more.py::More.go", 1),
        ("pkg/base.py::Base.run", 2),
        ("pkg/base.py::helper", 3),
    }


def test_paths(ask):
    answer = ask("Other.run", "--to", "helper", "--relation", "CALLS", "--direction", "out")
    assert matches(answer) == ["pkg/other.py::Other.run"]
    assert [(row["source"], row["target"], row["distance"]) for row in answer["edges"]] == [
        ("pkg/other.py::Other.run", "pkg/more.py::More.go", 1),
        ("pkg/more.py::More.go", "pkg/base.py::Base.run", 2),
        ("pkg/base.py::Base.run", "pkg/base.py::helper", 3),
    ]
    assert triples(ask("helper", "--to", "Other.run", "--relation", "CALLS", "--direction", "in")) == triples(answer)


def test_the_contract(ask):
    answer = ask("More.go", "--relation", "CALLS", "--direction", "out")
    assert set(answer) == {"matches", "edges"}
    (match,) = answer["matches"]
    assert match == {
        "id": "pkg/more.py::More.go", "type": "Function", "path": "pkg/more.py", "start_line": 5, "end_line": 7,
    }  # fmt: skip
    (edge,) = answer["edges"]
    places = edge.pop("evidence")
    assert edge == {
        "source": "pkg/more.py::More.go", "relation": "CALLS", "target": "pkg/base.py::Base.run", "origin": "parse",
        "binding": "self", "weight": 2, "distance": 1, "confidence": None,
    }  # fmt: skip
    assert [(place["path"], place["start_line"]) for place in places] == [("pkg/more.py", 6), ("pkg/more.py", 7)]
    (link,) = [row for row in ask("helper")["edges"] if row["source"] == "docs/use.md::Use"]
    assert (link["origin"], link["evidence"][0]["path"], link["evidence"][0]["start_line"]) == (
        "link",
        "docs/use.md",
        3,
    )


# what people read


@pytest.fixture
def said(filled, cli, monkeypatch):
    monkeypatch.setenv("CGRAG_HOME", str(filled))
    return lambda *words: cli("graph", *words)


def test_each_edge_has_its_file_and_line(said):
    lines = said("More.go", "--relation", "CALLS").out.splitlines()
    assert lines[0] == "Function pkg/more.py::More.go  pkg/more.py:5"
    assert "  CALLS → pkg/base.py::Base.run  pkg/more.py:6  ×2  self" in lines
    assert "  CALLS ← pkg/other.py::Other.run  pkg/other.py:6  typed" in lines
    assert len(lines) == 3


def test_matches_of_an_ambiguous_name_are_listed_first(said):
    out = said("run").out
    assert out.startswith(
        "Function pkg/base.py::Base.run  pkg/base.py:2\nFunction pkg/other.py::Other.run  pkg/other.py:5\n"
    )


def test_what_has_no_edge_of_a_kind_says_so(said):
    assert "No edges of this kind." in said("LIMIT", "--relation", "CALLS").out
    assert "No path to helper." in said("LIMIT", "--to", "helper", "--relation", "CALLS").out


@pytest.mark.parametrize("words", [["helpr"], ["helper", "--to", "helpr"], ["helpr", "--json"]])
def test_no_match_is_exit_1_with_near_names(said, words):
    answer = said(*words)
    assert (answer.code, answer.out) == (1, "")
    assert "'helpr'" in answer.err
    assert "helper" in answer.err.partition("Near names:")[2]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["--relation", "EATS"], "--relation"),
        (["--relation", "CALLS,EATS"], "EATS"),
        (["--direction", "up"], "--direction"),
        (["--hops", "0"], "--hops"),
        (["--hops", "7"], "--hops"),
    ],
)
def test_wrong_usage_is_exit_2(said, words, named):
    answer = said("helper", *words)
    assert (answer.code, answer.out) == (2, "")
    assert named in answer.err


def test_a_home_without_a_graph_names_the_command(cli):
    answer = cli("graph", "helper")
    assert (answer.code, answer.out) == (1, "")
    assert "cgrag run" in answer.err


def test_a_relation_of_the_taxonomy_that_no_edge_has_is_not_wrong_usage(tree, home, cli):
    home.build(write_tree(tree, {"a.py": "def f(): 1\n"}))
    answer = cli("graph", "f", "--relation", "INHERITS_FROM", "--json")
    assert (answer.code, json.loads(answer.out)["edges"]) == (0, [])


# pictures


def test_html_is_one_file_and_a_line_that_says_what_it_shows(filled, cli, monkeypatch, tmp_path):
    monkeypatch.setenv("CGRAG_HOME", str(filled))
    said = cli("graph", "helper", "--html", str(tmp_path / "helper.html"))
    assert (said.code, said.out) == (0, "")
    assert f"{tmp_path}/helper.html: 5 entities, 4 edges." in said.err
    page = (tmp_path / "helper.html").read_text()
    assert "pkg/base.py::Base.run CALLS pkg/base.py::helper" in page
    assert [file.name for file in tmp_path.glob("*.html")] == ["helper.html"]


def test_html_and_json_are_both_given(filled, cli, monkeypatch, tmp_path):
    monkeypatch.setenv("CGRAG_HOME", str(filled))
    said = cli("graph", "More.go", "--to", "helper", "--direction", "out", "--html", str(tmp_path / "x.html"), "--json")
    assert len(said.json["edges"]) == 2
    assert "3 entities, 2 edges" in said.err


def test_a_picture_that_cannot_be_written_says_where(filled, cli, monkeypatch, tmp_path):
    monkeypatch.setenv("CGRAG_HOME", str(filled))
    said = cli("graph", "helper", "--html", str(tmp_path / "none" / "x.html"))
    assert (said.code, "none/x.html cannot be written" in said.err) == (1, True)


def test_communities_are_drawn_without_a_name(filled, cli, monkeypatch, tmp_path):
    monkeypatch.setenv("CGRAG_HOME", str(filled))
    file = tmp_path / "communities.html"
    missing = cli("graph", "--communities", "--html", str(file))
    assert (missing.code, file.exists()) == (1, False)
    assert "cgrag run --select communities" in missing.err
    make_communities(Settings(home=filled))
    assert cli("graph", "--communities", "--html", str(file)).code == 0
    assert "vis" in file.read_text()
    for words in (("--communities",), ("Base", "--communities", "--html", str(file)), ()):
        assert cli("graph", *words).code == 2
