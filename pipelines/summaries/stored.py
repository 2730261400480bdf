"""What is stored of summaries, and what it is made of: for those who tell of it and ask no model."""

from typing import Any

from pipelines.errors import CgragError
from pipelines.extract.ledger import Ledger
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.summaries.recipe import SummaryRecipe, summary_recipe
from pipelines.summaries.tables import REMEDY, summaries_file, summary_rows
from pipelines.tables import read_manifest

VERSION = 1
"""Raise it when the same answers give another table."""


def summaries_inputs(settings: Settings, communities: str) -> dict[str, Any]:
    """What a table of summaries is built from, beside the answers; `communities` is the hash of their rows."""
    return {
        "communities": communities,
        "recipe": summary_recipe(settings).id,
        "settings": settings.summaries.model_dump(),
        "version": VERSION,
    }


def stored_answers(settings: Settings, recipe: SummaryRecipe) -> int:
    """Return how many requests of a recipe have an answer; what the table of an older number lacks is in the ledger."""
    with Ledger(Layout(settings.home), recipe.id, settings.extract) as ledger:
        ledger.refresh()
        return ledger.answered


def stored_counts(settings: Settings) -> dict[str, int]:
    """Return how many communities are to be summarised, and how many are, failed or wait; zeros where no table is."""
    import pyarrow.parquet as pq

    file = summaries_file(Layout(settings.home))
    statuses = pq.read_table(file, columns=["status"])["status"].to_pylist() if read_manifest(file) else []
    return {"communities": len(statuses), **{name: statuses.count(name) for name in ("ok", "failed", "pending")}}


def summaries_problem(settings: Settings) -> CgragError | None:
    """Return the error that tells which communities have no summary because their requests failed, if there are any."""
    rows = summary_rows(Layout(settings.home))
    failed = [row for row in rows if row["status"] == "failed"]
    if not failed:
        return None
    told = "; ".join(f"{row['community'][:8]} ({row['problem']}: {row['detail'][:80]})" for row in failed[:5])
    return CgragError(f"{len(failed)} of {len(rows)} communities have no summary: {told}", f"Ask again:  {REMEDY}")
