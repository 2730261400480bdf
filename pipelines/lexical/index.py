"""The bm25_index stage: two bm25s indexes (chunks, files) with our scores, and the chunks, memory-mapped."""

import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.lexical.bm25f import Field, TermCounter, bm25f
from pipelines.lexical.tokens import VERSION as TOKENS_VERSION
from pipelines.locks import locked
from pipelines.progress import Progress, silent
from pipelines.settings import LexicalSettings, Settings
from pipelines.tables import CHUNKS, OUTLINE, digest, read_json, read_record, read_tables, write_json

if TYPE_CHECKING:
    from bm25s import BM25  # brings in numba: a third of a second

VERSION = 1
"""Raise it when the same chunks give another index."""
REBUILD = "Build it anew:  cgrag run --select bm25_index"
_ARROW = "chunks.arrow"


@dataclass(frozen=True)
class BuiltIndex:
    """What was built."""

    chunks: int
    files: int
    terms: int
    bytes: int
    generation: str
    frequent: list[tuple[str, int]]
    """The terms that most chunks have, with the number of these chunks."""


@dataclass(frozen=True)
class LexicalIndex:
    """A loaded index. Documents are chunks in the order of their ids, so that equal scores are in that order too."""

    chunks: "BM25"
    files: "BM25"
    file_of: NDArray[np.int32]
    """For each chunk the number of its file."""
    table: pa.Table
    """The rows of the chunks and the named parts of each (`parts`: start, end, start_line, end_line, name)."""
    settings: LexicalSettings
    generation: str
    chunked: str
    """A hash of the partitions' fingerprints: another index of the same has the same chunks in the same order."""

    def __len__(self) -> int:
        return int(self.table.num_rows)


def index_inputs(settings: Settings, fingerprints: dict[str, str]) -> dict[str, Any]:
    """What an index is built from; the same inputs give the same index."""
    return {
        "chunks": digest(fingerprints),
        "chunking": settings.chunking.model_dump(),
        "lexical": settings.lexical.model_dump(),
        "version": [VERSION, TOKENS_VERSION],
    }


def load_chunks(layout: Layout, keys: Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """Return the chunks and the outline of all partitions, chunks sorted by id."""
    chunks = read_tables((layout.partition(key, "chunks") for key in keys), CHUNKS)
    outline = read_tables((layout.partition(key, "outline") for key in keys), OUTLINE)
    return (
        chunks.sort_by("chunk_id").combine_chunks(),
        outline.sort_by([("path", "ascending"), ("start", "ascending")]),
    )


def build_index(settings: Settings, fingerprints: dict[str, str], progress: Progress = silent) -> BuiltIndex:
    """Build and promote the index of the stored chunks; `fingerprints` are those of their partitions.

    Readers keep the index that they have open; the manifest `index/bm25.json` names the current folder.
    """
    layout = Layout(settings.home)
    table, outline = load_chunks(layout, sorted(fingerprints))
    progress(0, table.num_rows)
    chunk_scores, file_scores, vocabulary, file_of = score(table, settings.lexical)
    progress(table.num_rows, table.num_rows)
    layout.bm25.parent.mkdir(parents=True, exist_ok=True)
    generation = digest(table["chunk_id"].to_pylist(), table["start"].to_pylist(), settings.lexical.model_dump())
    with locked(layout.bm25.parent / "bm25.lock"):  # another run would remove this folder before it is named
        folder = Path(tempfile.mkdtemp(prefix="bm25-", dir=layout.bm25.parent))
        folder.chmod(0o755)
        _save(folder / "chunks", chunk_scores, vocabulary)
        _save(folder / "files", file_scores, vocabulary)
        np.save(folder / "file_of.npy", file_of, allow_pickle=False)
        _save_rows(folder / _ARROW, table, outline)
        write_json(
            layout.bm25,
            index_inputs(settings, fingerprints)
            | {"folder": folder.name, "generation": generation, "rows": table.num_rows},
        )
        for old in layout.bm25.parent.glob("bm25-*"):
            if old != folder:
                shutil.rmtree(old, ignore_errors=True)
        size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    document_frequency = np.diff(chunk_scores.indptr)
    names = list(vocabulary)
    frequent = [
        (names[number], int(document_frequency[number]))
        for number in np.argsort(-document_frequency, kind="stable")[:20]
    ]
    return BuiltIndex(table.num_rows, file_scores.shape[0], len(vocabulary), size, generation, frequent)


def score(
    table: pa.Table, settings: LexicalSettings
) -> tuple[sparse.csc_array, sparse.csc_array, dict[str, int], NDArray[np.int32]]:
    """Return scores of chunks (chunks, terms) and of files (files, terms), the vocabulary, and each chunk's file."""
    paths = table["path"].to_pylist()
    file_number = {path: number for number, path in enumerate(sorted(set(paths)))}
    file_of = np.array([file_number[path] for path in paths], dtype=np.int32)
    counter = TermCounter()
    body = counter.add(table["text"].to_pylist())
    trail = counter.add(_trail_text(trail) for trail in table["trail"].to_pylist())
    path = counter.add(file_number)
    body, trail, path = counter.counts(body), counter.counts(trail), counter.counts(path)
    by_file = sparse.csr_array(
        (np.ones(len(paths), dtype=np.float32), (file_of, np.arange(len(paths)))), shape=(len(file_number), len(paths))
    )
    of_chunks = [Field(path[file_of], settings.path), Field(trail, settings.trail), Field(body, settings.body)]
    of_files = [Field(path, settings.file_path), Field(sparse.csr_array(by_file @ body), settings.file_body)]
    return bm25f(of_chunks, settings.k1), bm25f(of_files, settings.k1), counter.vocabulary, file_of


def _trail_text(trail: list[str]) -> str:
    """Each part of the trails once: packing must not make a chapter's title count for every section in it."""
    return " ".join(dict.fromkeys(part for name in trail for part in name.replace(".", " > ").split(" > ")))


def _save(folder: Path, scores: sparse.csc_array, vocabulary: dict[str, int]) -> None:
    """Save scores as a bm25s index: its retrieval, file format and memory map, with our weights."""
    from bm25s import BM25

    index = BM25(method="lucene")
    index.scores = {
        "data": scores.data,
        "indices": scores.indices.astype(np.int32),
        "indptr": scores.indptr.astype(np.int64),
        "num_docs": scores.shape[0],
    }
    index.vocab_dict = vocabulary
    index.nonoccurrence_array = None
    index.save(folder, show_progress=False)


def _save_rows(path: Path, table: pa.Table, outline: pa.Table) -> None:
    parts: dict[str, list[dict[str, Any]]] = {}
    for row in outline.select(["path", "start", "end", "start_line", "end_line", "name"]).to_pylist():
        parts.setdefault(row.pop("path"), []).append(row)
    inside = [
        [part for part in parts.get(chunk["path"], ()) if part["start"] < chunk["end"] and part["end"] > chunk["start"]]
        for chunk in table.select(["path", "start", "end"]).to_pylist()
    ]
    kind = pa.list_(
        pa.struct([(name, pa.int64()) for name in ("start", "end", "start_line", "end_line")] + [("name", pa.string())])
    )
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, rows_schema := _rows_schema(table, kind)) as writer:
        writer.write_table(
            table.append_column("parts", pa.array(inside, kind)).cast(rows_schema), max_chunksize=1 << 30
        )


