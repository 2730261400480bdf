"""Looking at stored chunks with fresh eyes."""

import random
from pathlib import Path

from pipelines.chunking.lines import Lines
from pipelines.corpus.decode import Undecodable, decode
from pipelines.corpus.scan import Plan, Unreadable, read_file
from pipelines.layout import Layout
from pipelines.tables import CHUNKS, DOCUMENTS, read_table


def unaccounted_files(layout: Layout, plan: Plan) -> list[str]:
    """Return the planned files with neither chunks nor a reason to have none; partitions not built do not count."""
    lost = []
    for key, files in plan.partitions.items():
        path = layout.partition(key, "documents")
        if not path.exists():
            continue
        documents = {row["path"]: row for row in read_table(path, DOCUMENTS).to_pylist()}
        chunked = set(read_table(layout.partition(key, "chunks"), CHUNKS)["path"].to_pylist())
        for row in files:
            document = documents.get(row["path"])
            explained = document and (document["chunks"] or document["problem"] or _is_blank(document))
            if not explained or (document and bool(document["chunks"]) != (row["path"] in chunked)):
                lost.append(row["path"])
    return lost


def _is_blank(document: dict[str, object]) -> bool:
    return document["chunks"] == 0 and document["parser"] != ""


def wrong_offsets(root: Path, layout: Layout, plan: Plan, sample: int) -> tuple[int, list[str]]:
    """Compare a seeded sample of chunks with the source; return how many were checked, and which differ.

    A file that has changed since it was chunked cannot be checked and is left out.
    """
    rows = []
    for key in plan:
        if layout.partition(key, "chunks").exists():
            rows += read_table(layout.partition(key, "chunks"), CHUNKS).to_pylist()
    formats = {row["path"]: row["format"] for files in plan.partitions.values() for row in files}
    hashes = {row["path"]: row["sha256"] for files in plan.partitions.values() for row in files}
    chosen = random.Random(0).sample(rows, min(sample, len(rows)))
    wrong, checked = [], 0
    for row in chosen:
        text = _text(root, row["path"], formats.get(row["path"], "text"), hashes.get(row["path"], ""))
        if text is None:
            continue
        checked += 1
        lines = Lines(text)
        exact = text[row["start"] : row["end"]] == row["text"]
        if (
            not exact
            or lines.number(row["start"]) != row["start_line"]
            or lines.number(row["end"] - 1) != row["end_line"]
        ):
            wrong.append(f"{row['path']}[{row['start']}:{row['end']}]")
    return checked, wrong


def _text(root: Path, path: str, format: str, sha256: str) -> str | None:
    import hashlib

    try:
        data = read_file(root, path)
        return decode(data, python=format == "python").text if hashlib.sha256(data).hexdigest() == sha256 else None
    except (Unreadable, Undecodable):
        return None
