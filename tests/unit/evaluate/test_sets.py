"""The files of question sets and reports: when they are stale, and what the last report is."""

import json

import pytest

from pipelines.corpus.scan import load_plan
from pipelines.errors import CgragError
from pipelines.evaluate.sets import KS, changes_of_report, make_report, make_sets, stored_report
from pipelines.settings import FieldSettings, LexicalSettings
from pipelines.state import asset_states, chunk_fingerprints
from tests.support import Home, write_tree
from tests.unit.evaluate.conftest import FILES


@pytest.fixture
def built(home, tree):
    home.build(write_tree(tree, FILES))
    return home


def make(home: Home):
    sets = make_sets(home.settings, chunk_fingerprints(home.layout, load_plan(home.layout)))
    return sets, make_report(home.settings)


def states(home: Home) -> dict[str, str]:
    names = ("question_sets", "retrieval_report")
    return {state.name: state.state for state in asset_states(home.settings, names=names)}


def test_states_follow_what_they_are_made_of(built, tree):
    assert states(built) == {"question_sets": "missing", "retrieval_report": "missing"}
    make(built)
    assert states(built) == {"question_sets": "fresh", "retrieval_report": "fresh"}
    (tree / "docs/lora.md").write_text(
        "# Adapters\n\nAll is new here, and long enough to be a section of its own, is it not?\n"
    )
    built.build(tree)
    assert states(built) == {"question_sets": "stale", "retrieval_report": "stale"}


def test_a_given_file_stands_beside_the_synthetic_set(built, question_file, new_home, tree):
    given = question_file(
        {"sources": [{"file_path": "docs/lora.md", "first_character_index": 0, "last_character_index": 9}]}
    )
    home = new_home(questions=given)
    home.build(tree)
    sets, made = make(home)
    assert [stored.name for stored in sets] == ["questions.json", "synthetic-docs.json"]
    assert [asked["set"] for asked in made.document["sets"]] == ["questions.json", "synthetic-docs.json"]
    assert {path.name for path in home.layout.reports.iterdir()} == {
        "report.html", "report.md", "report.json", "questions.png", "synthetic-docs.png",
    }  # fmt: skip
    given.unlink()
    assert states(home)["question_sets"] == "stale"
    with pytest.raises(CgragError, match="cannot be read"):
        make_sets(home.settings, {})


def test_the_last_report_is_the_last_of_other_inputs(built):
    make(built)
    assert changes_of_report(built.layout) == []
    first = stored_report(built.layout)
    blind = LexicalSettings(path=FieldSettings(weight=0, b=0), trail=FieldSettings(weight=0, b=0), file_share=0)
    worse = Home(built.settings.home, lexical=blind)
    worse.build(json.loads(built.layout.corpus_record.read_text())["location"])
    for _ in range(2):  # made anew of the same, it is still compared with the one before
        make(worse)
        assert json.loads((built.layout.reports / "previous.json").read_text()) == first
        assert len(changes_of_report(built.layout)) == 7 * len(KS)  # one for each arm


def test_a_damaged_report_is_made_anew(built):
    make(built)
    (built.layout.reports / "report.json").write_text("{")
    assert states(built)["retrieval_report"] == "missing"
    make(built)
    assert states(built)["retrieval_report"] == "fresh"


def test_a_corpus_without_docs_has_a_report_of_nothing(home, tree):
    home.build(write_tree(tree, {"a.py": "x = 1\n"}))
    sets, made = make(home)
    assert (sets, made.document["sets"]) == ([], [])
    assert states(home) == {"question_sets": "fresh", "retrieval_report": "fresh"}


def test_a_report_needs_sets(built):
    with pytest.raises(CgragError, match="no question sets yet"):
        make_report(built.settings)
