"""The picture of a division, as PNG. Matplotlib is imported when it is drawn, and no earlier."""

import io
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

_SHOWN = 12


def draw(communities: Sequence[Mapping[str, Any]], dots_per_inch: int = 100) -> bytes:
    """Return two panels side by side, 1,300 × 430 points at 100 dots an inch: the largest communities of the first
    level by name, and the sizes of all of each level by rank. Rows are those of the table, by level and size."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.3), layout="constrained")
    largest, sizes = figure.subplots(1, 2, width_ratios=(1, 1))
    first = [row for row in communities if row["level"] == 0][:_SHOWN][::-1]
    largest.barh(range(len(first)), [row["size"] for row in first])
    largest.set_yticks(range(len(first)), [_text(row["name"][:60]) for row in first], fontsize=8)
    largest.set_xlabel("entities")
    largest.set_title("The largest communities")
    for level in sorted({row["level"] for row in communities}):
        found = [row["size"] for row in communities if row["level"] == level]
        sizes.plot(range(1, len(found) + 1), found, marker=".", label=f"level {level}: {len(found)}")
    sizes.set_title("Sizes by rank")
    if communities:
        sizes.set_xscale("log")
        sizes.set_yscale("log")
        sizes.legend()
    sizes.set_xlabel("rank")
    sizes.grid(alpha=0.3)
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a name in a script the font lacks
        figure.savefig(buffer, format="png", dpi=dots_per_inch)
    return buffer.getvalue()


def _text(name: str) -> str:
    """A label as it is: a dollar sign begins no formula, and a lone surrogate no error."""
    return name.encode("utf-8", "replace").decode().replace("$", r"\$")
