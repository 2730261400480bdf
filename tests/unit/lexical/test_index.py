"""The stored index: what is loaded is what was built, and nothing wrong is ever loaded."""

import json
import threading

import numpy as np
import pytest

from pipelines.corpus.scan import load_plan
from pipelines.errors import CgragError
from pipelines.lexical import index as module
from pipelines.lexical.index import build_index, current_generation, load_index, score
from pipelines.retrieve.rankers import Lexical
from pipelines.retrieve.search import search
from pipelines.settings import FieldSettings
from pipelines.state import chunk_fingerprints
from tests.support import write_tree

FILES = {
    "a.py": "def vole():\n    return 'shrew'\n",
    "b/c.md": "# Voles\n\nA vole is no mole.\n\n## Moles\n\nmole\n",
    "d.txt": "badger badger\n",
}


@pytest.fixture
def indexed(tree, home):
    write_tree(tree, FILES)
    home.build(tree)
    return home


def test_what_is_loaded_is_what_was_scored(indexed):
    loaded = load_index(indexed.settings)
    table = indexed.table("chunks").sort_by("chunk_id")
    chunks, files, vocabulary, file_of = score(table, indexed.settings.lexical)
    for stored, scored in ((loaded.chunks, chunks), (loaded.files, files)):
        assert stored.vocab_dict == vocabulary
        assert stored.scores["num_docs"] == scored.shape[0]
        for part in ("data", "indices", "indptr"):
            assert np.array_equal(stored.scores[part], getattr(scored, part))
    assert np.array_equal(loaded.file_of, file_of)
    assert loaded.table.drop_columns(["parts"]).to_pylist() == table.to_pylist()
    assert len(loaded) == len(table)


def test_the_large_parts_are_memory_mapped(indexed):
    loaded = load_index(indexed.settings)
    assert isinstance(loaded.chunks.scores["data"], np.memmap)
    assert isinstance(loaded.file_of, np.memmap)


def test_chunks_know_the_definitions_and_sections_in_them(indexed):
    rows = {row["path"]: row for row in load_index(indexed.settings).table.to_pylist()}
    assert [part["name"] for part in rows["a.py"]["parts"]] == ["vole"]
    assert [part["name"] for part in rows["b/c.md"]["parts"]] == ["Voles", "Voles > Moles"]


def test_building_again_gives_the_same_generation_and_leaves_one_folder(indexed, tree):
    generation = current_generation(indexed.settings)
    indexed.build(tree)
    assert current_generation(indexed.settings) == generation
    assert len(list(indexed.layout.bm25.parent.glob("bm25-*"))) == 1


def test_other_text_or_other_weights_are_another_generation(indexed, tree):
    generation = current_generation(indexed.settings)
    (tree / "d.txt").write_text("otter\n")
    indexed.build(tree)
    other = current_generation(indexed.settings)
    indexed.settings.lexical.k1 = 1.5
    indexed.build(tree)
    assert len({generation, other, current_generation(indexed.settings)}) == 3


def test_without_an_index_the_command_to_build_it_is_told(home):
    with pytest.raises(CgragError, match="no search index yet") as refused:
        load_index(home.settings)
    assert "cgrag run" in refused.value.remedy
    assert current_generation(home.settings) is None


def test_an_index_of_other_settings_is_refused_with_both_ways_out(indexed):
    for changed, named in (
        ({"lexical": indexed.settings.lexical.model_copy(update={"k1": 2.0})}, "LEXICAL__K1"),
        (
            {"lexical": indexed.settings.lexical.model_copy(update={"body": FieldSettings(weight=9, b=0.1)})},
            "LEXICAL__BODY",
        ),
        ({"chunking": indexed.settings.chunking.model_copy(update={"cap": 500})}, "CHUNKING__CAP"),
    ):
        with pytest.raises(CgragError, match="was built with") as refused:
            load_index(indexed.settings.model_copy(update=changed))
        assert "cgrag run" in refused.value.remedy
        assert f"unset CGRAG_{named}" in refused.value.remedy


def test_an_index_of_another_version_is_refused(indexed, monkeypatch):
    monkeypatch.setattr(module, "VERSION", 99)
    with pytest.raises(CgragError, match="another version") as refused:
        load_index(indexed.settings)
    assert "cgrag run" in refused.value.remedy


def stored_files(home):
    folder = home.layout.bm25.parent / json.loads(home.layout.bm25.read_bytes())["folder"]
    return sorted(path for path in folder.rglob("*") if path.is_file())


NAMES = [
    "chunks.arrow", "chunks/data.csc.index.npy", "chunks/indices.csc.index.npy", "chunks/indptr.csc.index.npy",
    "chunks/params.index.json", "chunks/vocab.index.json", "file_of.npy", "files/data.csc.index.npy",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("how", ["gone", "empty", "cut", "garbage"])
def test_a_damaged_index_is_refused_with_the_command_that_mends_it(indexed, name, how):
    (file,) = [path for path in stored_files(indexed) if path.as_posix().endswith(f"/{name}")]
    if how == "gone":
        file.unlink()
    elif how == "empty":
        file.write_bytes(b"")
    elif how == "cut":
        file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    else:
        file.write_bytes(b"\xff" * file.stat().st_size)
    with pytest.raises(CgragError) as refused:
        load_index(indexed.settings)
    assert "cgrag run --select bm25_index" in refused.value.remedy


def test_a_damaged_manifest_is_refused(indexed):
    indexed.layout.bm25.write_text("{")
    with pytest.raises(CgragError, match="damaged"):
        load_index(indexed.settings)


@pytest.mark.parametrize("step", ["_save", "_save_rows", "write_json"])
def test_the_old_index_survives_a_build_that_fails(indexed, tree, monkeypatch, step):
    before = indexed.search("vole")
    (tree / "new.md").write_text("vole vole vole\n")

    def fail(*arguments):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(OSError, match="No space"):
        patch.setattr(module, step, fail)
        indexed.build(tree)
    assert indexed.search("vole") == before
    indexed.build(tree)
    assert "new.md" in indexed.paths("vole")
    assert len(list(indexed.layout.bm25.parent.glob("bm25-*"))) == 1


def test_a_reader_keeps_the_index_that_it_has_open(indexed, tree):
    held = Lexical(load_index(indexed.settings))
    before = search(held, "vole")
    write_tree(tree, {"a.py": "x = 1\n", "b/c.md": "gone\n"})
    indexed.build(tree)
    assert search(held, "vole") == before
    assert indexed.search("vole") == []


def test_an_empty_corpus_has_an_index_that_finds_nothing(tree, home):
    home.build(tree)
    assert len(load_index(home.settings)) == 0
    assert home.search("anything") == []


def test_two_builds_at_once_leave_one_index_that_can_be_read(indexed):
    chunked = chunk_fingerprints(indexed.layout, load_plan(indexed.layout))
    errors = []

    def build():
        try:
            for _ in range(8):
                build_index(indexed.settings, chunked)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=build) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(load_index(indexed.settings)) == len(indexed.rows("chunks"))
    assert len(list(indexed.layout.bm25.parent.glob("bm25-*"))) == 1
