"""The question_sets and retrieval_report stages: files under questions/ and reports/, each with what it was made of."""

import hashlib
import shutil
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pipelines.chunking.restore import restore_texts
from pipelines.corpus.decode import decode
from pipelines.corpus.fetch import fetch
from pipelines.corpus.spec import held_spec
from pipelines.dense.index import vectors_generation
from pipelines.errors import CgragError
from pipelines.evaluate.compare import Change, changes
from pipelines.evaluate.questions import FORMAT, QuestionFile, load_json
from pipelines.evaluate.structural_sets import structural_questions
from pipelines.evaluate.synthetic import VERSION as SYNTHETIC_VERSION
from pipelines.evaluate.synthetic import docs_questions
from pipelines.graph.store import graph_record
from pipelines.layout import Layout
from pipelines.lexical.index import current_generation, load_chunks
from pipelines.progress import Progress, silent
from pipelines.settings import Settings
from pipelines.tables import DOCUMENTS, FILES, atomic, digest, read_record, read_table, write_json

VERSION = 2
"""Raise it when the same index and questions give another report."""
KS = (1, 3, 5, 10, 20)
SYNTHETIC = "synthetic-docs.json"
_MANIFEST = "manifest.json"
_OWN_NAMES = ("synthetic-docs", "manifest")


@dataclass(frozen=True)
class StoredSet:
    """A question file under questions/, and how many questions each of its splits has."""

    name: str
    questions: int
    splits: dict[str, int]


def set_inputs(settings: Settings, fingerprints: dict[str, str]) -> dict[str, Any]:
    """What question sets are made of: the chunks, and the file that CGRAG_QUESTIONS names.

    Raises:
        CgragError: that file cannot be read.
    """
    given = None
    if settings.questions:
        try:
            given = [settings.questions.name, hashlib.sha256(settings.questions.read_bytes()).hexdigest()]
        except OSError as error:
            raise CgragError(
                f"The question file {settings.questions} cannot be read: {error.strerror}.",
                "Set CGRAG_QUESTIONS to one that can, or unset it.",
            ) from error
    return {"chunks": digest(fingerprints), "questions": given, "version": SYNTHETIC_VERSION}


def make_sets(settings: Settings, fingerprints: dict[str, str]) -> list[StoredSet]:
    """Write the synthetic set of the corpus's docs, where it gives any question, and a copy of the file given.

    `fingerprints` are those of the stored chunk partitions. Sets made before are removed.

    Raises:
        CgragError: the file given is no question file.
    """
    layout = Layout(settings.home)
    inputs = set_inputs(settings, fingerprints)
    stale = list(layout.questions.glob("*.json"))
    made: dict[str, list[str | None]] = {}
    if settings.questions:
        given = load_json(settings.questions, QuestionFile, "question file", FORMAT)
        name = "given.json" if settings.questions.stem in _OWN_NAMES else f"{settings.questions.stem}.json"
        with atomic(layout.questions / name) as temporary:
            shutil.copyfile(settings.questions, temporary)
        made[name] = [row.split for row in given.rag_questions]
    synthetic = synthetic_questions(settings, fingerprints)
    if synthetic["rag_questions"]:
        write_json(layout.questions / SYNTHETIC, synthetic)
        made[SYNTHETIC] = [row["split"] for row in synthetic["rag_questions"]]
    for path in stale:
        if path.name not in made:
            path.unlink(missing_ok=True)
    sets = [
        StoredSet(name, len(splits), dict(Counter(split or "none" for split in splits)))
        for name, splits in made.items()
    ]
    write_json(layout.questions / _MANIFEST, inputs | {"sets": [stored.name for stored in sets]})
    return sets


def synthetic_questions(settings: Settings, fingerprints: dict[str, str]) -> dict[str, Any]:
    """Return the question file that the docs of the stored chunks give (pipelines.evaluate.synthetic)."""
    layout = Layout(settings.home)
    keys = sorted(fingerprints)
    chunks, outline = load_chunks(layout, keys)
    documents = [row for key in keys for row in read_table(layout.partition(key, "documents"), DOCUMENTS).to_pylist()]
    whole = restore_texts(documents, chunks.to_pylist())
    texts = {path: text.rstrip() for path, text in whole.items() if text.strip()}
    return docs_questions(held_spec(layout).name, texts, outline.to_pylist())


