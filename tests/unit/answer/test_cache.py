"""The cache of answers: shared by processes, of one generation, and never a reason to fail."""

import multiprocessing
import sqlite3

import pytest

from pipelines.answer.cache import AnswerCache

ANSWER = {"text": "So. [1]", "sources": [{"path": "é.md"}]}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "answers.sqlite"


def test_an_answer_is_there_again_in_another_process_of_the_same_generation(file):
    AnswerCache(file, "g").put("key", ANSWER)
    assert AnswerCache(file, "g").get("key") == ANSWER
    assert AnswerCache(file, "g").get("other") is None


def test_an_answer_of_another_generation_is_not_served_and_goes_with_the_next(file):
    AnswerCache(file, "old").put("key", ANSWER)
    assert AnswerCache(file, "new").get("key") is None
    AnswerCache(file, "new").put("other", ANSWER)
    assert AnswerCache(file, "old").get("key") is None


@pytest.mark.parametrize("damage", [b"no database at all" * 99, b"", None])
def test_a_damaged_file_is_built_anew(file, damage):
    cache = AnswerCache(file, "g")
    cache.put("key", ANSWER)
    if damage is None:  # the header is whole, the pages are not
        with sqlite3.connect(file) as database:
            database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        database.close()
        data = bytearray(file.read_bytes())
        data[100:] = b"\xff" * (len(data) - 100)
        file.write_bytes(data)
    else:
        file.write_bytes(damage)
    assert cache.get("key") is None
    cache.put("key", ANSWER)
    cache.put("key", ANSWER)
    assert AnswerCache(file, "g").get("key") == ANSWER


def test_a_row_that_is_no_answer_is_no_answer(file):
    cache = AnswerCache(file, "g")
    cache.put("key", ANSWER)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE answers SET answer = '[1'")
    database.close()
    assert cache.get("key") is None


def test_a_folder_that_cannot_hold_it_costs_the_cache_only(tmp_path):
    cache = AnswerCache(tmp_path / "nowhere" / "answers.sqlite", "g")
    cache.put("key", ANSWER)
    assert cache.get("key") is None


def _write(file, name):
    cache = AnswerCache(file, "g")
    for n in range(20):
        cache.put(f"{name}-{n}", {"n": n})


def test_processes_write_at_once_and_nothing_is_lost(file):
    workers = [multiprocessing.get_context("spawn").Process(target=_write, args=(file, name)) for name in "abcd"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    cache = AnswerCache(file, "g")
    assert all(cache.get(f"{name}-{n}") == {"n": n} for name in "abcd" for n in range(20))
