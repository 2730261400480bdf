"""How far extraction has come: per chunk from the stored tables, brought up to date from the ledger."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.chunking.partition import stored_fingerprint
from pipelines.corpus.scan import Plan
from pipelines.extract.ledger import Entry, Ledger
from pipelines.extract.partition import chunks_in_scope, is_current
from pipelines.extract.recipe import Recipe
from pipelines.extract.stats import rate_of
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.tables import EXTRACTIONS, read_table

_LENGTH = "length"


@dataclass
class PartitionOverview:
    """The chunks of one partition that the policy leaves to the model."""

    current: bool
    """The stored table is of these chunks, this recipe and policy, and has every result that the ledger has."""
    stored: bool
    ok: int = 0
    failed: int = 0
    truncated: int = 0
    open: dict[str, str] = field(default_factory=dict)
    """Chunk id to the key of its request ("" where it is not known), of those without a result: failed or pending."""
    grounded: int = 0
    ungrounded: int = 0
    last_resorts: int = 0
    """Of the grounded names, those of a type for what no other fits: many call for another type in the taxonomy."""

    def count(self, chunk: str, key: str, entry: Entry | None) -> None:
        """Count a chunk as the ledger has it."""
        if not key or (entry and entry.status == "ok"):
            self.ok += 1
            return
        self.open[chunk] = key
        self.failed += entry is not None
        self.truncated += entry is not None and entry.status == _LENGTH

    @property
    def chunks(self) -> int:
        return self.ok + len(self.open)

    @property
    def pending(self) -> int:
        return len(self.open) - self.failed


def overview(
    layout: Layout, plan: Plan, settings: Settings, recipe: Recipe, ledger: Ledger, *, exact: bool = True
) -> dict[str, PartitionOverview]:
    """Return an overview of every planned partition whose chunks are stored.

    Where a table is not current, `exact` renders the requests of its chunks to look them up, half a millisecond each;
    without it such a partition is empty.
    """
    ledger.refresh()
    last_resorts = pa.array([kind.name for kind in recipe.taxonomy.types if kind.last_resort], pa.string())
    found = {}
    for key, files in plan.partitions.items():
        fingerprint = stored_fingerprint(layout, key)
        if fingerprint is None:
            continue
        if is_current(layout, key, recipe, settings.extract, fingerprint):
            found[key] = _of_table(layout, key, ledger, last_resorts)
        else:
            found[key] = PartitionOverview(False, layout.partition(key, "extractions").exists())
            for chunk in chunks_in_scope(layout, key, files, settings.extract) if exact else ():
                request = recipe.request(chunk["text"])
                entry = ledger.get(request.key) if request else None
                found[key].count(chunk["chunk_id"], request.key if request else "", entry)
    return found


def _of_table(layout: Layout, key: str, ledger: Ledger, last_resorts: pa.Array) -> PartitionOverview:
    table = read_table(layout.partition(key, "extractions"), EXTRACTIONS)
    found = PartitionOverview(True, True)
    for chunk, request_key, result_hash in _columns(table):
        entry = ledger.get(request_key) if request_key else None
        found.current &= (entry.result_hash if entry else "") == result_hash
        found.count(chunk, request_key, entry)
    types = pc.struct_field(pc.list_flatten(table["entities"]), "type")
    found.grounded = len(types)
    found.last_resorts = int(pc.sum(pc.is_in(types, last_resorts)).as_py() or 0)
    found.ungrounded = int(pc.sum(table["ungrounded"]).as_py() or 0)
    return found


def _columns(table: Any) -> Iterator[tuple[str, str, str]]:
    names = ("chunk_id", "key", "result_hash")
    return zip(*(table[name].to_pylist() for name in names), strict=True)


def totals(partitions: dict[str, PartitionOverview], ledger: Ledger) -> dict[str, Any]:
    """Return the numbers that `cgrag status` tells; `rate` is in chunks a second, 0 where nothing has been measured."""
    every = partitions.values()
    grounded, ungrounded = sum(one.grounded for one in every), sum(one.ungrounded for one in every)
    pending, rate = sum(one.pending for one in every), rate_of(ledger)
    return {
        "chunks": sum(one.chunks for one in every),
        "ok": sum(one.ok for one in every),
        "failed": sum(one.failed for one in every),
        "pending": pending,
        "truncated": sum(one.truncated for one in every),
        "grounded_share": grounded / (grounded + ungrounded) if grounded + ungrounded else 1.0,
        "last_resort_share": sum(one.last_resorts for one in every) / grounded if grounded else 0.0,
        "rate": rate,
        "seconds_left": pending / rate if rate else None,
    }
