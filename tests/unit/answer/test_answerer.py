"""Answers from a model: cached while nothing has changed, cited, and never invented where there is none."""

import asyncio

import pytest

from pipelines.answer.answerer import NOT_FOUND
from pipelines.answer.recipe import Turn
from pipelines.answer.said import NOT_IN_SOURCES
from pipelines.errors import CgragError
from pipelines.tables import read_json, write_json
from tests.fake_model import SAID, FakeModel
from tests.unit.answer.conftest import QUESTION


def test_an_answer_has_its_sources_with_lines(asked, fake):
    answer = asked.answer()
    assert (answer.text, answer.found, answer.by, answer.cached) == (SAID, True, "model", False)
    first = answer.sources[0]
    assert (first.n, first.path, first.start_line, first.end_line, first.cited) == (1, "docs/lora.md", 1, 3, True)
    assert not any(source.cited for source in answer.sources[1:])
    assert answer.evidence == 1.0
    assert fake.requests == 1


def test_the_second_time_it_comes_from_the_cache(asked, fake):
    first, second = asked.answer(), asked.answer(f"  {QUESTION.replace(' ', '  ')} ")
    assert second.cached
    assert second.stored() | {"question": QUESTION} == first.stored()
    assert second.question != QUESTION  # it is as this one was asked
    assert fake.requests == 1


@pytest.mark.parametrize(
    "settings",
    [
        {"answer": {"tokens": 500}},
        {"extract": {"model": "fake-model", "backoff": 0, "retries": 0, "revision": "other"}},
        {"lexical": {"k1": 1.1}},
    ],
)
def test_other_settings_are_another_answer(asked, fake, settings):
    asked.answer()
    asked.change(**settings)
    asked.home.build(asked.root)
    assert not asked.answer().cached
    assert fake.requests == 2


def test_another_prompt_is_another_answer(asked, fake, tmp_path):
    prompt = tmp_path / "mine.txt"
    prompt.write_text("Be brief.\n$sources\nQuestion: $question\n")
    asked.answer()
    asked.change(answer={"prompt": prompt})
    assert not asked.answer().cached
    assert fake.bodies[-1]["messages"][0]["content"] == "Be brief."


def test_another_k_or_mode_is_another_answer(asked, fake):
    for options in ({}, {"k": 2}, {"mode": "naive"}):
        with asked.answerer(**options) as answerer:
            assert not answerer.answer(QUESTION).cached
    assert fake.requests == 3


def test_after_a_changed_file_is_indexed_nothing_is_served_from_the_cache(asked, fake):
    asked.answer()
    (asked.root / "docs/cache.md").write_text("# Caching\n\nOther words.\n")
    asked.home.build(asked.root)
    assert not asked.answer().cached
    (asked.root / "docs/lora.md").write_text("# LoRA adapters\n\nEnable LoRA by `--lora`.\n")
    with asked.answerer() as answerer:
        assert answerer.answer(QUESTION).cached
        asked.home.build(asked.root)  # while it is open
        answer = answerer.answer(QUESTION)
    assert not answer.cached
    assert "`--lora`" in fake.bodies[-1]["messages"][-1]["content"]


def test_names_of_no_cited_source_are_flagged(asked, fake):
    fake.act = lambda question: {"content": "Pass `--enable-lora` to load_adapters. [1]"}
    assert asked.answer().unsupported == ["load_adapters"]


def test_the_model_may_say_that_the_sources_lack_it(asked, fake):
    fake.act = lambda question: {"content": NOT_IN_SOURCES}
    answer = asked.answer()
    assert (answer.text, answer.found, answer.by) == (NOT_IN_SOURCES, False, "model")
    assert answer.sources
    assert not any(source.cited for source in answer.sources)


@pytest.mark.parametrize(
    "question",
    ["Which river flows through Vienna and Budapest?", "Hur byter man däck på en cykel?", "如何启用适配器？", "?!"],
)
def test_what_no_source_has_words_of_is_not_asked(asked, fake, question):
    answer = asked.answer(question)
    assert (answer.text, answer.found, answer.by, answer.missing) == (NOT_FOUND, False, "nobody", "")
    assert "CGRAG_ANSWER__EVIDENCE" in answer.notes[0]
    assert answer.notes[1:] == []
    assert fake.requests == 0


def test_a_threshold_of_nothing_always_asks(asked, fake):
    asked.change(answer={"evidence": 0})
    assert asked.answer("Which river has adapters?").by == "model"
    assert fake.requests == 1


def test_without_a_server_the_sources_are_there_and_what_is_missing_is_said(asked, fake):
    fake.stop()
    answer = asked.answer()
    assert (answer.text, answer.found, answer.by) == ("", False, "nobody")
    assert answer.sources[0].path == "docs/lora.md"
    assert "cannot be reached" in answer.missing
    assert "CGRAG_LLM_URLS" in answer.missing


@pytest.mark.parametrize(
    ("act", "why"),
    [
        ({"status": 400}, "http 400"),
        ({"content": "It is so."}, "no source"),
        ({"content": "It is so. [9]"}, "there are"),
        ({"content": ""}, "empty answer"),
        ({"raw": "{"}, "malformed body"),
        ({"content": "It goes on and", "finish_reason": "length"}, "no source"),
    ],
)
def test_an_answer_that_is_none_is_said_to_be_missing_and_asked_again(asked, fake, act, why):
    fake.act = lambda question: act
    answer = asked.answer()
    assert why in answer.missing
    assert answer.sources
    fake.act = lambda question: None
    assert asked.answer().text == SAID


