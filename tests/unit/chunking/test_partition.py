"""The chunks of a partition: ids that outlive edits, fingerprints, and files that go wrong."""

import pytest

from pipelines.chunking.partition import (
    chunk_partition,
    chunk_text,
    partition_fingerprint,
    stored_fingerprint,
)
from pipelines.corpus.decode import Undecodable
from pipelines.corpus.scan import load_plan
from pipelines.settings import ChunkSettings
from pipelines.tables import PARTITIONED
from tests.support import write_tree

UNITS = ChunkSettings(strategy="units")
SOURCE = "def f():\n    return 1\n\n\ndef g():\n    return 2\n\n\ndef g2():\n    return 2\n"


def ids(source, path="a.py"):
    rows = chunk_text(path, source.encode(), "python", UNITS).chunks
    return {row["text"]: row["chunk_id"] for row in rows}


def test_an_edit_above_renames_nothing_below():
    before, after = ids(SOURCE), ids("import os\n\n\ndef new():\n    return os\n\n\n" + SOURCE)
    assert before.items() < after.items()


def test_an_edit_renames_just_what_it_changes():
    before, after = ids(SOURCE), ids(SOURCE.replace("return 1", "return 3"))
    assert len(before.items() & after.items()) == 2


def test_the_same_text_in_another_file_has_another_id():
    assert not set(ids(SOURCE).values()) & set(ids(SOURCE, "b.py").values())


def test_equal_texts_of_a_file_are_counted():
    rows = chunk_text("a.py", b"def f(): pass\n" * 3, "python", UNITS).chunks
    assert len({row["text_hash"] for row in rows}) == 1
    assert len({row["chunk_id"] for row in rows}) == 3


def test_rows_say_where_things_are():
    rows = chunk_text("a.py", SOURCE.encode(), "python", ChunkSettings())
    assert [(row["start_line"], row["end_line"]) for row in rows.chunks] == [(1, 10)]
    assert [(row["symbol"], row["start_line"], row["end_line"]) for row in rows.units] == [
        ("f", 1, 2), ("g", 5, 6), ("g2", 9, 10),
    ]  # fmt: skip
    assert rows.document["lines"] == 10


def test_binary_has_no_rows():
    with pytest.raises(Undecodable):
        chunk_text("a.bin", b"\0" * 100, "text", ChunkSettings())


FILES = [{"path": "a.py", "sha256": "1"}, {"path": "b.py", "sha256": "2"}]


def test_a_fingerprint_is_of_paths_contents_and_settings_in_any_order():
    base = partition_fingerprint(FILES, ChunkSettings())
    assert partition_fingerprint(FILES[::-1], ChunkSettings()) == base
    others = [
        partition_fingerprint(FILES[:1], ChunkSettings()),
        partition_fingerprint([FILES[0] | {"sha256": "3"}, FILES[1]], ChunkSettings()),
        partition_fingerprint([FILES[0] | {"path": "c.py"}, FILES[1]], ChunkSettings()),
        partition_fingerprint(FILES, ChunkSettings(cap=1999)),
        partition_fingerprint(FILES, ChunkSettings(overlap=1)),
    ]
    assert len({base, *others}) == 6


@pytest.fixture
def partition(tree, home):
    """A built partition of two files: the home, its key, and the files of its plan."""
    write_tree(tree, {"a.py": SOURCE, "b.md": "# B\n\nwords\n"})
    home.build(tree)
    ((key, files),) = load_plan(home.layout).partitions.items()
    return home, key, files


def test_what_is_stored_has_the_fingerprint_that_the_plan_asks_for(partition):
    home, key, files = partition
    assert stored_fingerprint(home.layout, key) == partition_fingerprint(files, home.settings.chunking)


@pytest.mark.parametrize("name", PARTITIONED)
@pytest.mark.parametrize("how", ["gone", "damaged", "empty", "foreign"])
def test_a_partition_with_a_table_that_is_not_whole_is_missing(partition, name, how):
    home, key, _ = partition
    file = home.layout.partition(key, name)
    if how == "gone":
        file.unlink()
    elif how == "damaged":
        file.write_bytes(file.read_bytes()[:-20])
    elif how == "empty":
        file.write_bytes(b"")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"x": [1]}), file)
    assert stored_fingerprint(home.layout, key) is None


def test_a_partition_whose_tables_are_of_two_builds_is_missing(partition, tree):
    home, key, _ = partition
    old = home.layout.partition(key, "chunks").read_bytes()
    write_tree(tree, {"a.py": "x = 1\n"})
    home.build(tree)
    home.layout.partition(key, "chunks").write_bytes(old)
    assert stored_fingerprint(home.layout, key) is None


def test_a_file_that_changed_after_the_walk_leaves_its_partition_stale(partition, tree):
    home, key, files = partition
    write_tree(tree, {"a.py": "changed = 1\n"})
    result = chunk_partition(tree, key, files, home.settings.chunking, home.layout)
    assert result.fingerprint == stored_fingerprint(home.layout, key)
    assert result.fingerprint != partition_fingerprint(files, home.settings.chunking)


def test_a_file_that_vanished_is_a_document_without_chunks_and_a_problem(partition, tree):
    home, key, files = partition
    (tree / "a.py").unlink()
    result = chunk_partition(tree, key, files, home.settings.chunking, home.layout)
    assert result.problems == [("a.py", "vanished: deleted after it was listed")]
    assert [row["path"] for row in home.rows("chunks")] == ["b.md"]
    assert [(row["path"], row["parser"]) for row in home.rows("documents")] == [("a.py", ""), ("b.md", "markdown")]
