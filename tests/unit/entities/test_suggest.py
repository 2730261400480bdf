"""Suggestions on graphs of what a scripted model said."""

import json

import pytest

from pipelines.entities.decide import accept, reject
from pipelines.entities.suggest import suggest
from pipelines.errors import CgragError
from tests.embedding import FakeEncoder
from tests.extraction import Extracted
from tests.fake_model import FakeModel
from tests.support import case

FILES = {
    "a.md": "# One\n\nThe Key Value Cache of the GPU feeds the Kernel.\n",
    "b.md": "# Two\n\nThe key-value cache and GPUs. The run_engine name, the Kernel.\n",
    "core.py": "class A:\n    def RunEngine(self): pass\n\n\nclass B:\n    def RunEngine(self): pass\n",
}
SAID = {
    "# One": [["Key Value Cache", "Concept", ["RELATES_TO", "Kernel"]], ["GPU", "Entity"], ["Kernel", "Concept"]],
    "# Two": [
        ["key-value cache", "Concept", ["RELATES_TO", "Kernel"]], ["GPUs", "Entity"], ["run_engine", "Function"],
        ["Kernel", "Concept"],
    ],
}  # fmt: skip


@pytest.fixture
def corpus(tmp_path):
    with FakeModel(lambda text: {"content": next((a for m, a in SAID.items() if m in text), [])}) as model:
        corpus = Extracted(tmp_path, FILES, model.url)
        corpus.run()
        corpus.home.build_graph()
        yield corpus


@pytest.fixture
def settings(corpus):
    return corpus.home.settings


def pairs(found):
    return {(row.a["id"], row.b["id"]) for row in found.suggestions}


CACHES = ("name:key value cache", "name:key-value cache")
GPUS = ("name:gpu", "name:gpus")
RUNS = {("core.py::A.RunEngine", "name:run_engine"), ("core.py::B.RunEngine", "name:run_engine")}


def test_names_alike_are_suggested_with_their_evidence(settings):
    found = suggest(settings, 20, FakeEncoder)
    assert pairs(found) == {CACHES, GPUS, *RUNS}
    assert found.note == ""
    first = found.suggestions[0]
    assert (first.a["id"], first.b["id"]) == CACHES
    assert first.evidence["spelling"] == {"same_key": True, "meanings": 1}
    assert first.evidence["neighbours"] == {"both": 1, "of": 1, "shared": ["name:kernel"]}
    assert first.a["place"] == {"path": "a.md", "start_line": 3}
    assert 0.5 < first.evidence["embedding"]["cosine"] <= 1
    run = next(row for row in found.suggestions if row.b["id"] == "name:run_engine")
    assert run.evidence["spelling"] == {"same_key": True, "meanings": 2}
    assert run.a["place"] == {"path": "core.py", "start_line": 2}
    assert [row.score for row in found.suggestions] == sorted((row.score for row in found.suggestions), reverse=True)
    json.dumps(found.suggestions[0].evidence)


def test_the_first_k_are_the_first_of_more(settings):
    assert suggest(settings, 2, FakeEncoder).suggestions == suggest(settings, 9, FakeEncoder).suggestions[:2]


def test_without_an_encoder_they_are_scored_without_vectors_and_it_says_so(settings):
    found = suggest(settings, 20, None)
    assert pairs(found) == {CACHES, GPUS, *RUNS}
    assert "without vectors" in found.note
    assert all("embedding" not in row.parts for row in found.suggestions)

    def broken():
        raise CgragError("The model is gone.")

    assert suggest(settings, 20, broken).note.startswith("The model is gone.; scored without vectors")


def test_what_is_decided_is_not_suggested_again(settings, corpus):
    reject(settings, *GPUS)
    accept(settings, "run_engine", "core.py::A.RunEngine")  # so that the other symbol cannot be meant, too
    assert pairs(suggest(settings, 20, None)) == {CACHES}
    corpus.home.build_graph()
    assert pairs(suggest(settings, 20, None)) == {CACHES}
    reject(settings, "run_engine", "core.py::A.RunEngine")
    corpus.home.build_graph()
    assert pairs(suggest(settings, 20, None)) == {CACHES, ("core.py::B.RunEngine", "name:run_engine")}


def test_an_abbreviation_that_a_text_explains_is_suggested_with_its_place(tree, home):
    (tree / "a.md").write_text("# One\n\nUse Expert Parallel Load Balancer (EPLB) here.\n")
    home.build(tree)
    (row,) = suggest(home.settings, 5, FakeEncoder).suggestions
    assert {row.a["id"], row.b["id"]} == {"name:eplb", "name:expert parallel load balancer"}
    assert row.evidence["abbreviation"] == {"path": "a.md", "start_line": 3}
    assert row.score > 0.8


def test_a_graph_without_names_gives_none_and_no_graph_says_what_to_do(tree, home):
    with pytest.raises(CgragError, match="cgrag run"):
        suggest(home.settings, 5, None)
    home.build(tree)
    assert suggest(home.settings, 5, None).suggestions == []


def test_e01_no_language_is_suggested_as_another(tmp_path):
    said = json.loads((case("e01").folder / "extract.json").read_text())
    (tmp_path / "taxonomy.toml").write_text(
        'version = "1"\ntypes = [{ name = "Technology", definition = "a technology" }]\n'
        'relations = [{ name = "USES", definition = "uses" }]\n'
    )
    act = {f"# {path}": answer for path, answer in said.items()}
    with FakeModel(lambda text: {"content": next((a for mark, a in act.items() if mark in text), [])}) as model:
        case("e01").copy_to(tmp_path / "tree")
        corpus = Extracted(tmp_path, {}, model.url, taxonomy=tmp_path / "taxonomy.toml", policy="hybrid")
        corpus.run()
        corpus.home.build_graph()
        found = pairs(suggest(corpus.home.settings, 99, FakeEncoder))
    assert found == {("name:node.js", "name:nodejs"), ("name:load_user", "name:loaduser")}


def test_the_command_prints_evidence_and_what_to_type(settings, cli, monkeypatch):
    monkeypatch.setattr("pipelines.dense.encoder.is_installed", lambda: False)
    done = cli("entities", "suggest", "--k", "1")
    assert "name:key value cache  =  name:key-value cache" in done.out
    assert "same key" in done.out
    assert "a.md:3" in done.out
    assert "without vectors" in done.out
    assert "cgrag entities accept 'name:key value cache' 'name:key-value cache'" in done.out
    document = cli("entities", "suggest", "--k", "2", "--json").json
    assert len(document["suggestions"]) == 2
    assert document["names"] == 6
