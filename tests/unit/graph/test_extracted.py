"""What a model said as a part of the graph: which names mean a symbol, and what no search sees."""

import pytest

from pipelines.code.link import Site
from pipelines.graph.admission import KNOWN
from pipelines.graph.extracted import Binder
from pipelines.graph.look_up import open_graph
from pipelines.graph.names import name_id
from tests.extraction import Extracted
from tests.fake_model import FakeModel

ENTITIES = {
    "pkg/core.py": {"type": "Module"},
    "pkg/core.py::Engine": {"type": "Class"},
    "pkg/core.py::Engine.load_all": {"type": "Function"},
    "pkg/more.py": {"type": "Module"},
    "pkg/more.py::Other.load_all": {"type": "Function"},
    "pkg/more.py::platform": {"type": "Function"},
    "pkg/more.py::run_it": {"type": "Function"},
    "pkg/more.py::setup": {"type": "Function"},
    "setup.py": {"type": "Module"},
    "docs/use.md": {"type": "Concept"},
    "docs/use.md::Use": {"type": "Concept"},
}
IMPORTS = [
    Site("use.py", "IMPORTS", "pkg/core.py", "import", "use.py", 1, 0, 1),
    Site("use.py", "IMPORTS", "pkg/core.py::Engine.load_all", "import", "use.py", 1, 0, 1),
]
BINDER = Binder(ENTITIES, IMPORTS)


@pytest.mark.parametrize(
    ("name", "path", "means"),
    [
        ("pkg/core.py::Engine", "a.md", ("pkg/core.py::Engine", "qualified")),
        ("pkg.core.Engine", "a.md", ("pkg/core.py::Engine", "qualified")),
        ("docs/use.md", "a.md", ("docs/use.md", "qualified")),
        ("Engine.load_all", "a.md", ("pkg/core.py::Engine.load_all", "unique")),
        ("load_all", "a.md", ("name:load_all", "name")),
        ("load_all", "pkg/more.py", ("pkg/more.py::Other.load_all", "local")),
        ("load_all", "use.py", ("pkg/core.py::Engine.load_all", "import")),
        ("run_it", "a.md", ("pkg/more.py::run_it", "unique")),
        ("use.md", "a.md", ("docs/use.md", "unique")),
        ("platform", "a.md", ("name:platform", "name")),
        ("setup", "a.md", ("name:setup", "name")),
        ("setup", "pkg/more.py", ("pkg/more.py::setup", "local")),
        ("core", "use.py", ("pkg/core.py", "import")),
        ("py", "use.py", ("name:py", "name")),
        ("engine", "a.md", ("name:engine", "name")),
        ("Use", "a.md", ("name:use", "name")),
    ],
)
def test_a_name_means_a_symbol_by_a_certain_rule_or_stays_a_name(name, path, means):
    assert BINDER.bind(name, path) == means


def test_the_id_of_a_name_keeps_what_tells_names_apart():
    assert name_id("  ＡＢ") == name_id("ab") == "name:ab"
    assert len({name_id(name) for name in ("C", "C++", "C#", "tokenizer_group", "TokenizerGroup")}) == 5


FILES = {
    "core.py": "class Engine:\n    def load_all(self):\n        return run_it()\n\n\ndef run_it():\n    return 1\n",
    "use.md": "# Guide\n\nThe Engine class uses run_it, as Paged Attention does. See tools/setup.sh.\n",
    "tools/setup.sh": "echo\n",
}
SAID = [
    ["Guide", "Concept"],
    ["Engine", "Class", ["CALLS", "run_it"], ["RELATES_TO", "Paged Attention"]],
    ["run_it", "Function", ["RELATES_TO", "Engine"]],
    ["Paged Attention", "Concept", ["REFERENCES", "run_it"]],
    ["tools/setup.sh", "Module"],
]


@pytest.fixture
def built(tmp_path):
    with FakeModel(lambda text: {"content": SAID}) as model:
        corpus = Extracted(tmp_path, FILES, model.url, policy="hybrid")
        before = {name: corpus.home.rows(name) for name in ("entities", "edges", "mentions")}
        assert corpus.run() == {}
        corpus.home.build_graph()
        yield corpus.home, before


def test_what_is_known_without_a_model_stays_as_it_was(built):
    home, before = built
    known = [row for row in home.rows("entities") if row["path"]]
    assert known == before["entities"]
    assert [row for row in home.rows("edges") if row["origin"] != "llm"] == before["edges"]
    assert [row for row in home.rows("mentions") if row["kind"] != "extraction"] == before["mentions"]


def test_names_and_edges_have_their_origin_and_binding(built):
    home, _ = built
    found = {(r["source"], r["relation"], r["target"]): r for r in home.rows("edges") if "llm" in r["origins"]}
    assert {key: row["binding"] for key, row in found.items()} == {
        ("name:engine", "CALLS", "core.py::run_it"): "name",
        ("name:engine", "RELATES_TO", "name:paged attention"): "name",
        ("core.py::run_it", "RELATES_TO", "name:engine"): "name",
        ("name:paged attention", "REFERENCES", "core.py::run_it"): "name",
    }
    row = found["name:paged attention", "REFERENCES", "core.py::run_it"]
    assert [(place["path"], place["start_line"]) for place in row["evidence"]] == [("use.md", 3)]
    named = {row["id"]: row for row in home.rows("entities") if not row["path"]}
    assert named["name:paged attention"]["name"] == "Paged Attention"
    assert named["name:paged attention"]["types"] == ["Concept"]


def test_no_search_sees_them_unless_all_origins_are_asked_for(built):
    home, _ = built
    walk, everything = open_graph(home.settings, KNOWN), open_graph(home.settings)
    assert [entity.id for entity in walk.find("Engine")] == ["core.py::Engine"]
    assert [entity.id for entity in everything.find("Engine")] == ["core.py::Engine", "name:engine"]
    assert walk.find("Paged Attention") == []
    assert "Paged Attention" not in walk.near("Paged Attentio")
    assert walk.find("tools/setup.sh") == walk.find("setup") == []
    assert {edge.origin for edge in walk.edges(["core.py::run_it"])} == {"parse"}
    assert {edge.origin for edge in everything.edges(["core.py::run_it"])} == {"parse", "llm", "rule"}


def test_the_command_shows_them_when_told(built, cli, monkeypatch):
    home, _ = built
    monkeypatch.setenv("CGRAG_HOME", str(home.settings.home))
    assert cli("graph", "paged attention").code == 1
    said = cli("graph", "paged attention", "--all-origins")
    assert "a name, no symbol" in said.out
    assert "REFERENCES → core.py::run_it" in said.out
    relations = cli("graph", "Engine", "--all-origins", "--relation", "relates_to", "--json").json["edges"]
    assert {edge["origin"] for edge in relations} == {"llm"}
