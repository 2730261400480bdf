"""Chunks of docs annotated by hand (annotated/GUIDELINES.md): what a careful reader finds in them."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pipelines.corpus.scan import load_plan
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.tables import CHUNKS, read_tables

FOLDER = Path(__file__).with_name("annotated")
SET = "vllm-0.10.1-docs.jsonl"
AGREED = "agreed.jsonl"
CORPUS = "pypi:vllm==0.10.1"
HEADING = "#"
"""As the source of an edge: the innermost heading around its target."""
Split = Literal["dev", "test", "all"]


@dataclass(frozen=True)
class Note:
    """A mention: its text, where it starts in the chunk, its type, and the symbol that it means or None."""

    text: str
    start: int
    type: str
    symbol: str | None


@dataclass(frozen=True)
class Annotated:
    """A chunk with what was found in it; `start` is its place in the file, in characters."""

    chunk_id: str
    path: str
    start: int
    trail: tuple[str, ...]
    text: str
    text_hash: str
    mentions: tuple[Note, ...] = ()
    edges: tuple[tuple[str, str, str], ...] = ()
    """(source, relation, target), by the texts of mentions; the source may be `HEADING`."""


def fingerprint(split: Split, folder: Path = FOLDER) -> str:
    """Name and hash of the annotations, and the part that is used: what a measure is said to be of."""
    data = b"".join((folder / name).read_bytes() for name in (SET, AGREED) if (folder / name).exists())
    return f"{SET.removesuffix('.jsonl')}/{split}/{hashlib.sha256(data).hexdigest()[:12]}"


def load_annotated(layout: Layout, split: Split, folder: Path = FOLDER) -> list[Annotated]:
    """Return the annotated chunks of a split, with their text from the home.

    Raises:
        CgragError: the home does not hold these chunks: it has another corpus, or cuts it in another way.
    """
    wanted = [row for row in _rows(folder / SET) if split in ("all", row["split"])]
    notes = {row["chunk_id"]: row for row in _rows(folder / AGREED)} if (folder / AGREED).exists() else {}
    paths = (layout.partition(key, "chunks") for key in load_plan(layout))
    chunks = read_tables((path for path in paths if path.exists()), CHUNKS)
    texts = {
        row["chunk_id"]: (row["text_hash"], row["text"])
        for row in chunks.select(["chunk_id", "text_hash", "text"]).to_pylist()
    }
    lost = [row["path"] for row in wanted if texts.get(row["chunk_id"], ("", ""))[0] != row["text_hash"]]
    if lost:
        raise CgragError(
            f"{len(lost)} of {len(wanted)} annotated chunks are not in {layout.home}, such as one of {lost[0]}. "
            f"They are of {CORPUS}, in chunks of the default settings.",
            f"Measure in a home that has it, and copy its evidence/ here:  CGRAG_HOME=… cgrag run --corpus {CORPUS}",
        )
    return [_annotated(row, texts[row["chunk_id"]][1], notes.get(row["chunk_id"], {})) for row in wanted]


def agreement(split: Split, folder: Path = FOLDER) -> dict[str, float]:
    """Return on which share of their mentions and of their edges the two annotators agree; {} where one is missing.

    The share is `2 |both| / (|one| + |other|)`: no extractor can be expected to be surer than they are.
    """
    files = [folder / f"pass-{number}.jsonl" for number in (1, 2)]
    if not all(file.exists() for file in files):
        return {}
    wanted = {row["chunk_id"] for row in _rows(folder / SET) if split in ("all", row["split"])}
    found = {}
    for kind, fields in (
        ("mentions", ("start", "text", "type", "symbol")),
        ("edges", ("source", "relation", "target")),
    ):
        one, other = (
            {
                (row["chunk_id"], *(item[name] for name in fields))
                for row in _rows(file)
                if row["chunk_id"] in wanted
                for item in row[kind]
            }
            for file in files
        )
        found[kind] = 2 * len(one & other) / (len(one) + len(other)) if one or other else 1.0
    return found


def _annotated(row: dict[str, Any], text: str, notes: dict[str, Any]) -> Annotated:
    text_hash = row["text_hash"]
    if "until" in notes:  # a long list was read up to here
        text = text[: notes["until"]]
        text_hash = hashlib.sha256(text.encode()).hexdigest()
    return Annotated(
        row["chunk_id"],
        row["path"],
        row["start"],
        tuple(row["trail"]),
        text,
        text_hash,
        tuple(Note(note["text"], note["start"], note["type"], note["symbol"]) for note in notes.get("mentions", ())),
        tuple((edge["source"], edge["relation"], edge["target"]) for edge in notes.get("edges", ())),
    )


def _rows(file: Path) -> Iterator[dict[str, Any]]:
    with open(file, encoding="utf-8") as lines:
        yield from map(json.loads, lines)
