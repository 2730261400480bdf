"""Which origins are followed: by their measure, or by an override with a reason."""

import json
import re

import pytest
from pydantic import ValidationError

from pipelines.graph import admission
from pipelines.graph.admission import (
    EVIDENCE,
    KNOWN,
    Evidence,
    Precision,
    admitted,
    confidence,
    hidden_kinds,
    judge,
    read_evidence,
    verdicts,
    write_evidence,
)
from pipelines.graph.look_up import admitted_origins, open_graph
from pipelines.graph.store import graph_record
from tests.extraction import Extracted
from tests.fake_model import FakeModel
from tests.support import Home, write_tree

FILES = {
    "core.py": "class Engine:\n    def load_all(self):\n        return 1\n",
    "use.md": "# Guide\n\nThe `Engine` is used with Paged Attention.\n",
}
SAID = [["Engine", "Class", ["RELATES_TO", "Paged Attention"]], ["Paged Attention", "Concept"]]


def precision(right, found):
    return Precision(right=right, found=found, value=right / found, low=0, high=1)


def evidence(right, found=100, together=10, recipe="rule"):
    labels = {"REFERENCES": precision(right, found)}
    return Evidence(
        recipe=recipe,
        annotations="a",
        edges=precision(right, found),
        labels=labels,
        cooccurrence=precision(together, 100),
    )


@pytest.mark.parametrize(
    ("measured", "is_admitted", "why"),
    [
        (evidence(70), True, r"precision \.70"),
        (evidence(69), False, "below 0.70"),
        (evidence(80, together=80), False, "no better than co-occurrence"),
        (evidence(81, together=80), True, "precision"),
        (None, False, "cgrag evaluate-extraction"),
    ],
)
def test_a_recipe_is_admitted_by_its_measure(measured, is_admitted, why):
    verdict = judge("rule", "rule", measured)
    assert verdict.admitted == is_admitted
    assert re.search(why, verdict.why)


def test_an_override_admits_and_is_recorded():
    verdict = judge("llm", "m", evidence(10, recipe="m"), "we looked at 50 of them")
    assert verdict.admitted and verdict.override == "we looked at 50 of them" and "below" in verdict.why
    assert judge("llm", "m", evidence(90, recipe="m"), "idle").why == judge("llm", "m", evidence(90, recipe="m")).why


def test_evidence_of_another_recipe_or_measure_counts_for_nothing(tmp_path, monkeypatch):
    file = tmp_path / "e.json"
    write_evidence(file, evidence(90))
    assert read_evidence(file, "rule") == evidence(90)
    assert read_evidence(file, "other") is None
    monkeypatch.setattr(admission, "RULES_VERSION", 99)
    assert read_evidence(file, "rule") is None
    file.write_text("{")
    assert read_evidence(file, "rule") is read_evidence(tmp_path / "none", "rule") is None


def test_what_was_measured_of_a_model_does_not_depend_on_the_rules(tmp_path, monkeypatch):
    write_evidence(tmp_path / "m.json", evidence(90, recipe="m"))
    monkeypatch.setattr(admission, "RULES_VERSION", 99)
    assert read_evidence(tmp_path / "m.json", "m")
    monkeypatch.setattr(admission, "VERSION", 99)
    assert read_evidence(tmp_path / "m.json", "m") is None


@pytest.mark.parametrize("name", ["rule", "cooccurrence"])
def test_the_product_brings_evidence_of_its_rules_as_they_are(name):
    found = read_evidence(EVIDENCE / f"{name}.json", name)
    assert found is not None, "the rules have changed: measure them anew with  python -m tests.bench.evidence"


def test_a_graph_without_a_manifest_follows_what_is_known():
    assert admitted(None) == admitted({}) == KNOWN
    assert confidence(None, "rule", "REFERENCES") is None
    assert hidden_kinds(KNOWN) == ["rule", "extraction"]


def shipped(folder, monkeypatch, **right):
    """Let the product have brought this evidence."""
    for name, number in right.items():
        write_evidence(folder / f"{name}.json", evidence(number, recipe=name))
    monkeypatch.setattr(admission, "EVIDENCE", folder)


def test_the_manifest_says_what_is_followed_and_why(tmp_path, monkeypatch):
    shipped(tmp_path / "evidence", monkeypatch, rule=85, cooccurrence=40)
    home = Home(tmp_path / "home")
    home.build(write_tree(tmp_path / "tree", FILES))
    record = graph_record(home.layout)
    assert admitted_origins(home.settings) == ("parse", "link", "rule")
    assert confidence(record, "rule", "REFERENCES") == 0.85
    assert "below" in record["admission"]["cooccurrence"]["why"]
    generation = record["generation"]
    shipped(tmp_path / "evidence", monkeypatch, rule=30)
    assert home.state("knowledge_graph").state == "stale"
    home.build_graph()
    assert admitted_origins(home.settings) == KNOWN
    assert graph_record(home.layout)["generation"] == generation
    walk = open_graph(home.settings, admitted_origins(home.settings))
    assert not walk.edges(["use.md::Guide"], ["REFERENCES"])


def test_a_model_that_has_earned_it_is_followed(tmp_path, monkeypatch):
    shipped(tmp_path / "evidence", monkeypatch, rule=30, cooccurrence=30)
    with FakeModel(lambda text: {"content": SAID}) as model:
        corpus = Extracted(tmp_path, FILES, model.url, policy="hybrid")
        assert corpus.run() == {}
        corpus.home.build_graph()
        home, recipe = corpus.home, corpus.recipe.id
    seen = open_graph(home.settings, admitted_origins(home.settings))
    assert seen.find("Paged Attention") == [] and "Paged Attention" not in seen.near("Paged Attentio")
    write_evidence(home.layout.evidence(recipe), evidence(90, recipe=recipe))
    assert home.state("knowledge_graph").state == "stale"
    home.build_graph()
    assert verdicts(home.settings, recipe)["llm"].admitted
    seen = open_graph(home.settings, admitted_origins(home.settings))
    assert [found.id for found in seen.find("Paged Attention")] == ["name:paged attention"]
    assert "Paged Attention" in seen.near("Paged Attentio")
    assert {edge.origin for edge in seen.edges(["name:paged attention"])} == {"llm"}
    assert seen.chunks(["name:paged attention"], hops=0)


def test_a_setting_admits_with_a_reason(tmp_path, monkeypatch):
    shipped(tmp_path / "evidence", monkeypatch, rule=30, cooccurrence=30)
    monkeypatch.setenv("CGRAG_ADMIT", json.dumps({"rule": "good enough for us"}))
    home = Home(tmp_path / "home")
    home.build(write_tree(tmp_path / "tree", FILES))
    assert "rule" in admitted_origins(home.settings)
    assert graph_record(home.layout)["admission"]["rule"]["override"] == "good enough for us"


def test_evidence_is_a_closed_form():
    with pytest.raises(ValidationError):
        Evidence.model_validate(evidence(1).model_dump() | {"more": 1})