def structural_set(settings: Settings, seed: int, per_kind: int, progress: Progress = silent) -> dict[str, Any]:
    """Return the question file that jedi's knowledge of the corpus's Python gives (pipelines.evaluate.structural_sets).

    Raises:
        CgragError: the corpus is not listed or cannot be fetched, or jedi is not installed.
    """
    layout = Layout(settings.home)
    rows = read_table(layout.files, FILES).select(["path", "format"]).to_pylist()
    source = fetch(held_spec(layout), settings)
    paths = [row["path"] for row in rows if row["format"] == "python" and (source.root / row["path"]).is_file()]
    texts = {path: decode((source.root / path).read_bytes(), python=True).text for path in paths}
    return structural_questions(source.name, source.root, texts, seed=seed, per_kind=per_kind, progress=progress)


def stored_sets(layout: Layout) -> dict[str, Any] | None:
    """The manifest of the stored sets (their inputs and `sets`, the file names), None where there are none."""
    return read_record(layout.questions / _MANIFEST)


def stored_report(layout: Layout) -> dict[str, Any] | None:
    """The current report.json, None where there is none."""
    return read_record(layout.reports / "report.json")


def report_inputs(settings: Settings) -> dict[str, Any]:
    """What a report is made of: the indexes, the graph, the question sets, and how they are scored."""
    layout = Layout(settings.home)
    sets = stored_sets(layout) or {}
    graph = graph_record(layout)
    return {
        "generation": current_generation(settings),
        "vectors": [vectors_generation(settings), settings.embed.model_dump()],
        "graph": graph["generation"] if graph else None,
        "question_sets": digest(sets),
        "ks": list(KS),
        "version": VERSION,
    }


@dataclass(frozen=True)
class MadeReport:
    """What was written, and a picture of each set for the UI."""

    document: dict[str, Any]
    pictures: dict[str, bytes]
    folder: Path


def make_report(settings: Settings, progress: Progress = silent) -> MadeReport:
    """Evaluate every stored set with all modes and arms that are built; write report.html, .md, .json and pictures.

    The report before this one stays as previous.json; one that was made of the same inputs does not take its place.

    Raises:
        CgragError: there are no question sets or no index, or a set cannot be used.
    """
    from pipelines.evaluate.evaluation import evaluate_file
    from pipelines.evaluate.plots import draw
    from pipelines.evaluate.report import Picture, blocks, to_html, to_json, to_markdown

    layout = Layout(settings.home)
    sets = stored_sets(layout)
    if sets is None:
        raise CgragError(f"{layout.home} has no question sets yet.", "Make them:  cgrag run --select question_sets")
    inputs = report_inputs(settings)
    files = [layout.questions / name for name in sets["sets"]]
    evaluations = [evaluate_file(settings, path, ks=KS, progress=progress) for path in files]
    shown = {name: getattr(settings, name).model_dump() for name in ("chunking", "lexical", "embed")}
    parts = list(blocks(evaluations, shown))
    document = to_json(evaluations, inputs)
    before = stored_report(layout)
    if before and before.get("inputs") != inputs:
        write_json(layout.reports / "previous.json", before)
    pictures = {part.name: part.png for part in parts if isinstance(part, Picture)}
    for old in layout.reports.glob("*.png"):
        if old.name not in pictures:
            old.unlink()
    for name, png in pictures.items():
        _write(layout.reports / name, png)
    _write(layout.reports / "report.html", to_html(parts, f"Retrieval report: {held_spec(layout).name}").encode())
    _write(layout.reports / "report.md", to_markdown(parts).encode())
    write_json(layout.reports / "report.json", document)
    small = {evaluation.asked.name: draw(evaluation, dots_per_inch=70) for evaluation in evaluations}
    return MadeReport(document, small, layout.reports)


def _write(path: Path, data: bytes) -> None:
    with atomic(path) as temporary:
        temporary.write_bytes(data)


def changes_of_report(layout: Layout) -> list[Change]:
    """Return what has changed from the last report to the current one; nothing where there is only one."""
    now, before = stored_report(layout), read_record(layout.reports / "previous.json")
    return changes(now, before) if now and before else []