def test_a_server_of_another_grammar_is_refused(asked, fake):
    fake.binds = False
    assert "does not bind" in asked.answer().missing


def test_a_blank_question_is_refused(asked):
    with pytest.raises(CgragError, match="empty"):
        asked.answer(" \n")


def test_a_very_long_question_is_answered_and_the_cut_is_told(asked, fake):
    answer = asked.answer("How do I enable LoRA adapters? " * 200)
    assert answer.by == "model"
    assert "2,000 characters" in answer.notes[0]


def test_a_small_context_gets_fewer_sources(asked, fake):
    fake.context = 1500
    (asked.root / "docs/more.md").write_text("# LoRA adapters\n\n" + "Enable LoRA adapters so.\n" * 70)
    asked.home.build(asked.root)
    shown = asked.answer()
    assert sum(len(source.text) for source in shown.sources) < 1500
    fake.context = 1100
    asked.change(answer={"tokens": 2000})
    assert "takes 1,100 tokens" in asked.answer().missing


def test_a_source_that_was_deleted_since_is_told_from_the_cache_too(asked):
    asked.answer()
    (asked.root / "docs/lora.md").unlink()
    answer = asked.answer()
    assert answer.cached
    assert "docs/lora.md is gone since it was indexed" in answer.notes[0]


def test_without_an_index_it_says_how_to_build_one(new_home):
    from pipelines.answer.answerer import Answerer

    with Answerer(new_home().settings) as answerer, pytest.raises(CgragError, match="no search index") as error:
        answerer.answer(QUESTION)
    assert "cgrag run" in error.value.remedy


def test_a_graph_of_other_chunks_than_the_index_is_left_alone(asked):
    record = read_json(asked.home.layout.graph_record, "")
    write_json(asked.home.layout.graph_record, record | {"chunks": "others"})
    answer = asked.answer("Who calls `weigh`?", ask=False)
    assert answer.by == "nobody"
    assert "the graph is of other chunks" in answer.notes[0]


def test_without_a_graph_questions_are_answered_from_chunks(asked):
    asked.home.layout.graph_store.unlink()
    asked.home.layout.graph_record.unlink()
    answer = asked.answer()
    assert answer.by == "model"
    assert "no knowledge graph" in answer.notes[0]


def test_the_model_is_shown_the_conversation_and_it_is_part_of_the_key(asked, fake):
    turns = [Turn("How do I enable LoRA adapters?", "By a flag.")]
    first = asked.answer("And where are they loaded, the LoRA adapters?", turns=turns)
    shown = [message["content"] for message in fake.bodies[-1]["messages"]]
    assert shown[1:3] == list(turns[0])
    assert not first.cached
    assert asked.answer("And where are they loaded, the LoRA adapters?", turns=turns).cached
    assert not asked.answer("And where are they loaded, the LoRA adapters?").cached


def test_of_many_questions_each_is_kept_and_a_failed_one_is_asked_again(asked, fake):
    questions = ["How do I enable LoRA adapters?", "What does prefix caching keep?", "Who calls `weigh`?", "Who won?"]
    fake.act = lambda question: {"status": 400} if "prefix" in question else None
    with asked.answerer() as answerer:
        found = answerer.answer_all(questions)
    assert [answer.by for answer in found] == ["model", "nobody", "graph", "nobody"]
    assert [bool(answer.missing) for answer in found] == [False, True, False, False]
    assert found[2].retrieved
    fake.act = lambda question: None
    with asked.answerer() as answerer:
        found = answerer.answer_all(questions)
    assert [answer.cached for answer in found] == [True, False, False, False]
    assert fake.asked == {questions[0]: 1, questions[1]: 2}


def test_a_question_that_a_file_has_twice_is_asked_once(asked, fake):
    with asked.answerer() as answerer:
        found = answerer.answer_all([QUESTION, "What does prefix caching keep?", f"{QUESTION} "])
    assert [answer.text for answer in found] == [SAID] * 3
    assert fake.requests == 2


def test_a_server_that_goes_away_in_the_middle_loses_no_answer(asked, fake):
    asked.change(extract={"model": "fake-model", "backoff": 0, "retries": 0, "in_flight": 1})
    questions = [f"How do I enable LoRA adapters {n}?" for n in range(6)]
    fake.act = lambda question: {"close": True} if fake.requests > 3 else None
    with asked.answerer() as answerer:
        found = answerer.answer_all(questions)
    assert [answer.text for answer in found] == [SAID] * 3 + [""] * 3
    assert all("went away" in answer.missing and answer.sources for answer in found[3:])
    fake.act = lambda question: None
    before = fake.requests
    with asked.answerer() as answerer:
        found = answerer.answer_all(questions)
    assert fake.requests == before + 3
    assert [answer.text for answer in found] == [SAID] * 6


def test_another_server_of_the_same_model_name_is_another_model(asked, fake):
    asked.answer()
    with FakeModel() as other:
        asked.change(llm_urls=[other.url])
        assert not asked.answer().cached
        assert other.requests == 1


@pytest.mark.parametrize("question", ["enable LoRA adapters \udcff", "enable LoRA \ud800adapters\x00"])
def test_what_is_no_text_is_replaced(asked, fake, question):
    answer = asked.answer(question)
    assert (answer.by, answer.text) == ("model", SAID)
    assert answer.question.isprintable() or "\x00" in answer.question


def test_it_answers_where_a_loop_is_running(asked):
    async def cell():
        return asked.answer()

    assert asyncio.run(cell()).text == SAID
