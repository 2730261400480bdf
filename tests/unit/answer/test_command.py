"""`cgrag answer` and `cgrag answer-dataset`: what is printed, the JSON, the exit codes, a conversation."""

import json

import pytest

from pipelines.answer.answerer import NOT_FOUND
from tests.fake_model import MODEL, SAID
from tests.unit.answer.conftest import QUESTION


@pytest.fixture
def ask(asked, fake, cli, monkeypatch):
    """`cgrag` in that home, asking the scripted model."""
    monkeypatch.setenv("CGRAG_HOME", str(asked.settings.home))
    monkeypatch.setenv("CGRAG_LLM_URLS", fake.url)
    monkeypatch.setenv("CGRAG_EXTRACT__MODEL", MODEL)
    monkeypatch.setenv("CGRAG_EXTRACT__RETRIES", "0")
    return cli


def test_an_answer_is_printed_with_its_sources(ask):
    said = ask("answer", QUESTION)
    assert (said.code, said.err) == (0, "")
    lines = said.out.splitlines()
    assert lines[0] == SAID
    assert lines[1] == "  [1] docs/lora.md:1-3  LoRA adapters"


def test_the_json_has_the_keys_of_the_contract(ask):
    found = ask("answer", QUESTION, "--json").json
    assert (found["answer"], found["found"], found["cached"]) == (SAID, True, False)
    first = found["sources"][0]
    assert {key: first[key] for key in ("n", "path", "start_line", "end_line", "cited")} == {
        "n": 1, "path": "docs/lora.md", "start_line": 1, "end_line": 3, "cited": True,
    }  # fmt: skip
    assert sorted(found["seconds"]) == ["expand", "generate", "retrieve"]
    assert "retrieved" not in found
    assert ask("answer", QUESTION, "--json").json["cached"] is True


def test_the_graphs_answer_has_the_rows_of_the_graph_command(ask, fake):
    found = ask("answer", "Who calls `weigh`?", "--json").json
    rows = ask("graph", "weigh", "--relation", "CALLS", "--direction", "in", "--json").json["edges"]
    assert found["edges"] == rows != []
    assert fake.requests == 0


def test_no_model_prints_the_sources(ask, fake):
    said = ask("answer", QUESTION, "--no-model")
    assert said.code == 0
    assert said.out.startswith("  [1] docs/lora.md:1-3")
    assert fake.requests == 0


def test_a_missing_model_is_said_after_the_sources_and_the_exit_is_one(ask, fake):
    fake.stop()
    said = ask("answer", QUESTION)
    assert said.code == 1
    assert "docs/lora.md:1-3" in said.out
    assert "cannot be reached" in said.err
    found = ask("answer", QUESTION, "--json")
    assert (found.code, found.json["answer"], found.json["found"]) == (1, "", False)


def test_what_no_source_has_is_said(ask):
    said = ask("answer", "Which river flows through Vienna?")
    assert (said.code, said.out.splitlines()[0]) == (0, NOT_FOUND)
    assert "CGRAG_ANSWER__EVIDENCE" in said.err


def test_made_up_names_are_pointed_out(ask, fake):
    fake.act = lambda question: {"content": "Call `load_adapters` then. [1]"}
    assert "(!) load_adapters stands in no source that is cited" in ask("answer", QUESTION).out


def test_control_characters_of_a_model_are_shown_not_sent(ask, fake):
    fake.act = lambda question: {"content": "Red \x1b[31mis so. [1]"}
    assert "\x1b" not in ask("answer", QUESTION).out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("answer",), "--chat"),
        (("answer", "  "), "empty"),
        (("answer", QUESTION, "--mode", "sideways"), "none of auto, local, global, naive"),
        (("answer", QUESTION, "--k", "0"), "--k"),
    ],
)
def test_wrong_usage_is_told(ask, words, said):
    found = ask(*words)
    assert found.code in (1, 2)
    assert said in found.err


def test_a_question_may_come_from_a_pipe(ask, fake):
    assert ask("answer", "-", stdin=QUESTION.encode()).code == 0
    assert list(fake.asked) == [QUESTION]


def test_a_conversation_goes_on_until_it_is_ended(ask, fake):
    said = ask("answer", "--chat", stdin=b"What does `Till.check` call?\n\nAnd who calls it?\nexit\nHow?\n")
    assert said.code == 0
    assert "`Till.check` (shop/till.py:5) calls `weigh` [1]" in said.out
    assert "no call is resolved to `Till.check`" in said.out
    assert fake.requests == 0


