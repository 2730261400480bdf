"""Question files: each doubt is named, and none ends in a traceback."""

import json

import pytest

from pipelines.errors import CgragError
from pipelines.evaluate.places import Places, Span, corpus_paths
from pipelines.evaluate.questions import read_questions, summary

LORA = {"file_path": "docs/lora.md", "first_character_index": 10, "last_character_index": 60}


def source(**change):
    return LORA | change


def test_what_cannot_be_found_is_reported_and_stays(question_file, places):
    whole = {"file_path": "docs/index.md", "first_character_index": 0}
    path = question_file(
        {"sources": [LORA]},
        {"question_id": "gone", "sources": [source(file_path="docs/gone.md")]},
        {"question_id": "long", "sources": [source(last_character_index=10_000)]},
        {"question_id": "turned", "sources": [source(last_character_index=5)]},
        {"question_id": "negative", "sources": [source(first_character_index=-4)]},
        {
            "question_id": "blank",
            "sources": [{**LORA, "file_path": "blank.txt", "first_character_index": 0} | {"last_character_index": 2}],
        },
        {"question_id": "torn", "sources": [whole | {"last_character_index": places.lengths["docs/index.md"]}]},
    )
    read = read_questions(path, places, min_coverage=0.9)
    assert {(finding.kind, finding.question_id) for finding in read.findings} == {
        ("missing file", "gone"),
        ("beyond the file", "long"),
        ("empty span", "turned"),
        ("beyond the file", "negative"),
        ("in no chunk", "blank"),
        ("in no chunk", "torn"),
    }
    assert len(read.questions) == 7
    assert read.ceiling == pytest.approx(2 / 7)


def test_what_cannot_be_scored_is_left_out(question_file, places):
    path = question_file(
        {"sources": [LORA, LORA]},
        {"question_id": "q0", "question": "another", "sources": [LORA]},
        {"question_id": "none"},
        {"question_id": "again", "sources": [LORA]},
        {"question_id": "empty", "question": "  \n", "sources": [LORA]},
    )
    read = read_questions(path, places)
    assert [question.id for question in read.questions] == ["again", "empty", "q0"]
    assert summary(read.findings) == (
        "blank question 1, duplicate id 1, duplicate question 1, duplicate source 1, no sources 1"
    )
    assert [question.sources for question in read.questions if question.id == "q0"] == [(Span("docs/lora.md", 10, 60),)]


@pytest.mark.parametrize(
    "written",
    [
        "docs/lora.md",
        "./docs/lora.md",
        "data/raw/vllm-0.10.1/docs/lora.md",
        "/srv/handbook-1.0/docs/lora.md",
        "docs\\lora.md",
    ],
)
def test_a_path_may_have_the_prefix_of_a_corpus(question_file, places, written):
    read = read_questions(question_file({"sources": [source(file_path=written)]}), places)
    assert read.questions[0].sources[0].path == "docs/lora.md"
    assert not read.findings


def test_a_folder_that_all_paths_share_is_taken_off(places):
    written = ["corpora/v1/docs/lora.md", "corpora/v1/docs/guide.rst", "corpora/v1/gone.md"]
    assert list(corpus_paths(written, places).values()) == ["docs/guide.rst", "docs/lora.md", "corpora/v1/gone.md"]


def test_another_files_path_is_not_bent_until_it_fits(places: Places):
    assert corpus_paths(["other/docs/lora.md", "docs/lora.md"], places)["other/docs/lora.md"] == "other/docs/lora.md"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("{", "is not JSON"),
        ("[]", "is not a question file: the document"),
        ('{"rag_questions": []}', "has no question with a source"),
        ('{"rag_questions": [{"question": "x"}]}', "rag_questions.0.question_id: Field required"),
        ('{"rag_questions": [{"question_id": "1", "question": "x", "sources": [{"file_path": "a"}]}]}', "and 1 more"),
        ('{"rag_questions": [{"question_id": "1", "question": "x"}]}', "no sources 1"),
        ("[" * 100_000, "is not JSON"),
    ],
)
def test_what_is_no_question_file_is_refused(tmp_path, places, text, problem):
    path = tmp_path / "q.json"
    path.write_text(text)
    with pytest.raises(CgragError, match=problem):
        read_questions(path, places)


def test_offsets_beyond_any_file_are_refused(question_file, places):
    with pytest.raises(CgragError, match="less than or equal"):
        read_questions(question_file({"sources": [source(last_character_index=10**30)]}), places)


def test_a_file_about_another_corpus_is_refused(question_file, places):
    path = question_file({"sources": [source(file_path="x/a.md")]}, {"sources": [source(file_path="x/b.md")]})
    with pytest.raises(CgragError, match="another corpus"):
        read_questions(path, places)


def test_an_unreadable_file_is_refused(tmp_path, places):
    with pytest.raises(CgragError, match="cannot be read: No such file"):
        read_questions(tmp_path / "none.json", places)
    (tmp_path / "latin.json").write_bytes(b'{"rag_questions": "\xe9"}')
    with pytest.raises(CgragError, match="is not JSON in UTF-8"):
        read_questions(tmp_path / "latin.json", places)


def test_a_byte_order_mark_and_numbers_as_ids_are_read(tmp_path, places):
    rows = {"rag_questions": [{"question_id": 7, "question": "x", "sources": [LORA], "split": None, "more": 1}]}
    (tmp_path / "q.json").write_bytes(b"\xef\xbb\xbf" + json.dumps(rows).encode())
    assert read_questions(tmp_path / "q.json", places).questions[0].id == "7"
