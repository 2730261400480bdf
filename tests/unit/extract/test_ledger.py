"""The ledger: whatever is done to its files and by however many, an answer once flushed is read again."""

import os
import random
import shutil
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.errors import CgragError
from pipelines.extract import segments
from pipelines.extract.ledger import Ledger
from pipelines.extract.segments import SET_ASIDE, list_segments, reading, removing, write_segment
from pipelines.layout import Layout
from pipelines.settings import PROJECT, ExtractSettings
from pipelines.tables import digest
from tests.extraction import ledger_row as row

RECIPE = "fake-12345678"


def opened(home, deep=False, **settings):
    return Ledger(home.layout, RECIPE, ExtractSettings(**settings), deep=deep)


@pytest.fixture
def folder(home):
    return home.layout.ledgers / RECIPE


def add(home, *rows, **settings):
    with opened(home, **settings) as ledger:
        for each in rows:
            ledger.add(each)


def keys(names):
    return {digest(name) for name in names}


def read(home, names, deep=False):
    with opened(home, deep) as ledger:
        ledger.refresh()
        return ledger.rows(keys(names)), ledger.set_aside


def test_rows_are_read_as_they_were_added(home):
    rows = [row("a"), row("ä", "http 500", detail="\ud800".encode("utf-8", "replace").decode(), pieces=[])]
    add(home, *rows)
    found, _ = read(home, ["a", "ä", "nothing"])
    assert found == {each["key"]: each for each in rows}


def test_a_home_without_a_ledger_has_no_rows_and_gets_no_folder(home, folder):
    assert read(home, ["a"]) == ({}, [])
    with opened(home) as ledger:
        assert ledger.table().num_rows == 0
        assert ledger.compact() == 0
    assert not folder.exists()


def test_what_is_added_is_flushed_by_number_or_by_time_or_at_the_end(home, folder, monkeypatch):
    with opened(home, flush_results=3, flush_seconds=7) as ledger:
        ledger.add(row(1))
        ledger.add(row(2))
        assert list_segments(folder) == []
        assert 0 < ledger.flush_due <= 7
        ledger.add(row(3))
        assert len(list_segments(folder)) == 1
        ledger.add(row(4))
    assert len(list_segments(folder)) == 2
    assert len(read(home, [1, 2, 3, 4])[0]) == 4


def test_another_worker_sees_what_was_flushed(home):
    with opened(home) as one, opened(home) as two:
        two.refresh()
        one.add(row("a"))
        one.flush()
        two.refresh()
        assert two.is_ok(digest("a"))
        assert len(two.rows(keys(["a"]))) == 1


# damage


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def empty(path):
    path.write_bytes(b"")


def overwrite(path):
    data = bytearray(path.read_bytes())
    middle = len(data) // 4
    data[middle : middle + 40] = b"\0" * 40
    path.write_bytes(data)


