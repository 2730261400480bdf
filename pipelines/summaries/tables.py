"""The schema of the summaries' table, and where it lies."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.layout import Layout
from pipelines.tables import read_table

REMEDY = "cgrag run --select community_summaries"
PLACE = pa.struct([pa.field("path", pa.string()), pa.field("start_line", pa.int64())])
SUMMARIES = pa.schema(  # one row for each community that is to be summarised, the largest first
    [
        pa.field("community", pa.string()),
        pa.field("status", pa.string()),  # ok, failed, pending
        pa.field("problem", pa.string()),  # why it failed, as in LEDGER.status, else ""
        pa.field("detail", pa.string()),
        pa.field("title", pa.string()),
        pa.field("text", pa.string()),  # one to three sentences; [n] is the n-th of `cited`
        pa.field("cited", pa.list_(PLACE)),
        pa.field("triples", pa.int64()),  # shown to the model
        pa.field("keys", pa.list_(pa.string())),  # of the requests, the last one that of the summary itself
        pa.field("dropped", pa.int64()),  # sentences with an identifier that the triples do not have
        pa.field("moved", pa.int64()),  # sentences whose citations named nothing of theirs
    ]
)


def summaries_file(layout: Layout) -> Path:
    return layout.communities / "summaries.parquet"


def summary_rows(layout: Layout) -> list[dict[str, Any]]:
    """Return the rows of the table.

    Raises:
        CgragError: there is none, or it cannot be read.
    """
    return list(read_table(summaries_file(layout), SUMMARIES, f"Build it:  {REMEDY}").to_pylist())
