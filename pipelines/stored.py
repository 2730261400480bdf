"""A home's tables as a whole, for those who want rows: notebooks and scripts."""

import pyarrow as pa

from pipelines.corpus.scan import load_plan
from pipelines.errors import CgragError
from pipelines.graph.tables import GRAPH
from pipelines.layout import Layout
from pipelines.tables import EXTRACTIONS, FILES, PARTITIONED, SKIPPED, read_table, read_tables

TABLES = {"files": FILES, "skipped": SKIPPED, **PARTITIONED, "extractions": EXTRACTIONS, **GRAPH}
"""{name: schema}; what each column holds is said where the schema is written."""


def stored_table(layout: Layout, name: str) -> pa.Table:
    """Return all stored rows of a table; those of partitions that are not built yet are missing.

    Raises:
        CgragError: there is no such table, or it is not built, or damaged.
    """
    if name not in TABLES:
        raise CgragError(f"There is no table {name!r}.", f"The tables are: {', '.join(TABLES)}")
    schema = TABLES[name]
    single = {"files": layout.files, "skipped": layout.skipped}
    single |= {part: layout.graph / f"{part}.parquet" for part in GRAPH}
    if name in single:
        return read_table(single[name], schema)
    paths = [layout.partition(key, name) for key in load_plan(layout)]
    return read_tables((path for path in paths if path.exists()), schema)
