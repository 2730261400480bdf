"""Small tables for the UI."""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg


def preview(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> dg.MarkdownMetadataValue:
    """A markdown table of a few rows; long values are shortened.

    >>> print(preview([{"path": "a|b.py", "n": 1}], ["path", "n"]).md_str)
    | path | n |
    | --- | --- |
    | a\\|b.py | 1 |
    """
    names = list(columns)
    lines = [f"| {' | '.join(names)} |", f"| {' | '.join('---' for _ in names)} |"]
    lines += [f"| {' | '.join(_cell(row[name]) for name in names)} |" for row in rows]
    return dg.MetadataValue.md("\n".join(lines))


def _cell(value: object) -> str:
    text = " ".join(str(value).split())
    return (text if len(text) <= 100 else f"{text[:99]}…").replace("|", "\\|")
