"""The extractions stage: what the ledger holds about the chunks of one partition becomes its table."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pipelines.chunking.partition import stored_fingerprint
from pipelines.extract.answer import Answer, InvalidAnswer
from pipelines.extract.ledger import Ledger
from pipelines.extract.recipe import Recipe, Request
from pipelines.layout import Layout
from pipelines.settings import ExtractSettings
from pipelines.tables import CHUNKS, EXTRACTIONS, digest, read_manifest, read_table, write_table

VERSION = 1
"""Raise it when the same ledger gives other rows."""
_TEXT_FORMATS = ("markdown", "sections")
Files = Sequence[Mapping[str, Any]]
Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class Item:
    """A text to be asked about."""

    request: Request
    text: str
    text_hash: str


@dataclass(frozen=True)
class Work:
    """What is to be asked of one partition."""

    partition: str
    items: list[Item]


class ChunksFailed(Exception):
    """A partition has chunks without a result that were to have one; `missing` are their ids."""

    def __init__(self, problem: str, missing: list[str]) -> None:
        super().__init__(problem)
        self.missing = missing


@dataclass(frozen=True)
class PartitionResult:
    """What was written of a partition."""

    fingerprint: str
    rows: Rows
    """As in tables.EXTRACTIONS."""
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Spent by the model on the chunks that are ok."""

    def having(self, status: str) -> Rows:
        return [row for row in self.rows if row["status"] == status]

    @property
    def problems(self) -> dict[str, int]:
        """How many chunks failed, by the kind of failure."""
        return dict(sorted(Counter(row["problem"] for row in self.having("failed")).items()))

    def raise_failed(self, wanted: Iterable[str] | None, why: str) -> None:
        """Raise ChunksFailed if chunks failed, or if some of those wanted (None: all) were not asked, for `why`."""
        failed = self.having("failed")
        ids = None if wanted is None else set(wanted)
        unasked = [row for row in self.having("pending") if ids is None or row["chunk_id"] in ids] if why else []
        if not failed and not unasked:
            return
        told = [f"{row['path']} ({row['problem']}: {row['detail'][:80]})" for row in failed[:10]]
        if len(failed) > 10:
            told.append(f"and {len(failed) - 10} more")
        parts = [why] if why else []
        if failed:
            parts.append(f"{len(failed)} of {len(self.rows)} chunks failed: {'; '.join(told)}")
        if unasked:
            parts.append(f"{len(unasked)} chunks were not asked about")
        raise ChunksFailed(" · ".join(parts), [row["chunk_id"] for row in (*failed, *unasked)])


def manifest_of(fingerprint: str, key: str, recipe: Recipe, settings: ExtractSettings) -> dict[str, Any]:
    """What an extractions table is built from, beside the ledger; `fingerprint` is that of the partition's chunks."""
    return {
        "partition": key,
        "chunks": fingerprint,
        "recipe": recipe.id,
        "policy": settings.policy,
        "version": VERSION,
    }


def is_current(layout: Layout, key: str, recipe: Recipe, settings: ExtractSettings, fingerprint: str | None) -> bool:
    """Whether the stored table is of these chunks, this recipe and this policy."""
    return fingerprint is not None and _current_manifest(layout, key, recipe, settings, fingerprint) is not None


def _current_manifest(
    layout: Layout, key: str, recipe: Recipe, settings: ExtractSettings, fingerprint: str
) -> dict[str, Any] | None:
    wanted = manifest_of(fingerprint, key, recipe, settings)
    stored = read_manifest(layout.partition(key, "extractions")) or {}
    return stored if {name: stored.get(name) for name in wanted} == wanted else None


@dataclass(frozen=True)
class Stored:
    """What the current tables hold, as the graph takes it."""

    fingerprints: dict[str, str] = field(default_factory=dict)
    """{partition: fingerprint} of the tables in which a model found something or failed."""
    asked: int = 0
    """Chunks that were asked about, with whatever outcome."""
    failed: int = 0


def stored_extractions(layout: Layout, recipe: Recipe, settings: ExtractSettings, chunks: Mapping[str, str]) -> Stored:
    """Return what the current tables hold; `chunks` are the fingerprints of the partitions' chunks."""
    found: dict[str, str] = {}
    asked = failed = 0
    for key, fingerprint in chunks.items():
        if manifest := _current_manifest(layout, key, recipe, settings, fingerprint):
            found |= {key: manifest["found"]} if manifest.get("found") else {}
            asked, failed = asked + manifest.get("asked", 0), failed + manifest.get("failed", 0)
    return Stored(found, asked, failed)


