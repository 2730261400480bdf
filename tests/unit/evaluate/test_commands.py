"""`cgrag evaluate`, `search-dataset` and `questions make`, as users call them."""

import json
import sys

import pytest

LORA = {"file_path": "docs/lora.md", "first_character_index": 10, "last_character_index": 60}


@pytest.fixture(autouse=True)
def in_small_home(small, monkeypatch):
    monkeypatch.setenv("CGRAG_HOME", str(small.settings.home))
    monkeypatch.setenv("CGRAG_CHUNKING__CAP", "300")
    monkeypatch.setenv("CGRAG_CHUNKING__SECTION", "100")


def test_evaluate_prints_tables_findings_and_misses(cli, question_file):
    path = question_file(
        {"question": "low rank adapters", "sources": [LORA]}, {"sources": [LORA]}, {"question_id": "no"}
    )
    said = cli("evaluate", str(path), "--k", "1,3", "--misses")
    assert said.code == 0
    assert ["lexical", "plain", "all", "1", ".500"] in [line.split()[:5] for line in said.out.splitlines()]
    assert "At equal characters" in said.out and "1 misses of lexical, plain, at k = 3" in said.out
    assert "no sources: no: left out" in said.err


def test_json_stands_alone_on_standard_output(cli, question_file):
    said = cli("evaluate", str(question_file({"sources": [LORA]})), "--json", "--misses")
    arms = {"plain", "graph", "graph-code", "graph-all", "expand", "matched", "random"}
    assert {row["arm"] for row in said.json["rows"]} == arms
    assert said.json["fired"] == {"questions": 0, "by_relation": {}}
    assert said.json["misses"][0]["question_id"] == "q0"


@pytest.mark.parametrize(
    "words", [("--k", "0"), ("--k", "3,x"), ("--k", ""), ("--min-coverage", "0"), ("--min-coverage", "1.1")]
)
def test_wrong_usage_is_exit_2(cli, question_file, words):
    assert cli("evaluate", str(question_file({"sources": [LORA]})), *words).code == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--modes", "dense"), "no embeddings yet"),
        (("--arms", "plain,grahp"), "There is no arm 'grahp'"),
        (("--modes", "sparse"), "There is no mode 'sparse'"),
        (("--results", "none.json"), "none.json cannot be read"),
    ],
)
def test_what_is_not_there_is_named(cli, question_file, words, problem):
    said = cli("evaluate", str(question_file({"sources": [LORA]})), *words)
    assert (said.code, said.out) == (1, "")
    assert problem in said.err


@pytest.mark.parametrize(
    "question", ["x" * 10_000, "word " * 2_000, "熊猫 на русском ไทย", "the of and", "", "\x00\ud800"]
)
def test_any_question_can_be_asked(cli, question_file, tmp_path, question):
    path = question_file({"question": question, "sources": [LORA]})
    assert cli("evaluate", str(path), "--misses").code == 0
    assert cli("search-dataset", str(path), "--out", str(tmp_path / "out.json")).code == 0
    assert json.loads((tmp_path / "out.json").read_text())["search_results"][0]["question_id"] == "q0"


def test_search_dataset_refuses_what_it_cannot_do(cli, question_file, tmp_path):
    path = str(question_file({"sources": [LORA]}))
    assert "no embeddings yet" in cli("search-dataset", path, "--mode", "hybrid", "--out", str(tmp_path / "o")).err
    (tmp_path / "file").touch()
    assert "cannot be written" in cli("search-dataset", path, "--out", str(tmp_path / "file" / "o.json")).err


def test_the_graph_is_asked_where_a_question_has_structure(cli, question_file, tmp_path):
    source = {"file_path": "src/pkg/app.py", "first_character_index": 0, "last_character_index": 60}
    asks = {"question": "Who calls `Engine.status`?", "split": "code", "sources": [source]}
    path = str(question_file(asks, {"sources": [LORA], "split": "docs"}))
    assert cli("evaluate", path, "--json").json["fired"] == {"questions": 1, "by_relation": {"callers": {"code": 1}}}
    said = cli("evaluate", path, "--arms", "plain,graph")
    assert "The graph was asked for 1 of 2 questions: callers 1 (code 1)." in said.out
    assert "The graph was asked" not in cli("evaluate", path, "--arms", "plain").out
    for words in ([], ["--graph"]):
        assert cli("search-dataset", path, *words, "--out", str(tmp_path / f"out{len(words)}")).code == 0
    ways = [json.loads((tmp_path / f"out{number}").read_text()) for number in (0, 1)]
    assert [way["arm"] for way in ways] == ["plain", "graph"]


def test_questions_are_made_and_evaluated(cli, tmp_path):
    out = tmp_path / "made.json"
    for kind in ("docs", "structural"):
        said = cli("questions", "make", "--kind", kind, "--out", str(out), "--json")
        made = json.loads(out.read_text())["rag_questions"]
        assert (said.code, said.json["kind"], said.json["questions"]) == (0, kind, len(made))
        assert cli("evaluate", str(out), "--json").json["questions"] == len(made)
    assert cli("questions", "make", "--kind", "verse", "--out", str(out)).code == 2


def test_without_jedi_it_says_what_to_install(cli, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jedi", None)
    said = cli("questions", "make", "--kind", "structural", "--out", str(tmp_path / "o.json"))
    assert (said.code, said.out) == (1, "")
    assert "pip install" in said.err
