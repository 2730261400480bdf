"""What `status` says of a home, and what `run` would do."""

import pytest

from pipelines.chunking.partition import chunk_partition
from pipelines.corpus.prune import prune
from pipelines.corpus.scan import load_plan
from pipelines.state import (
    asset_states,
    chunk_fingerprints,
    chunks_todo,
    clear_failure,
    counts,
    failures,
    record_failure,
)
from tests.support import write_tree


@pytest.fixture
def built(tree, new_home):
    write_tree(tree, {"a/x.py": "x = 1\n", "b/y.py": "y = 1\n", "z.md": "# Z\n\nwords\n"})
    home = new_home(partition_chunks=0)
    home.build(tree)
    return home


def states(home, found=None):
    return {state.name: state.state for state in asset_states(home.settings, found) if state.name in FRESH}


FRESH = {"corpus_files": "fresh", "chunks": "fresh", "bm25_index": "fresh"}


def test_before_the_first_run_all_is_missing(home):
    assert set(states(home).values()) == {"missing"}
    assert counts(home.settings) == {"files": 0, "skipped": 0, "partitions": 0, "units": 0, "chunks": 0}


def test_after_a_run_all_is_fresh_and_counted(built, tree):
    assert states(built, built.scan(tree)) == FRESH
    assert counts(built.settings) == {"files": 3, "skipped": 0, "partitions": 3, "units": 3, "chunks": 3}


def test_a_changed_corpus_makes_the_files_stale(built, tree):
    write_tree(tree, {"a/x.py": "x = 2\n"})
    assert states(built, built.scan(tree))["corpus_files"] == "stale"
    assert states(built) == FRESH


def test_changed_chunk_settings_make_every_partition_stale(built):
    built.settings.chunking.cap = 500
    (corpus, chunks, index) = asset_states(built.settings)[:3]
    assert (corpus.state, chunks.state, index.state) == ("fresh", "stale", "stale")
    assert chunks.todo == [".", "a", "b"]


def test_changed_index_settings_make_just_the_index_stale(built):
    built.settings.lexical.k1 = 2.0
    assert states(built) == FRESH | {"bm25_index": "stale"}


def test_a_partition_that_is_gone_or_damaged_is_to_be_done(built):
    file = built.layout.partition("a", "units")
    file.write_bytes(file.read_bytes()[:-5])
    plan = load_plan(built.layout)
    assert chunks_todo(built.layout, built.settings, plan, plan) == ["a"]
    assert set(chunk_fingerprints(built.layout, plan)) == {".", "b"}
    (_, chunks, index) = asset_states(built.settings)[:3]
    assert (chunks.state, chunks.todo, index.state) == ("stale", ["a"], "stale")


def test_only_planned_keys_are_to_be_done(built):
    plan = load_plan(built.layout)
    assert chunks_todo(built.layout, built.settings, plan, ["a", "nowhere"]) == []


@pytest.mark.parametrize("how", ["manifest", "folder", "file", "cut"])
def test_a_damaged_index_is_to_be_built(built, tree, how):
    import shutil

    (folder,) = built.layout.bm25.parent.glob("bm25-*")
    if how == "manifest":
        built.layout.bm25.write_text("{")
    elif how == "folder":
        shutil.rmtree(folder)
    elif how == "file":
        (folder / "file_of.npy").unlink()
    else:
        (folder / "chunks.arrow").write_bytes(b"ARROW1")
    assert states(built) == FRESH | {"bm25_index": "missing"}
    built.build(tree)
    assert states(built) == FRESH
    assert built.paths("words") == ["z.md"]


def test_a_failure_is_kept_until_it_is_cleared(built):
    plan = load_plan(built.layout)
    record_failure(built.layout, "chunks", "a", "OSError: no")
    record_failure(built.layout, "chunks", "gone", "OSError: no")
    assert failures(built.layout, "chunks", plan) == {"a": "OSError: no"}
    chunks = asset_states(built.settings)[1]
    assert (chunks.state, chunks.todo, chunks.failed) == ("failed", ["a"], {"a": "OSError: no"})
    clear_failure(built.layout, "chunks", "a")
    clear_failure(built.layout, "chunks", "a")
    assert failures(built.layout, "chunks", plan) == {}


def test_pruning_takes_partitions_and_failures_that_are_not_planned(built, tree):
    plan = load_plan(built.layout)
    chunk_partition(tree, "old", plan.partitions["a"], built.settings.chunking, built.layout)
    record_failure(built.layout, "chunks", "old", "x")
    record_failure(built.layout, "chunks", "a", "x")
    assert prune(built.layout, plan) == 1
    assert not built.layout.partition("old", "chunks").exists()
    assert built.layout.partition("a", "chunks").exists()
    assert [path.name for path in (built.layout.failures / "chunks").iterdir()] == [
        built.layout.failure("chunks", "a").name
    ]