def chunks_in_scope(layout: Layout, key: str, files: Files, settings: ExtractSettings) -> Rows:
    """Return the chunks (as in tables.CHUNKS) that the policy leaves to the model: of a hybrid, those of the docs."""
    if settings.policy in ("ast", "off"):
        return []
    rows: Rows = read_table(layout.partition(key, "chunks"), CHUNKS).to_pylist()
    if settings.policy == "llm":
        return rows
    docs = {file["path"] for file in files if file["format"] in _TEXT_FORMATS}
    return [row for row in rows if row["path"] in docs]


def work_of(
    layout: Layout,
    key: str,
    files: Files,
    settings: ExtractSettings,
    recipe: Recipe,
    ledger: Ledger,
    wanted: Iterable[str] | None = None,
) -> Work:
    """Return what is still to be asked of a partition: of the `wanted` chunks, or of all, those without a result."""
    ids = None if wanted is None else set(wanted)
    items = []
    for row in chunks_in_scope(layout, key, files, settings) if ids is None or ids else []:
        if ids is None or row["chunk_id"] in ids:
            request = recipe.request(row["text"])
            if request and not ledger.is_ok(request.key):
                items.append(Item(request, row["text"], row["text_hash"]))
    return Work(key, items)


def build_partition(
    layout: Layout, key: str, files: Files, settings: ExtractSettings, recipe: Recipe, ledger: Ledger
) -> PartitionResult:
    """Write the table of a partition from its chunks and the ledger: one row a chunk in scope, asked or not."""
    fingerprint = stored_fingerprint(layout, key)
    chunks = chunks_in_scope(layout, key, files, settings)
    requests = [recipe.request(chunk["text"]) for chunk in chunks]
    results = ledger.rows(request.key for request in requests if request)
    rows = [
        _row(chunk, request.key if request else "", results.get(request.key) if request else None, recipe)
        for chunk, request in zip(chunks, requests, strict=True)
    ]
    told = [row for row in rows if row["entities"] or row["status"] == "failed"]
    found = digest(sorted(digest(row) for row in told)) if told else ""
    asked = [row["status"] for row in rows if row["key"] and row["status"] != "pending"]
    counts = {"found": found, "asked": len(asked), "failed": asked.count("failed")}
    manifest = manifest_of(fingerprint or "", key, recipe, settings) | counts
    write_table(layout.partition(key, "extractions"), rows, EXTRACTIONS, manifest)
    ok = [row for row in results.values() if row["status"] == "ok"]
    return PartitionResult(
        fingerprint=digest(sorted(digest(row) for row in rows)),
        rows=rows,
        prompt_tokens=sum(row["prompt_tokens"] for row in ok),
        completion_tokens=sum(row["completion_tokens"] for row in ok),
        seconds=sum(row["seconds"] for row in ok),
    )


def stored_rows(layout: Layout, key: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of a stored extractions table."""
    yield from read_table(layout.partition(key, "extractions"), EXTRACTIONS).to_pylist()


def _row(chunk: Mapping[str, Any], key: str, result: Mapping[str, Any] | None, recipe: Recipe) -> dict[str, Any]:
    status, problem, detail, answer = "pending", "", "", Answer()
    if not key:
        status = "ok"  # a chunk without a name has nothing to be asked about
    elif result is not None:
        status, problem, detail = "ok", "", ""
        if result["status"] != "ok":
            status, problem, detail = "failed", result["status"], result["detail"]
        else:
            try:
                answer = recipe.read(chunk["text"], result["pieces"])
            except InvalidAnswer as error:
                status, problem, detail = "failed", "invalid answer", str(error)
    offset = chunk["start"]
    return {
        "chunk_id": chunk["chunk_id"],
        "path": chunk["path"],
        "key": key,
        "status": status,
        "problem": problem,
        "detail": detail,
        "result_hash": result["result_hash"] if result else "",
        "entities": [
            {"name": entity.name, "type": entity.type, "starts": [offset + start for start in entity.starts]}
            for entity in answer.entities
        ],
        "relations": [
            {"source": relation.source, "target": relation.target, "type": relation.type}
            for relation in answer.relations
        ],
        "ungrounded": answer.ungrounded,
        "junk": answer.junk,
        "refused": answer.refused,
    }
