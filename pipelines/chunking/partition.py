"""The chunks stage: all files of one partition become four tables (documents, outline, units, chunks)."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipelines.chunking.lines import Lines
from pipelines.chunking.pack import pack
from pipelines.chunking.parse import parse_text
from pipelines.chunking.python import collector_off
from pipelines.corpus.decode import Undecodable, decode
from pipelines.corpus.scan import Unreadable, read_file
from pipelines.layout import Layout
from pipelines.settings import ChunkSettings
from pipelines.tables import PARTITIONED, agreed_fingerprint, digest, write_table

VERSION = 2
"""Raise it when the same file gives other rows than before."""
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class ChunkedFile:
    """Rows of one file, as in tables.DOCUMENTS, OUTLINE, UNITS and CHUNKS."""

    document: dict[str, Any]
    outline: Rows
    units: Rows
    chunks: Rows


@dataclass(frozen=True)
class PartitionResult:
    """What was written; `problems` are (path, why) of files that were not read or not parsed by their own parser."""

    fingerprint: str
    files: int
    units: int
    chunks: int
    characters: int
    problems: list[tuple[str, str]]
    preview: Rows


def partition_fingerprint(files: Sequence[Mapping[str, Any]], settings: ChunkSettings) -> str:
    """What a partition is built from: its files' paths and contents, the chunk settings, this code's version."""
    return digest(VERSION, settings.model_dump(), sorted([row["path"], row["sha256"]] for row in files))


def chunk_text(path: str, data: bytes, format: str, settings: ChunkSettings) -> ChunkedFile:
    """Return the rows of a file from its bytes.

    >>> rows = chunk_text("a.py", b"def f():\\n    return 1\\n", "python", ChunkSettings())
    >>> [(row["start"], row["end"], row["trail"]) for row in rows.chunks]
    [(0, 21, ['f'])]

    Raises:
        Undecodable: the bytes are no text.
    """
    decoded = decode(data, python=format == "python")
    lines = Lines(decoded.text)
    parsed = parse_text(lines, format, settings, decoded.problem)
    chunks: Rows = []
    units: Rows = []
    seen: Counter[str] = Counter()
    for chunk in pack(lines, parsed.units, settings):
        text = decoded.text[chunk.start : chunk.end]
        text_hash = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()
        chunk_id = digest(path, text_hash, seen[text_hash])
        seen[text_hash] += 1
        chunks.append(
            {
                "chunk_id": chunk_id,
                "path": path,
                **_span(lines, chunk),
                "trail": chunk.trail,
                "text_hash": text_hash,
                "text": text,
            }
        )
        for unit in chunk.units:
            row = {"chunk_id": chunk_id, "path": path, **_span(lines, unit), "kind": unit.kind, "symbol": unit.symbol}
            units.append(row | {"trail": list(unit.trail)})
    outline = [{"path": path, **asdict(entry), **_span(lines, entry)} for entry in parsed.outline]
    return ChunkedFile(_document(path, data, lines, parsed.parser, parsed.problem, len(chunks)), outline, units, chunks)


def _span(lines: Lines, piece: Any) -> dict[str, int]:
    last = max(piece.end - 1, piece.start)
    return {
        "start": piece.start,
        "end": piece.end,
        "start_line": lines.number(piece.start),
        "end_line": lines.number(last),
    }


def _document(path: str, data: bytes, lines: Lines, parser: str, problem: str, chunks: int) -> dict[str, Any]:
    return {
        "path": path,
        "sha256": hashlib.sha256(data).hexdigest(),
        "characters": len(lines.text),
        "lines": len(lines),
        "parser": parser,
        "problem": problem,
        "chunks": chunks,
    }


def chunk_file(root: Path, row: Mapping[str, Any], settings: ChunkSettings) -> ChunkedFile:
    """Read and chunk a file of files.parquet as it is now; one that cannot be read any more has no chunks."""
    try:
        return chunk_text(row["path"], read_file(root, row["path"]), row["format"], settings)
    except (Unreadable, Undecodable) as error:
        problem = ": ".join(str(part) for part in error.args)
        empty = {
            "path": row["path"],
            "sha256": "",
            "characters": 0,
            "lines": 0,
            "parser": "",
            "problem": problem,
            "chunks": 0,
        }
        return ChunkedFile(empty, [], [], [])


def chunk_partition(
    root: Path, key: str, files: Sequence[Mapping[str, Any]], settings: ChunkSettings, layout: Layout
) -> PartitionResult:
    """Chunk the files of a partition and write its tables, chunks last: a reader finds all four of one fingerprint.

    The fingerprint is of what was read, so a file that changed since the walk makes no lie of it.
    """
    with collector_off():
        results = [chunk_file(root, row, settings) for row in files]
    read = [result.document for result in results]
    fingerprint = partition_fingerprint(read, settings)
    tables: dict[str, Rows] = {
        "documents": read,
        "outline": [row for result in results for row in result.outline],
        "units": [row for result in results for row in result.units],
        "chunks": [row for result in results for row in result.chunks],
    }
    manifest = {"partition": key, "fingerprint": fingerprint, "chunking": settings.model_dump(), "version": VERSION}
    for name, rows in tables.items():
        write_table(layout.partition(key, name), rows, PARTITIONED[name], manifest)
    return PartitionResult(
        fingerprint,
        files=len(read),
        units=len(tables["units"]),
        chunks=len(tables["chunks"]),
        characters=sum(row["characters"] for row in read),
        problems=[(row["path"], row["problem"]) for row in read if row["problem"]],
        preview=tables["chunks"][:5],
    )


def stored_fingerprint(layout: Layout, key: str) -> str | None:
    """The fingerprint of a partition whose four tables are whole and agree, else None."""
    return agreed_fingerprint(layout.partition(key, name) for name in PARTITIONED)
