"""What the corpus holds, for question and result files to be checked against."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.corpus.scan import load_plan
from pipelines.corpus.spec import held_spec
from pipelines.layout import Layout
from pipelines.lexical.index import LexicalIndex
from pipelines.settings import Settings
from pipelines.tables import DOCUMENTS, SKIPPED, read_table


class Span(NamedTuple):
    """Characters [start, end) of a file."""

    path: str
    start: int
    end: int


@dataclass(frozen=True)
class Places:
    """Files and chunks of one generation of the index."""

    corpus: str
    generation: str
    lengths: dict[str, int]
    """Characters of each file, by path."""
    chunks: dict[str, NDArray[np.int64]]
    """Of each file with chunks: their starts, ends and first lines, shape (chunks, 3)."""
    skipped: dict[str, str] = field(default_factory=dict)
    """Why a path was left out of the corpus."""

    def best_coverage(self, span: Span) -> float:
        """The largest share of a span that a single chunk covers, 0 to 1."""
        chunks = self.chunks.get(span.path)
        if chunks is None or span.end <= span.start:
            return 0.0
        overlap = np.minimum(chunks[:, 1], span.end) - np.maximum(chunks[:, 0], span.start)
        return float(max(overlap.max(), 0) / (span.end - span.start))

    def overlapping(self, spans: Iterable[Span]) -> int:
        """How many chunks share a character with any of the spans, a chunk counted once for each."""
        found = 0
        for span in spans:
            chunks = self.chunks.get(span.path, np.empty((0, 3), dtype=np.int64))
            found += int(((chunks[:, 0] < span.end) & (chunks[:, 1] > span.start)).sum())
        return found

    def line(self, span: Span) -> int | None:
        """The 1-based line a chunk starts at; None for a span that is no chunk of ours."""
        chunks = self.chunks.get(span.path)
        at = [] if chunks is None else chunks[chunks[:, 0] == span.start, 2]
        return int(at[0]) if len(at) else None


def load_places(settings: Settings, index: LexicalIndex) -> Places:
    """Return the files of the stored tables and the chunks of the index.

    Raises:
        CgragError: a table is missing or damaged.
    """
    layout = Layout(settings.home)
    lengths: dict[str, int] = {}
    for key in load_plan(layout):
        documents = read_table(layout.partition(key, "documents"), DOCUMENTS)
        lengths.update(zip(documents["path"].to_pylist(), documents["characters"].to_pylist(), strict=True))
    rows: dict[str, list[tuple[int, int, int]]] = {}
    columns = (index.table[name].to_pylist() for name in ("path", "start", "end", "start_line"))
    for path, start, end, line in zip(*columns, strict=True):
        rows.setdefault(path, []).append((start, end, line))
    skipped = read_table(layout.skipped, SKIPPED)
    return Places(
        corpus=held_spec(layout).name,
        generation=index.generation,
        lengths=lengths,
        chunks={path: np.array(sorted(spans), dtype=np.int64) for path, spans in rows.items()},
        skipped=dict(zip(skipped["path"].to_pylist(), skipped["reason"].to_pylist(), strict=True)),
    )


def corpus_paths(paths: Iterable[str], places: Places) -> dict[str, str]:
    """Return {path as written: path in the corpus}; one that names no file of the corpus stays as it is.

    A prefix is taken off where that gives a file of the corpus: one that ends in the corpus's name
    (`data/raw/vllm-0.10.1/`), any `data/raw/NAME/`, or the folder that all paths of the file share.
    """
    written = sorted(set(paths))
    plain = {path: re.sub(r"^(?:\./)+", "", path.replace("\\", "/")) for path in written}
    shared = _shared_folder([path for path in plain.values() if path not in places.lengths], len(written))
    named = re.compile(rf"(?:.*/)?(?:{re.escape(places.corpus)}|data/raw/[^/]+)/")
    found = {}
    for path, name in plain.items():
        match = named.match(name)
        choices = [name, name[match.end() :] if match else name, name.removeprefix(shared)]
        found[path] = next((choice for choice in choices if choice in places.lengths), name)
    return found


def _shared_folder(paths: list[str], of: int) -> str:
    """The longest folder that begins every path, "" where some path of the file needs none or there is just one."""
    if len(paths) < max(of, 2):
        return ""
    first, last = min(paths).split("/"), max(paths).split("/")
    same = 0
    while same < min(len(first), len(last)) - 1 and first[same] == last[same]:
        same += 1
    return "".join(f"{part}/" for part in first[:same])