def flip_one_bit_of_every_page(path):
    data = bytearray(path.read_bytes())
    for at in range(8, len(data) // 2, 16):
        data[at] ^= 1
    path.write_bytes(data)


def foreign(path):
    pq.write_table(pa.table({"x": [1]}), path)


def of_another_recipe(path):
    other = path.parent.with_name("other-87654321")
    other.mkdir()
    shutil.move(write_segment(other, [row("b")]), path)


def of_another_schema(path):
    table = pq.read_table(path).drop(["seconds"])
    pq.write_table(table, path)


def text(path):
    path.write_text("no parquet at all\n" * 20)


DAMAGES = [cut, empty, overwrite, flip_one_bit_of_every_page, foreign, of_another_recipe, of_another_schema, text]


@pytest.mark.parametrize("damage", DAMAGES, ids=lambda damage: damage.__name__)
def test_a_damaged_segment_is_named_and_set_aside_and_the_others_are_read(home, folder, damage):
    for name in "abc":
        add(home, row(name))
    broken = next(path for path in list_segments(folder) if pq.read_table(path)["key"].to_pylist() == [digest("b")])
    damage(broken)
    found, told = read(home, "abc", deep=True)
    assert found.keys() == keys("ac")
    assert len(told) == 1
    assert str(broken) in told[0]
    assert (folder / SET_ASIDE / broken.name).exists()
    assert not broken.exists()
    assert read(home, "abc", deep=True)[1] == []


@pytest.mark.parametrize("damage", [cut, overwrite])
def test_damage_that_shows_only_when_the_rows_are_read_loses_no_other_row(home, folder, damage):
    add(home, row("a"))
    add(home, row("b"))
    with opened(home) as ledger:
        ledger.refresh()
        damage(list_segments(folder)[0])
        assert len(ledger.rows(keys("ab"))) == 1
        assert sum(ledger.is_ok(digest(name)) for name in "ab") == 1
        assert len(ledger.set_aside) == 1


def test_an_unfinished_file_of_a_killed_worker_is_no_segment(home, folder):
    add(home, row("a"))
    (folder / ".dead.parquet.x1y2").write_bytes(b"PAR1")
    assert read(home, "a") == ({digest("a"): row("a")}, [])


def test_damage_is_not_compacted_away(home, folder):
    for name in "abc":
        add(home, row(name))
    broken = list_segments(folder)[0]
    cut(broken)
    with opened(home) as ledger:
        assert ledger.compact() == 2
    assert broken.exists()
    found, told = read(home, "abc")
    assert (len(found), len(told)) == (2, 1)


# a full disk


@pytest.fixture
def full(monkeypatch):
    """Make every write of a segment fail until it is cleared."""
    state = {"full": True}
    really = pq.write_table

    def write(*arguments, **options):
        if state["full"]:
            raise OSError(28, "No space left on device")
        return really(*arguments, **options)

    monkeypatch.setattr(segments.pq, "write_table", write)
    return state


def test_a_full_disk_is_told_and_what_could_not_be_stored_is_kept_for_the_next_try(home, folder, full):
    with opened(home) as ledger:
        ledger.add(row("a"))
        with pytest.raises(CgragError, match=r"1 answers could not be stored .* No space left"):
            ledger.flush()
        assert [path.name for path in folder.iterdir()] == []
        full["full"] = False
    assert len(read(home, "a")[0]) == 1


def test_compaction_on_a_full_disk_loses_nothing(home, folder, full):
    full["full"] = False
    for name in "abc":
        add(home, row(name))
    full["full"] = True
    with opened(home) as ledger, pytest.raises(OSError, match="No space left"):
        ledger.compact()
    assert len(read(home, "abc")[0]) == 3


# compaction


def test_compaction_leaves_one_segment_with_the_merged_rows(home, folder):
    for n in range(5):
        add(home, row("a", result_hash=str(n)), row(n), row("f", "length", answered_at=float(n)))
    before, _ = read(home, ["a", "f", *range(5)])
    with opened(home) as ledger:
        ledger.refresh()
        assert ledger.compact() == 5
        assert ledger.rows(keys(["a", "f", *range(5)])) == before
        assert ledger.compact() == 0
    (segment,) = list_segments(folder)
    assert pq.read_metadata(segment).num_rows == 7
    assert read(home, ["a", "f", *range(5)])[0] == before


def test_large_segments_are_left_as_they_are(home, folder, monkeypatch):
    monkeypatch.setattr("pipelines.extract.ledger._LARGE_ROWS", 3)
    add(home, *(row(n) for n in range(3)))
    large = list_segments(folder)
    add(home, row("a"))
    add(home, row("b"))
    with opened(home) as ledger:
        assert ledger.compact() == 2
    assert large[0] in list_segments(folder)
    assert len(list_segments(folder)) == 2


def test_nothing_is_removed_while_another_reads(home, folder):
    add(home, row("a"))
    add(home, row("b"))
    with reading(folder), reading(folder), opened(home) as ledger:
        assert ledger.compact() == 0
    with opened(home) as ledger, removing(folder) as held:
        assert held
        with removing(folder) as twice:
            assert not twice


CHURN = """
import sys
from pathlib import Path
from pipelines.extract.ledger import Ledger
from pipelines.layout import Layout
from pipelines.settings import ExtractSettings
sys.path.insert(0, sys.argv[4])
from tests.unit.extract.test_ledger import RECIPE, row
home, name, times = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
with Ledger(Layout(home), RECIPE, ExtractSettings(flush_results=1)) as ledger:
    for n in range(times):
        ledger.add(row(f"{name}{n}"))
        ledger.compact()
        mine = ledger.rows(row(f"{name}{done}")["key"] for done in range(n + 1))
        assert len(mine) == n + 1, (name, n, len(mine))
print("done")
"""


def test_writers_readers_and_compaction_in_several_processes_lose_nothing(home):
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHURN, str(home.settings.home), name, "25", str(PROJECT)],
            stdout=subprocess.PIPE,
            cwd=PROJECT,
        )
        for name in "xyz"
    ]
    assert [child.communicate()[0] for child in children] == [b"done\n"] * 3
    found, told = read(home, [f"{name}{n}" for name in "xyz" for n in range(25)])
    assert (len(found), told) == (75, [])


# claims

HOLDS = """
import sys
from pathlib import Path
from pipelines.extract.ledger import Ledger
from pipelines.layout import Layout
from pipelines.settings import ExtractSettings
ledger = Ledger(Layout(Path(sys.argv[1])), sys.argv[2], ExtractSettings())
assert ledger.claim(sys.argv[3])
print("held", flush=True)
sys.stdin.read()
"""


def test_a_key_that_another_process_is_asking_for_is_not_asked_for_until_that_ends(home):
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(home.settings.home), RECIPE, digest("a")],
        cwd=PROJECT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with child, opened(home) as ledger:
        assert child.stdout.readline() == b"held\n"
        assert not ledger.claim(digest("a"))
        assert ledger.claim(digest("b"))
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert ledger.claim(digest("a"))


def test_a_key_with_a_result_is_not_asked_for_even_if_it_came_just_now(home):
    with opened(home) as one, opened(home) as two:
        two.refresh()
        one.add(row("a"))
        one.flush()
        assert not two.claim(digest("a"))
        assert two.is_ok(digest("a"))


def test_a_file_system_without_locks_grants_every_claim(home, monkeypatch):
    def no_locks(*_):
        raise OSError(95, os.strerror(95))

    monkeypatch.setattr("pipelines.extract.ledger.fcntl.lockf", no_locks)
    with opened(home) as ledger:
        assert ledger.claim(digest("a"))
        ledger.release(digest("a"))


def test_the_names_of_segments_are_unique(home, folder):
    folder.mkdir(parents=True)
    names = {write_segment(folder, [row(random.random())]).name for _ in range(20)}
    assert len(names) == 20
    assert Layout(home.settings.home).ledgers == folder.parent
