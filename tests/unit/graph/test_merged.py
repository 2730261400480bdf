"""A graph whose names people have said to be one: built, undone, and rebuilt."""

import pytest

from pipelines.entities.decide import accept, reject
from pipelines.errors import CgragError
from pipelines.graph.look_up import open_graph
from pipelines.graph.reviewed import read_decisions, reviewed_file
from pipelines.graph.store import graph_record
from pipelines.state import graph_counts
from tests.extraction import Extracted
from tests.fake_model import FakeModel

FILES = {
    "a.md": "# One\n\nThe GPU runs the Kernel.\n",
    "b.md": "# Two\n\nThe GPUs run the Kernel. The GPU has Memory.\n",
    "c.md": "# Three\n\nA GPU, some GPUs and a Graphics Card use Engine.\n",
    "core.py": "class Engine:\n    pass\n",
}
SAID = {
    "# One": [["GPU", "Entity", ["RELATES_TO", "Kernel"]], ["Kernel", "Concept"]],
    "# Two": [
        ["GPUs", "Concept", ["RELATES_TO", "Kernel"]], ["GPU", "Entity", ["RELATES_TO", "GPUs"]],
        ["Kernel", "Concept"],
    ],
    "# Three": [["GPUs", "Concept"], ["Graphics Card", "Concept", ["RELATES_TO", "GPUs"]], ["GPU", "Concept"]],
}  # fmt: skip


@pytest.fixture
def corpus(tmp_path):
    act = {mark: {"content": answer} for mark, answer in SAID.items()}
    with FakeModel(lambda text: next((a for mark, a in act.items() if mark in text), {"content": []})) as model:
        corpus = Extracted(tmp_path, FILES, model.url)
        corpus.run()
        corpus.home.build_graph()
        yield corpus


@pytest.fixture
def home(corpus):
    return corpus.home


def of(home, name):
    return {row["id"]: row for row in home.rows("entities")}.get(name)


def said_edges(home):
    return {
        (row["source"], row["target"]): row for row in home.rows("edges") if row["relation"] == "RELATES_TO"
    }  # fmt: skip


def test_mentions_types_and_evidence_of_an_accepted_pair_are_united(home):
    places = {(row["chunk_id"], row["start"], row["text"]) for row in home.rows("mentions")}
    before = said_edges(home)
    assert ("name:gpu", "name:gpus") in before
    assert of(home, "name:gpu")["types"] == ["Entity", "Concept"]
    assert accept(home.settings, "GPUs", "GPU", "GPU").decision.into == "name:gpu"
    assert home.state("knowledge_graph").state == "stale"
    home.build_graph()
    assert home.state("knowledge_graph").state == "fresh"
    assert of(home, "name:gpus") is None
    assert (of(home, "name:gpu")["name"], of(home, "name:gpu")["types"]) == ("GPU", ["Concept", "Entity"])
    assert {(row["chunk_id"], row["start"], row["text"]) for row in home.rows("mentions")} == places
    after = said_edges(home)
    assert after.keys() == {("name:gpu", "name:kernel"), ("name:graphics card", "name:gpu")}
    edge = after["name:gpu", "name:kernel"]
    assert edge["weight"] == 2
    assert [place["path"] for place in edge["evidence"]] == ["a.md", "b.md"]
    assert after["name:graphics card", "name:gpu"]["binding"] == "reviewed"


def test_a_name_is_still_found_after_it_is_one_with_another(home):
    accept(home.settings, "GPU", "GPUs", "GPU")
    accept(home.settings, "Kernel", "core.py::Engine")
    home.build_graph()
    graph = open_graph(home.settings)
    assert [entity.id for entity in graph.find("GPUs")] == ["name:gpu"]
    assert [entity.id for entity in graph.find("kernel")] == ["core.py::Engine"]


def test_what_goes_into_a_symbol_is_a_mention_of_the_symbol_and_changes_nothing_of_it(home):
    before = of(home, "core.py::Engine")
    accept(home.settings, "name:kernel", "core.py::Engine")
    home.build_graph()
    assert of(home, "core.py::Engine") == before
    assert of(home, "name:kernel") is None
    assert ("name:gpu", "core.py::Engine") in said_edges(home)
    assert "Kernel" in {row["text"] for row in home.rows("mentions") if row["entity"] == "core.py::Engine"}


