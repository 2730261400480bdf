"""Tables: whole or not at all, and hashed as sets of rows."""

import os
import signal
import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import CgragError
from pipelines.settings import PROJECT
from pipelines.tables import (
    CHUNKS,
    SKIPPED,
    atomic,
    digest,
    read_json,
    read_manifest,
    read_table,
    row_hash,
    write_json,
    write_table,
)

ROWS = [{"path": "a", "reason": "b", "detail": "c"}, {"path": "ä", "reason": "", "detail": "\n"}]


def leftovers(folder, *kept):
    return sorted(path.name for path in folder.iterdir() if path.name not in kept)


def test_a_table_is_read_as_it_was_written(tmp_path):
    write_table(tmp_path / "x" / "t.parquet", ROWS, SKIPPED, {"fingerprint": "f", "n": 1})
    assert read_table(tmp_path / "x" / "t.parquet", SKIPPED).to_pylist() == ROWS
    assert read_manifest(tmp_path / "x" / "t.parquet") == {"fingerprint": "f", "n": 1}
    assert leftovers(tmp_path / "x", "t.parquet") == []


def test_an_exception_while_writing_leaves_the_old_file(tmp_path):
    file = tmp_path / "t.json"
    write_json(file, 1)
    with pytest.raises(KeyError), atomic(file) as temporary:
        temporary.write_text("half")
        raise KeyError
    assert read_json(file, "") == 1
    with pytest.raises(TypeError):
        write_json(file, object())
    with pytest.raises((pa.ArrowException, TypeError)):
        write_table(file, [{"path": 1, "reason": object()}], SKIPPED, {})
    assert read_json(file, "") == 1
    assert leftovers(tmp_path, "t.json", "dagster-home") == []


DIES = """
import sys
from pathlib import Path
from pipelines.tables import atomic
with atomic(Path(sys.argv[1])) as temporary:
    temporary.write_text("half")
    print("written", flush=True)
    sys.stdin.read()
"""


def test_a_process_killed_while_writing_leaves_the_old_file(tmp_path):
    file = tmp_path / "t.json"
    write_json(file, "old")
    child = subprocess.Popen(
        [sys.executable, "-c", DIES, file], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with child:
        assert child.stdout.readline() == b"written\n"
        child.send_signal(signal.SIGKILL)
    assert child.returncode == -signal.SIGKILL
    assert read_json(file, "") == "old"


def test_what_is_written_may_be_read_by_others(tmp_path):
    write_json(tmp_path / "t.json", 1)
    assert (tmp_path / "t.json").stat().st_mode & 0o777 == 0o644


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path, monkeypatch):
    happened = []
    really_sync = os.fsync
    monkeypatch.setattr(os, "fsync", lambda handle: happened.append((tmp_path / "t").exists()) or really_sync(handle))
    write_json(tmp_path / "t", 1)
    assert happened == [False]


@pytest.mark.parametrize("data", [b"", b"PAR1", b"not parquet at all", None])
def test_a_damaged_table_has_no_manifest_and_is_refused_with_its_remedy(tmp_path, data):
    file = tmp_path / "t.parquet"
    write_table(file, ROWS, SKIPPED, {"fingerprint": "f"})
    file.write_bytes(file.read_bytes()[:-9] if data is None else data)
    assert read_manifest(file) is None
    with pytest.raises(CgragError, match=r"t\.parquet is damaged") as refused:
        read_table(file, SKIPPED, "Do this.")
    assert "Remove that file" in refused.value.remedy  # with its manifest sound, it would count as built


def test_a_missing_table_has_no_manifest_and_is_refused_with_its_remedy(tmp_path):
    assert read_manifest(tmp_path / "t.parquet") is None
    with pytest.raises(CgragError, match=r"t\.parquet is missing") as refused:
        read_table(tmp_path / "t.parquet", SKIPPED)
    assert "cgrag run" in refused.value.remedy


def test_a_table_of_other_columns_is_refused(tmp_path):
    write_table(tmp_path / "t.parquet", ROWS, SKIPPED, {})
    with pytest.raises(CgragError, match="another version"):
        read_table(tmp_path / "t.parquet", CHUNKS)


def test_a_table_that_is_not_ours_has_no_manifest(tmp_path):
    pq.write_table(pa.table({"x": [1]}), tmp_path / "t.parquet")
    assert read_manifest(tmp_path / "t.parquet") is None
    pq.write_table(pa.table({"x": [1]}).replace_schema_metadata({"cgrag": "[1]"}), tmp_path / "t.parquet")
    assert read_manifest(tmp_path / "t.parquet") is None


def test_json_is_read_as_it_was_written_and_damage_is_named(tmp_path):
    assert read_json(tmp_path / "x.json", "") is None
    write_json(tmp_path / "x.json", {"ä": ["\ud800", 1.5, None]})
    assert read_json(tmp_path / "x.json", "") == {"ä": ["\ud800", 1.5, None]}
    (tmp_path / "x.json").write_bytes(b'{"a": ')
    with pytest.raises(CgragError, match=r"x\.json is damaged") as refused:
        read_json(tmp_path / "x.json", "Do this.")
    assert refused.value.remedy == "Do this."


CELLS = st.fixed_dictionaries({name: st.sampled_from(["", "a", "b", "ä"]) for name in SKIPPED.names})


def table(rows):
    return pa.Table.from_pylist(rows, schema=SKIPPED)


@settings(max_examples=100)
@given(st.lists(CELLS, max_size=6), st.randoms())
def test_the_row_hash_does_not_know_the_order_of_rows(rows, random):
    turned = list(rows)
    random.shuffle(turned)
    assert row_hash(table(rows)) == row_hash(table(turned))


@settings(max_examples=200)
@given(st.lists(CELLS, max_size=4), st.lists(CELLS, max_size=4))
def test_the_row_hash_knows_every_value_and_every_repeat(first, second):
    def key(row):
        return [row[name] for name in SKIPPED.names]

    same = sorted(map(key, first)) == sorted(map(key, second))
    assert (row_hash(table(first)) == row_hash(table(second))) == same


def test_a_digest_keeps_its_parts_apart():
    assert len({digest("a", "b"), digest("ab"), digest("a", ["b"]), digest(["a", "b"]), digest("b", "a")}) == 5
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
