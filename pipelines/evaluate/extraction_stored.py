"""The stored report on extraction, and what it is made of: for those who tell of it and measure nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.evaluate.annotations import fingerprint
from pipelines.extract.recipe import active_recipe
from pipelines.layout import Layout
from pipelines.rules import VERSION as RULES_VERSION
from pipelines.settings import Settings
from pipelines.tables import digest, read_record

VERSION = 1
"""Raise it when the same answers give another report."""


def report_file(layout: Layout) -> Path:
    """Where the report lies."""
    return layout.reports / "extraction.json"


def report_inputs(settings: Settings, chunks: Mapping[str, str]) -> dict[str, Any]:
    """What a report is made of, beside the answers of the ledger; `chunks` are the fingerprints of the partitions.

    Raises:
        CgragError: the active recipe cannot be read.
    """
    return {
        "chunks": digest(dict(chunks)),
        "annotations": fingerprint("test"),
        "recipe": active_recipe(settings).id,
        "version": [VERSION, RULES_VERSION],
    }


def stored_extraction_report(layout: Layout) -> dict[str, Any] | None:
    """Return what `store_report` wrote, None where there is none."""
    return read_record(report_file(layout))
