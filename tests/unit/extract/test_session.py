"""Extracting a corpus: what is asked, how often, what is kept, and how it ends when it cannot go on."""

import json

import pytest

from pipelines.errors import CgragError
from pipelines.extract.partition import ChunksFailed
from tests.extraction import docs
from tests.fake_model import answer

TWO = docs("a", 5) | docs("b", 3)


def statuses(extracted):
    return [row["status"] for row in extracted.rows()]


def test_every_chunk_is_asked_about_once_and_the_tables_hold_the_answers(extracted, fake):
    corpus = extracted(TWO)
    assert corpus.run() == {}
    assert fake.requests == 8
    assert set(fake.asked.values()) == {1}
    row = corpus.by_path()["b/d001.md"]
    text = (corpus.root / "b" / "d001.md").read_text()
    assert {e["name"]: [text[s : s + len(e["name"])] for s in e["starts"]] for e in row["entities"]} == {
        "Doc1b": ["Doc1b"],
        "Thing1b": ["Thing1b"],
        "Shared": ["Shared"],
    }
    assert [(r["source"], r["target"]) for r in row["relations"]] == [("Doc1b", "Thing1b"), ("Thing1b", "Shared")]
    assert corpus.totals["ok"] == corpus.totals["chunks"] == 8


def test_the_share_of_names_of_a_last_resort_type_is_told(extracted, fake):
    fake.act = lambda text: {"content": [["Shared", "Entity"]]} if "Thing1" in text else None
    corpus = extracted(TWO)
    corpus.run()
    assert corpus.totals["last_resort_share"] == 2 / (2 + 6 * 3)


def test_what_has_a_result_is_not_asked_again(extracted, fake):
    corpus = extracted(TWO)
    corpus.run()
    corpus.run()
    assert fake.requests == 8


def test_nothing_is_asked_where_only_the_ledger_is_to_be_read(extracted, fake):
    corpus = extracted(TWO)
    corpus.run("none")
    assert (fake.requests, statuses(corpus)) == (0, ["pending"] * 8)


def test_only_the_listed_chunks_are_asked_about(extracted, fake):
    corpus = extracted(TWO)
    corpus.run("none")
    listed = [row["chunk_id"] for row in corpus.rows()[:3]]
    corpus.run("listed", listed)
    assert fake.requests == 3
    assert [row["chunk_id"] for row in corpus.rows() if row["status"] == "ok"] == listed


def test_equal_texts_are_asked_about_once(extracted, fake):
    text = "# Same\n\nThe Thing is Shared.\n"
    corpus = extracted({"a/x.md": text, "a/y.md": text, "b/x.md": text})
    corpus.run()
    assert fake.requests == 1
    assert statuses(corpus) == ["ok"] * 3


def test_a_chunk_without_names_is_done_without_being_asked_about(extracted, fake):
    corpus = extracted({"a/x.md": "nothing to name, 1234\n"})
    corpus.run()
    assert (fake.requests, statuses(corpus)) == (0, ["ok"])


@pytest.mark.parametrize(("policy", "asked"), [("hybrid", 1), ("llm", 3), ("ast", 0), ("off", 0)])
def test_the_policy_says_which_chunks_the_model_takes(extracted, fake, policy, asked):
    files = {"a/x.md": "# The Page\n", "a/x.py": "class Thing:\n    pass\n", "a/x.json": '{"Key": "Word"}\n'}
    corpus = extracted(files, policy=policy)
    corpus.run()
    assert (fake.requests, len(corpus.rows())) == (asked, asked)


# what changes ask for


def test_an_edit_asks_only_about_its_chunk(extracted, fake):
    corpus = extracted(TWO)
    corpus.run()
    (corpus.root / "a" / "d002.md").write_text("# New\n\nQuite Another Thing.\n")
    corpus.rebuild()
    corpus.run()
    assert fake.requests == 9
    assert statuses(corpus) == ["ok"] * 8


def test_a_renamed_directory_asks_about_nothing(extracted, fake):
    corpus = extracted(TWO)
    corpus.run()
    (corpus.root / "b").rename(corpus.root / "c")
    corpus.rebuild()
    corpus.run()
    assert fake.requests == 8
    assert statuses(corpus) == ["ok"] * 8


def test_a_changed_prompt_asks_about_everything_and_the_old_results_stay_readable(
    extracted, fake, monkeypatch, tmp_path
):
    corpus = extracted(TWO)
    corpus.run()
    before, old = corpus.rows(), corpus.recipe.id
    prompt = tmp_path / "prompt.txt"
    prompt.write_text("Other words. $types $relations $chunk")
    monkeypatch.setattr("pipelines.extract.recipe.PROMPT", prompt)
    corpus.run()
    assert (fake.requests, corpus.recipe.id != old) == (16, True)
    corpus.change(recipe=old)
    corpus.run("none")
    assert corpus.rows() == before
    assert fake.requests == 16


def test_another_revision_asks_about_everything(extracted, fake):
    corpus = extracted(TWO)
    corpus.run()
    corpus.change(revision="2")
    corpus.run()
    assert fake.requests == 16


