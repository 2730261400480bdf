"""Result files: written, read back, and scored like the product itself."""

import json

import pytest

from pipelines.errors import CgragError
from pipelines.evaluate.evaluation import evaluate_file
from pipelines.evaluate.places import Span
from pipelines.evaluate.questions import Question
from pipelines.evaluate.results_file import read_results, write_results

LORA = {"file_path": "docs/lora.md", "first_character_index": 10, "last_character_index": 60}
ASKED = [Question("q1", "one", (Span("docs/lora.md", 0, 9),)), Question("q2", "two", (Span("docs/lora.md", 0, 9),))]


def test_what_is_written_is_read(tmp_path, places):
    rankings = [[Span("docs/lora.md", 0, 9), Span("docs/guide.rst", 5, 8)], []]
    write_results(tmp_path / "r.json", ASKED, rankings, k=10, corpus=places.corpus, generation=places.generation)
    read = read_results(tmp_path / "r.json", ASKED, places)
    assert read.rankings == {"q1": rankings[0], "q2": []}
    assert (read.k, read.findings) == (10, ())


def write(tmp_path, *rows, **about):
    path = tmp_path / "r.json"
    path.write_text(json.dumps({"search_results": list(rows), **about}))
    return path


def test_doubts_are_named(tmp_path, places):
    path = write(
        tmp_path,
        {
            "question_id": "q1",
            "question": "other words",
            "retrieved_sources": [LORA, LORA | {"first_character_index": 70}],
        },
        {"question_id": "q1", "retrieved_sources": []},
        {"question_id": "q9", "retrieved_sources": [LORA | {"file_path": "gone.md"}]},
        generation="old",
    )
    read = read_results(path, ASKED, places)
    assert [finding.kind for finding in read.findings] == [
        "other wording",
        "empty result",
        "duplicate result",
        "unknown question",
        "other index",
        "no result",
    ]


@pytest.mark.parametrize(
    ("rows", "about", "problem"),
    [
        (
            [{"question_id": "q1", "retrieved_sources": [LORA | {"file_path": "x/a.py"}]}],
            {},
            "results of another corpus",
        ),
        ([{"question_id": "q1", "retrieved_sources": [LORA]}], {"corpus": "flask-3.0.3"}, "results of flask-3.0.3"),
        ([{"question_id": "q7", "retrieved_sources": [LORA]}], {}, "answers none of the 2 questions"),
        ([], {}, "answers none of the 2 questions"),
        (
            [{"question_id": "q1", "retrieved_sources": [{"file_path": 3}]}],
            {},
            "is not a results file: search_results.0",
        ),
    ],
)
def test_what_cannot_be_scored_is_refused(tmp_path, places, rows, about, problem):
    with pytest.raises(CgragError, match=problem):
        read_results(write(tmp_path, *rows, **about), ASKED, places)


def test_a_file_that_ranks_as_the_product_does_differs_by_nothing(
    small, places, question_file, cli, monkeypatch, tmp_path
):
    monkeypatch.setenv("CGRAG_HOME", str(small.settings.home))
    monkeypatch.setenv("CGRAG_CHUNKING__CAP", "300")
    monkeypatch.setenv("CGRAG_CHUNKING__SECTION", "100")
    asked = question_file({"sources": [LORA]}, {"question": "low rank adapters", "sources": [LORA]}, {"question": "no"})
    out = tmp_path / "out.json"
    said = cli("search-dataset", str(asked), "--k", "4", "--out", str(out), "--json")
    assert (said.code, said.json["questions"]) == (0, 3)
    written = json.loads(out.read_text())
    assert [row["question_id"] for row in written["search_results"]] == ["q0", "q1", "q2"]
    assert written["k"] == 4
    mine = evaluate_file(small.settings, asked, ks=(1, 4))
    read = evaluate_file(small.settings, asked, ks=(1, 4), results=out)
    plain = [row.recall for row in mine.rows if row.arm == "plain"]
    assert [(row.mode, row.recall, row.minus_low, row.minus_high) for row in read.rows] == [
        ("results", value, 0, 0) for value in plain
    ]
    assert {row.mode for row in evaluate_file(small.settings, asked, results=out, modes=["lexical"]).rows} == {
        "results",
        "lexical",
    }
