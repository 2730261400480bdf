"""`cgrag evaluate`, `search-dataset` and `questions make`, as users call them."""

import json

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
    assert "lexical  plain    all    1  .500" in said.out.replace("   .", "  .")
    assert "At equal characters" in said.out and "1 misses of lexical, plain, at k = 3" in said.out
    assert "no sources: no: left out" in said.err


def test_json_stands_alone_on_standard_output(cli, question_file):
    said = cli("evaluate", str(question_file({"sources": [LORA]})), "--json", "--misses")
    assert {row["arm"] for row in said.json["rows"]} == {"plain", "matched"}
    assert said.json["misses"][0]["question_id"] == "q0"


@pytest.mark.parametrize(
    "words", [("--k", "0"), ("--k", "3,x"), ("--k", ""), ("--min-coverage", "0"), ("--min-coverage", "1.1")]
)
def test_wrong_usage_is_exit_2(cli, question_file, words):
    assert cli("evaluate", str(question_file({"sources": [LORA]})), *words).code == 2


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--modes", "dense"), "The mode dense needs chunk_embeddings"),
        (("--arms", "plain,random"), "The arm random needs knowledge_graph"),
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
    assert "The arm graph needs" in cli("search-dataset", path, "--graph", "--out", str(tmp_path / "o")).err
    assert "The mode hybrid needs" in cli("search-dataset", path, "--mode", "hybrid", "--out", str(tmp_path / "o")).err
    (tmp_path / "file").touch()
    assert "cannot be written" in cli("search-dataset", path, "--out", str(tmp_path / "file" / "o.json")).err


def test_questions_are_made_and_evaluated(cli, tmp_path):
    out = tmp_path / "made.json"
    assert cli("questions", "make", "--kind", "docs", "--out", str(out)).code == 0
    assert cli("evaluate", str(out), "--json").json["questions"] == len(json.loads(out.read_text())["rag_questions"])
    assert "need code_edges" in cli("questions", "make", "--kind", "structural", "--out", str(out)).err
    assert cli("questions", "make", "--kind", "verse", "--out", str(out)).code == 2
