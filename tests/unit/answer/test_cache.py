"""The cache of answers: shared by processes, of one generation, and never a reason to fail."""

import multiprocessing
import sqlite3

import pytest

from pipelines.answer.cache import AnswerCache

ANSWER = {"text": "So. [1]", "sources": [{"path": "é.md"}]}


@pytest.fixture
def file(tmp_path):
    return tmp_path / "answers.sqlite"


def test_an_answer_is_there_again_in_another_process(file):
    AnswerCache(file).put("key", ANSWER)
    assert AnswerCache(file).get("key") == ANSWER
    assert AnswerCache(file).get("other") is None


def test_of_many_answers_the_last_are_kept(file):
    cache = AnswerCache(file, kept=3)
    for name in ("a", "b", "a", "c", "d"):
        cache.put(name, ANSWER)
    assert [bool(cache.get(name)) for name in "abcd"] == [True, False, True, True]


def test_a_file_of_another_version_of_the_program_does_not_stop_this_one(file):
    with sqlite3.connect(file) as database:
        database.execute("CREATE TABLE answers (key TEXT, generation TEXT)")
        database.execute("INSERT INTO answers VALUES ('key', 'g')")
    database.close()
    cache = AnswerCache(file)
    assert cache.get("key") is None
    cache.put("key", ANSWER)
    assert cache.get("key") == ANSWER


@pytest.mark.parametrize("damage", [b"no database at all" * 99, b"", None])
def test_a_damaged_file_is_built_anew(file, damage):
    cache = AnswerCache(file)
    cache.put("key", ANSWER)
    if damage is None:  # the header is whole, the pages are not
        data = bytearray(file.read_bytes())
        data[100:] = b"\xff" * (len(data) - 100)
        file.write_bytes(data)
    else:
        file.write_bytes(damage)
    assert cache.get("key") is None
    cache.put("key", ANSWER)
    cache.put("key", ANSWER)
    assert AnswerCache(file).get("key") == ANSWER


def test_a_row_that_is_no_answer_is_no_answer(file):
    cache = AnswerCache(file)
    cache.put("key", ANSWER)
    with sqlite3.connect(file) as database:
        database.execute("UPDATE answers_1 SET answer = '[1'")
    database.close()
    assert cache.get("key") is None


def test_a_folder_that_cannot_hold_it_costs_the_cache_only(tmp_path):
    cache = AnswerCache(tmp_path / "nowhere" / "answers.sqlite")
    cache.put("key", ANSWER)
    assert cache.get("key") is None


def _write(folder, name, together):
    for n in range(20):  # a new file each time: its making is where processes once refused each other
        together.wait()
        AnswerCache(folder / f"{n}.sqlite").put(name, {"n": n})
        AnswerCache(folder / "all.sqlite").put(f"{name}-{n}", {"n": n})


def test_processes_write_at_once_and_nothing_is_lost(tmp_path):
    spawn = multiprocessing.get_context("spawn")
    together = spawn.Barrier(4)
    workers = [spawn.Process(target=_write, args=(tmp_path, name, together)) for name in "abcd"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
        assert worker.exitcode == 0
    for n in range(20):
        caches = AnswerCache(tmp_path / f"{n}.sqlite"), AnswerCache(tmp_path / "all.sqlite")
        assert [caches[0].get(name) for name in "abcd"] == [{"n": n}] * 4
        assert [caches[1].get(f"{name}-{n}") for name in "abcd"] == [{"n": n}] * 4