def test_taking_a_pair_out_gives_the_rows_of_before(home):
    before = home.graph_hashes()
    accept(home.settings, "GPU", "GPUs")
    accept(home.settings, "Graphics Card", "GPU")
    home.build_graph()
    assert home.graph_hashes() != before
    assert {*graph_record(home.layout)["merged"].values()} == {"name:gpu"}
    reject(home.settings, "GPUs", "GPU")  # a name that the graph has no longer
    reject(home.settings, "Graphics Card", "GPU")
    home.build_graph()
    assert home.graph_hashes() == before
    assert [one.verdict for one in read_decisions(reviewed_file(home.settings))] == ["rejected", "rejected"]


def test_the_order_of_accepting_does_not_matter(home):
    found = []
    for pairs in ([("GPU", "GPUs"), ("GPUs", "Graphics Card")], [("GPUs", "Graphics Card"), ("GPU", "GPUs")]):
        for a, b in pairs:
            accept(home.settings, a, b, b)
        home.build_graph()
        found.append(home.graph_hashes())
        reviewed_file(home.settings).unlink()
        home.build_graph()
    assert found[0] == found[1]


def test_a_name_that_is_gone_is_kept_and_told(corpus, home):
    accept(home.settings, "Graphics Card", "GPU")
    home.build_graph()
    (corpus.root / "c.md").unlink()
    corpus.rebuild()
    corpus.run()
    home.build_graph()
    assert graph_counts(home.settings)["absent"] == ["name:graphics card"]
    assert graph_counts(home.settings)["merged"] == {}
    assert home.state("knowledge_graph").state == "fresh"
    (corpus.root / "c.md").write_text(FILES["c.md"])
    corpus.rebuild()
    corpus.run()
    home.build_graph()
    assert graph_counts(home.settings)["merged"] == {"name:graphics card": "name:gpu"}


def test_pairs_that_contradict_each_other_are_refused_and_nothing_is_written(home):
    accept(home.settings, "GPU", "GPUs", "GPUs")
    accept(home.settings, "GPUs", "Kernel", "Kernel")
    path = reviewed_file(home.settings)
    before = path.read_text()
    for words, problem in (
        (("Kernel", "GPU", "GPU"), "in a circle"),
        (("core.py", "core.py::Engine"), "two different symbols"),
        (("GPU", "gpu"), "Both names mean name:gpu"),
        (("GPU", "Nonsense"), "The graph has no 'Nonsense'. Near names"),
        (("GPU", "core.py::Engine", "GPU"), "do not go into name:gpu"),
    ):
        with pytest.raises(CgragError, match=problem):
            accept(home.settings, *words)
    with pytest.raises(CgragError, match="rejects name:gpu and name:kernel, and accepts them through others"):
        reject(home.settings, "GPU", "Kernel")
    assert path.read_text() == before


def test_a_file_that_cannot_be_read_makes_the_graph_stale_and_is_named(home):
    path = reviewed_file(home.settings)
    path.write_text("nonsense\n")
    state = home.state("knowledge_graph")
    assert (state.state, f"{path}:1" in state.detail) == ("stale", True)
    with pytest.raises(CgragError, match=r"entities.jsonl:1 is no decision"):
        home.build_graph()


def test_the_file_is_where_the_setting_says(home, tmp_path):
    settings = home.settings.model_copy(update={"reviewed": tmp_path / "git" / "names.jsonl"})
    accept(settings, "GPU", "GPUs")
    assert not reviewed_file(home.settings).exists()
    assert '"accepted"' in (tmp_path / "git" / "names.jsonl").read_text()


def test_the_command_tells_what_is_written_and_what_follows(home, cli):
    done = cli("entities", "accept", "gpus", "GPU", "--into", "gpu")
    assert "name:gpu and name:gpus are one: name:gpu" in done.out
    assert "cgrag run --select knowledge_graph" in done.err
    done = cli("entities", "reject", "gpus", "GPU", "--json")
    assert done.json["verdict"] == "rejected"
    assert done.json["before"] == "accepted"
    done = cli("entities", "reject", "gpus", "Nobody")
    assert (done.code, "Near names" in done.err) == (1, True)
