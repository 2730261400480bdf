"""Extracting a corpus: what is asked, how often, what is kept, and how it ends when it cannot go on."""

import errno
import json
import os
import signal
import subprocess
import sys
import time

import pyarrow.parquet as pq
import pytest

from pipelines.errors import CgragError
from pipelines.extract import segments
from pipelines.extract.ledger import Ledger
from pipelines.extract.partition import ChunksFailed
from pipelines.extract.segments import SET_ASIDE, list_segments
from pipelines.extract.stats import all_live_texts, collect
from pipelines.settings import PROJECT
from pipelines.tables import digest
from tests.extraction import docs
from tests.fake_model import FakeModel, answer

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


# the disk


def test_a_full_disk_ends_the_run_and_loses_what_was_not_yet_stored_alone(extracted, fake, monkeypatch):
    corpus = extracted(docs("a", 20) | docs("b", 20), flush_results=5, in_flight=4)
    really = pq.write_table
    written = []

    def write(table, path, **options):
        if "checksum" in str(options):
            written.append(path)
            if len(written) > 3:
                raise OSError(28, "No space left on device")
        return really(table, path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(segments.pq, "write_table", write)
        with pytest.raises((CgragError, OSError), match="No space left"):
            failed = corpus.run()
            raise CgragError(failed["a"])
    assert fake.requests <= 30
    with corpus.ledger() as ledger:
        assert ledger.table().num_rows == 15
    asked = fake.requests
    assert corpus.run() == {}
    assert statuses(corpus) == ["ok"] * 40
    assert fake.requests == asked + 25


def test_rows_of_a_damaged_segment_are_asked_about_again_and_no_others(extracted, fake):
    corpus = extracted(docs("a", 10), flush_results=5, in_flight=1)
    with corpus.session() as session:
        session.extract("a")
    first = list_segments(corpus.folder)[0]
    lost = pq.read_metadata(first).num_rows
    first.write_bytes(first.read_bytes()[:-20])
    assert corpus.run() == {}
    assert fake.requests == 10 + lost
    assert any(str(first) in note for note in corpus.notes)
    assert (corpus.folder / SET_ASIDE / first.name).exists()
    assert statuses(corpus) == ["ok"] * 10


# signals, kills and company

WORKER = """
import sys
sys.path.insert(0, sys.argv[4])
from pathlib import Path
from tests.extraction import Extracted
corpus = Extracted(Path(sys.argv[1]), {}, sys.argv[2], in_flight=4, flush_results=int(sys.argv[3]))
print("started", flush=True)
print(corpus.run(), flush=True)
"""


def worker(corpus, fake, flush_results=8):
    place = corpus.root.parent
    return subprocess.Popen(
        [sys.executable, "-c", WORKER, str(place), fake.url, str(flush_results), str(PROJECT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=PROJECT,
        env=os.environ,
    )


def unstored(corpus, fake):
    """How many answers were given that the ledger does not have."""
    with corpus.ledger() as ledger:
        return fake.requests - ledger.table().num_rows


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stores_every_answer_and_ends(extracted, fake, number):
    corpus = extracted(docs("a", 60))
    children = []
    fake.gate = lambda n: children[0].send_signal(number) if n == 31 else None
    fake.delay = 0.002
    children.append(worker(corpus, fake, flush_results=1000))
    out, _ = children[0].communicate()
    assert children[0].returncode != 0
    assert out == b"started\n", out
    assert unstored(corpus, fake) <= 4 + 1
    asked = fake.requests
    assert corpus.run() == {}
    assert fake.requests - asked <= 60 - 30 + 5
    assert statuses(corpus) == ["ok"] * 60


def test_two_workers_on_the_same_partition_lose_nothing_and_ask_nothing_twice(extracted, fake):
    corpus = extracted(docs("a", 150))
    fake.delay = 0.01
    workers = [worker(corpus, fake), worker(corpus, fake)]
    for each in workers:
        out, err = each.communicate()
        assert (each.returncode, out) == (0, b"started\n{}\n"), err
    assert fake.requests == 150
    assert fake.at_once > 4
    assert statuses(corpus) == ["ok"] * 150
    with corpus.ledger() as ledger:
        assert ledger.table().num_rows == 150


def test_a_repeated_run_writes_the_same_rows(extracted):
    one, two = extracted(TWO), extracted(dict(reversed(TWO.items())))
    one.run()
    two.run()
    assert digest(one.rows()) == digest(two.rows())


def test_two_endpoints_share_a_corpus(extracted, fake):
    corpus = extracted(docs("a", 20), in_flight=2)
    with FakeModel() as other:
        corpus.options["llm_urls"] = [fake.url, other.url]
        corpus.change()
        corpus.run()
        assert fake.requests + other.requests == 20
        assert min(fake.requests, other.requests) >= 5


def test_what_ends_the_asking_makes_no_partition_look_done(extracted, fake, monkeypatch):
    corpus = extracted(TWO | docs("c", 2))

    def fails(self, key):
        raise OSError("no locks on this share")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "claim", fails)
        failed = corpus.run()
    assert set(failed) == {"a", "b", "c"} and all("no locks on this share" in str(one) for one in failed.values())
    assert corpus.run() == {} and statuses(corpus) == ["ok"] * 10


def test_a_count_of_tokens_that_no_table_holds_is_a_malformed_body(extracted, fake):
    choice = {"finish_reason": "stop", "message": {"content": "[]"}}
    odd = json.dumps({"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 10**20}})
    fake.act = lambda text: {"raw": odd} if "Thing1a" in text else None
    corpus = extracted(TWO)
    corpus.run()
    assert sorted(statuses(corpus)) == ["failed"] + ["ok"] * 7


def test_what_the_file_system_cannot_read_for_a_moment_is_not_set_aside(extracted, fake, monkeypatch):
    corpus = extracted(TWO)
    corpus.run()
    (segment,) = list_segments(corpus.folder)

    def stale(*arguments, **options):
        raise OSError(errno.ESTALE, "Stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr(segments.pq, "ParquetFile", stale)
        with pytest.raises(CgragError, match="cannot be read just now: Stale file handle"):
            segments.read_segment(segment)
    assert list_segments(corpus.folder) == [segment]
    corpus.run()
    assert fake.requests == 8


def test_what_is_answered_meanwhile_and_what_nobody_knows_to_be_dead_is_not_collected(extracted, fake):
    corpus = extracted(TWO)
    corpus.run()
    layout = corpus.home.layout
    live = all_live_texts(layout)
    assert collect(layout, [], before=0.0) == {corpus.folder.name: 0}
    chunks = layout.partition("a", "chunks")
    kept = chunks.read_bytes()
    chunks.unlink()
    with pytest.raises(CgragError, match="1 partitions have no chunks"):
        all_live_texts(layout)
    chunks.write_bytes(kept)
    plan = layout.plan.read_bytes()
    layout.plan.unlink()
    with pytest.raises(CgragError, match="no plan of partitions"):
        all_live_texts(layout)
    layout.plan.write_bytes(plan)
    assert collect(layout, list(live)[:3], before=time.time()) == {corpus.folder.name: 5}
