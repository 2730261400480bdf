"""The schemas of the code graph's tables, and rows of links as Arrow tables."""

from collections.abc import Sequence

import pyarrow as pa

from pipelines.code.link import Site, Unresolved

_PLACE = [
    pa.field("path", pa.string()),
    pa.field("line", pa.int64()),  # 1-based
    pa.field("start", pa.int64()),  # characters of the decoded text, half open
    pa.field("end", pa.int64()),
]
CODE_FACTS = pa.schema([pa.field("path", pa.string()), pa.field("facts", pa.string())])  # JSON, see facts.Facts
PAGE_LINKS = pa.schema([pa.field("path", pa.string()), pa.field("page", pa.string())])  # JSON, see doclinks.Page
SITES = pa.schema(
    [
        pa.field("source", pa.string()),  # an entity's id: path, path::Qual.name, or path::H1 > H2
        pa.field("relation", pa.string()),
        pa.field("target", pa.string()),
        pa.field("tier", pa.string()),  # how it was resolved
        *_PLACE,
    ]
)
UNRESOLVED = pa.schema(
    [*_PLACE, pa.field("kind", pa.string()), pa.field("reason", pa.string()), pa.field("name", pa.string())]
)


def sites_table(sites: Sequence[Site]) -> pa.Table:
    """Return sites as a table of SITES.

    >>> sites_table([Site("a.py::f", "CALLS", "a.py::g", "local", "a.py", 2, 12, 13)])["line"].to_pylist()
    [2]
    """
    columns = list(zip(*sites, strict=True)) or [()] * len(SITES)
    return pa.table([pa.array(column, field.type) for column, field in zip(columns, SITES, strict=True)], SITES)


def unresolved_table(rows: Sequence[Unresolved]) -> pa.Table:
    """Return what was left out as a table of UNRESOLVED."""
    columns = list(zip(*rows, strict=True)) or [()] * len(UNRESOLVED)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, UNRESOLVED, strict=True)]
    return pa.table(arrays, UNRESOLVED)


def sites_of(table: pa.Table) -> list[Site]:
    """Return the sites of a table that `sites_table` made."""
    return list(map(Site._make, zip(*(column.to_pylist() for column in table.columns), strict=True)))