def _rows_schema(table: pa.Table, parts: pa.DataType) -> pa.Schema:
    return table.schema.append(pa.field("parts", parts))


def current_generation(settings: Settings) -> str | None:
    """The generation of the stored index, a hash of what it ranks and how; None where there is none that is sound."""
    manifest = read_record(Layout(settings.home).bm25)
    return manifest["generation"] if manifest else None


def is_current(index: LexicalIndex, settings: Settings) -> bool:
    """Whether a loaded index is the stored one, of the same chunks as the other indexes."""
    manifest = read_record(Layout(settings.home).bm25) or {}
    return (manifest.get("generation"), manifest.get("chunks")) == (index.generation, index.chunked)


def load_index(settings: Settings) -> LexicalIndex:
    """Return the current index, memory-mapped.

    Raises:
        CgragError: there is none, it is damaged, or it was built with other settings.
    """
    from bm25s import BM25

    layout = Layout(settings.home)
    manifest = read_json(layout.bm25, REBUILD)
    if manifest is None:
        raise CgragError(f"{settings.home} has no search index yet.", "Build it:  cgrag run")
    for name, wanted in (("lexical", settings.lexical.model_dump()), ("chunking", settings.chunking.model_dump())):
        changed = [key for key in wanted if wanted[key] != manifest[name].get(key)]
        if changed:
            key = changed[0]
            raise CgragError(
                f"The search index was built with {name}.{key} = {manifest[name].get(key)}, "
                f"the settings ask for {wanted[key]}.",
                f"Build it anew:  cgrag run      or go back:  unset CGRAG_{name.upper()}__{key.upper()}",
            )
    if manifest["version"] != [VERSION, TOKENS_VERSION]:
        raise CgragError("The search index was built by another version of cgrag.", REBUILD)
    folder = layout.bm25.parent / manifest["folder"]
    try:
        return LexicalIndex(
            chunks=BM25.load(folder / "chunks", mmap=True),
            files=BM25.load(folder / "files", mmap=True),
            file_of=np.load(folder / "file_of.npy", mmap_mode="r", allow_pickle=False),
            table=pa.ipc.open_file(pa.memory_map(str(folder / _ARROW))).read_all(),
            settings=settings.lexical,
            generation=manifest["generation"],
            chunked=manifest["chunks"],
        )
    except (OSError, EOFError, ValueError, KeyError, pa.ArrowException) as error:
        if not folder.exists() and read_json(layout.bm25, REBUILD) != manifest:
            return load_index(settings)  # it was replaced between the reading of its manifest and of its files
        raise CgragError(f"The search index in {folder} is damaged: {error}", REBUILD) from error
