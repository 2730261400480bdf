"""Extraction when things go wrong around it: the disk, damaged segments, signals, kills, and other workers."""

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
from pipelines.extract.segments import SET_ASIDE, list_segments
from pipelines.extract.stats import all_live_texts, collect
from pipelines.settings import PROJECT
from pipelines.tables import digest
from tests.extraction import docs
from tests.fake_model import FakeModel

TWO = docs("a", 5) | docs("b", 3)


def statuses(extracted):
    return [row["status"] for row in extracted.rows()]


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