def test_a_conversation_with_a_model_has_cited_turns(ask, fake):
    words = ("answer", QUESTION, "--chat", "--json")
    turns = ask(*words, stdin=b"And which flag enables the LoRA adapters?\n").json["turns"]
    assert [turn["answer"] for turn in turns] == [SAID, SAID]
    assert all(turn["sources"][0]["cited"] for turn in turns)
    shown = [message["content"] for message in fake.bodies[-1]["messages"]]
    assert shown[1:3] == [QUESTION, SAID.removesuffix(" [1]")]


def test_a_conversation_in_which_the_model_failed_exits_with_one(ask, fake):
    fake.act = lambda question: {"status": 400}
    said = ask("answer", QUESTION, "--chat", "--json", stdin=b"Who calls `weigh`?\n")
    assert said.code == 1
    assert [turn["by"] for turn in said.json["turns"]] == ["nobody", "graph"]


@pytest.fixture
def questions(tmp_path):
    texts = [QUESTION, "What does prefix caching keep?", "Who calls `weigh`?", "Who won the world cup?"]
    file = tmp_path / "questions.json"
    file.write_text(
        json.dumps({"rag_questions": [{"question_id": f"q{n}", "question": t} for n, t in enumerate(texts)]})
    )
    return file


def test_a_dataset_has_an_answer_and_sources_for_each_question(ask, fake, questions, tmp_path):
    out = tmp_path / "out.json"
    said = ask("answer-dataset", str(questions), "--out", str(out), "--k", "3", "--json")
    assert said.code == 0
    assert {key: said.json[key] for key in ("questions", "found", "cached", "failed", "k")} == {
        "questions": 4, "found": 3, "cached": 0, "failed": 0, "k": 3,
    }  # fmt: skip
    written = json.loads(out.read_text())
    rows = written["search_results"]
    assert [row["question_id"] for row in rows] == ["q0", "q1", "q2", "q3"]
    assert [row["answer"] for row in rows[:2]] == [SAID, SAID]
    assert rows[3]["answer"] == NOT_FOUND
    assert "`Keeper.store` [1]" in rows[2]["answer"]
    assert rows[0]["retrieved_sources"][0]["file_path"] == "docs/lora.md"
    assert rows[2]["retrieved_sources"]
    assert rows[0]["cited"][0]["path"] == "docs/lora.md"
    assert written["k"] == 3
    asked_before = fake.requests
    again = ask("answer-dataset", str(questions), "--out", str(out), "--k", "3", "--json")
    assert (again.json["cached"], fake.requests) == (2, asked_before)
    assert json.loads(out.read_text()) == written


def test_a_dataset_can_be_scored(ask, questions, tmp_path):
    out = tmp_path / "out.json"
    ask("answer-dataset", str(questions), "--out", str(out))
    scored = json.loads(questions.read_text())
    scored["rag_questions"][0]["sources"] = [
        {"file_path": "docs/lora.md", "first_character_index": 0, "last_character_index": 60}
    ]
    scored["rag_questions"] = scored["rag_questions"][:1]
    questions.write_text(json.dumps(scored))
    found = ask("evaluate", str(questions), "--results", str(out), "--k", "3", "--json").json
    assert found["rows"][0]["recall"] == 1.0


def test_a_question_that_fails_is_named_and_the_exit_is_one(ask, fake, questions, tmp_path):
    fake.act = lambda question: {"status": 400} if "prefix" in question else None
    said = ask("answer-dataset", str(questions), "--out", str(tmp_path / "out.json"))
    assert said.code == 1
    assert "q1: The model did not answer: http 400" in said.err


def test_without_a_server_a_dataset_has_the_sources_and_the_graphs_answers(ask, fake, questions, tmp_path):
    fake.stop()
    out = tmp_path / "out.json"
    said = ask("answer-dataset", str(questions), "--out", str(out))
    assert said.code == 1
    assert "cannot be reached" in said.err
    rows = json.loads(out.read_text())["search_results"]
    assert [bool(row["answer"]) for row in rows] == [False, False, True, True]
    assert all(row["retrieved_sources"] for row in rows[:3])