# failures


def test_good_chunks_are_kept_the_failed_ones_listed_and_only_they_are_asked_again(extracted, fake):
    corpus = extracted(TWO)
    fake.act = lambda text: {"status": 400} if "Thing3a" in text else None
    failed = corpus.run()
    assert failed.keys() == {"a"}
    assert "1 of 5 chunks failed: a/d003.md (http 400: " in failed["a"]
    assert corpus.by_path()["a/d003.md"]["problem"] == "http 400"
    assert statuses(corpus).count("ok") == 7
    fake.act = lambda text: None
    assert corpus.run() == {}
    assert fake.requests == 9
    assert statuses(corpus) == ["ok"] * 8


def test_an_answer_against_the_grammar_is_a_failure(extracted, fake):
    corpus = extracted(docs("a", 1))
    fake.act = lambda text: {"content": "I would say: Thing."}
    assert "invalid answer" in corpus.run()["a"]
    with corpus.ledger() as ledger:
        (row,) = ledger.table().to_pylist()
    assert row["status"] == "invalid answer"
    assert row["pieces"][0]["content"] == "I would say: Thing."


LONG = "# Long\n\n" + "".join(f"The Thing{n} needs Part{n}.\n" for n in range(40))


def test_an_answer_that_was_cut_off_is_asked_for_in_two_halves(extracted, fake):
    corpus = extracted({"a/long.md": LONG})
    fake.act = lambda text: {"content": '{"entities":[', "finish_reason": "length"} if text == LONG.strip() else None
    assert corpus.run() == {}
    assert fake.requests == 3
    (row,) = corpus.rows()
    text = (corpus.root / "a" / "long.md").read_text()
    assert row["status"] == "ok"
    assert len(row["entities"]) == 8
    for entity in row["entities"]:
        assert all(text[start : start + len(entity["name"])] == entity["name"] for start in entity["starts"])
    corpus.run()
    assert fake.requests == 3


def test_halves_that_are_cut_off_as_well_are_a_failure_after_three_requests(extracted, fake):
    corpus = extracted({"a/long.md": LONG})
    fake.act = lambda text: {"content": "{", "finish_reason": "length"} if "Thing30" in text else None
    assert "length" in corpus.run()["a"]
    assert fake.requests == 3
    assert corpus.totals["truncated"] == 1
    corpus.run()
    assert fake.requests == 6


def test_a_short_chunk_that_is_cut_off_is_a_failure_at_once(extracted, fake):
    corpus = extracted(docs("a", 1))
    fake.act = lambda text: {"content": json.dumps(answer(["Shared"], "Class")), "finish_reason": "length"}
    assert "length" in corpus.run()["a"]
    assert fake.requests == 1
    assert corpus.rows()[0]["entities"] == []


# the server


def test_a_server_that_is_down_fails_nothing_and_asks_nothing(extracted, fake):
    corpus = extracted(TWO)
    fake.stop()
    with pytest.raises(CgragError, match="cannot be reached"):
        corpus.run()
    with corpus.ledger() as ledger:
        assert ledger.table().num_rows == 0


def test_a_server_that_goes_in_the_middle_ends_the_run_with_what_was_answered(extracted, fake):
    corpus = extracted(docs("a", 40) | docs("b", 40), in_flight=4)
    fake.act = lambda text: {"close": True} if fake.requests > 30 else None
    failed = corpus.run()
    assert "The model server has gone" in failed["b"]
    ok = statuses(corpus).count("ok")
    assert 25 <= ok <= 30
    asked = fake.requests
    assert asked < 80
    fake.act = lambda text: None
    assert corpus.run() == {}
    assert statuses(corpus) == ["ok"] * 80
    assert fake.requests == asked + 80 - ok


def test_what_a_failed_partition_lacks_is_named(extracted, fake):
    corpus = extracted(docs("a", 40), in_flight=4)
    fake.act = lambda text: {"close": True} if fake.requests > 10 else None
    with corpus.session() as session, pytest.raises(ChunksFailed) as failed:
        session.extract("a")
    assert set(failed.value.missing) == {row["chunk_id"] for row in corpus.rows() if row["status"] != "ok"}


def test_a_key_that_is_refused_in_the_middle_ends_the_run(extracted, fake):
    corpus = extracted(docs("a", 40), in_flight=4)
    fake.act = lambda text: {"status": 401} if fake.requests > 10 else None
    assert "refuses the API key" in corpus.run()["a"]
    assert fake.requests <= 14


def test_the_requests_under_way_are_bounded_and_as_many_as_allowed(extracted, fake):
    corpus = extracted(docs("a", 40), in_flight=7)
    fake.delay = 0.01
    corpus.run()
    assert fake.at_once == 7


def test_small_partitions_are_asked_about_together(extracted, fake):
    files = {name: text for directory in "abcdefgh" for name, text in docs(directory, 1).items()}
    corpus = extracted(files, in_flight=8)
    fake.delay = 0.05
    corpus.run()
    assert fake.at_once == 8
