"""The picture of an evaluation, as PNG. Matplotlib is imported when one is drawn, and no earlier."""

import io
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pipelines.evaluate.evaluation import Evaluation, Row

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^vP"
_STYLES = ("-", "--", ":", "-.")


def draw(evaluation: Evaluation, dots_per_inch: int = 100) -> bytes:
    """Return three panels side by side, 1,300 × 430 points at 100 dots an inch: recall with its 95 % intervals by mode
    and arm, by split (both at the middle k), and by k."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 4.3), layout="constrained")
    by_arm, by_split, by_k = figure.subplots(1, 3, width_ratios=(1, 1.4, 1))
    k = evaluation.ks[len(evaluation.ks) // 2]
    rows = evaluation.rows
    contenders = list(dict.fromkeys((row.mode, row.arm) for row in rows))
    _points(by_arm, [row for row in rows if row.split == "all" and row.k == k], contenders)
    by_arm.set_xticks(range(len(contenders)), [_text(f"{mode}\n{arm}") for mode, arm in contenders], fontsize=9)
    by_arm.set_xlim(-0.6, len(contenders) - 0.4)
    by_arm.set_title(f"Recall@{k} by mode and arm")
    splits = list(dict.fromkeys(row.split for row in rows))
    for number, contender in enumerate(contenders):
        mine = [row for row in rows if (row.mode, row.arm) == contender and row.k == k]
        places = [
            splits.index(row.split) + (number - (len(contenders) - 1) / 2) * 0.6 / len(contenders) for row in mine
        ]
        _error_bars(by_split, places, mine, number)
    slanted = {"rotation": 30, "ha": "right"} if sum(map(len, splits)) > 30 else {}
    by_split.set_xticks(range(len(splits)), [_text(split[:24]) for split in splits], fontsize=9, **slanted)
    by_split.set_title(f"Recall@{k} by split")
    for number, (mode, arm) in enumerate(contenders):
        mine = [row for row in rows if (row.mode, row.arm, row.split) == (mode, arm, "all")]
        places = [row.k for row in mine]
        style = _STYLES[number % len(_STYLES)]
        by_k.plot(places, [row.recall for row in mine], style, marker=_MARKERS[number % 6], color=f"C{number}")
        by_k.lines[-1].set_label(_text(f"{mode} · {arm}"))
        by_k.fill_between(places, [row.low for row in mine], [row.high for row in mine], alpha=0.12, color=f"C{number}")
    by_k.set_xticks(evaluation.ks)
    by_k.set_xlabel("k")
    by_k.set_title("Recall by k, all questions")
    by_k.legend(loc="lower right", fontsize=9)
    for axes in (by_arm, by_split, by_k):
        axes.set_ylim(0, 1.02)
        axes.grid(axis="y", alpha=0.3)
    by_arm.set_ylabel("recall")
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # a split's name in a script the font lacks
        figure.savefig(buffer, format="png", dpi=dots_per_inch)
    return buffer.getvalue()


def _points(axes: "Axes", rows: Sequence[Row], contenders: Sequence[tuple[str, str]]) -> None:
    for number, row in enumerate(rows):
        _error_bars(axes, [contenders.index((row.mode, row.arm))], [row], number)
        text = f"{row.recall:.2f}"
        axes.annotate(text, (number, row.recall), xytext=(9, 0), textcoords="offset points", va="center", fontsize=9)


def _error_bars(axes: "Axes", places: Sequence[float], rows: Sequence[Row], number: int) -> None:
    values = [row.recall for row in rows]
    below = [max(row.recall - row.low, 0) for row in rows]
    above = [max(row.high - row.recall, 0) for row in rows]
    marker = _MARKERS[number % len(_MARKERS)]
    axes.errorbar(places, values, yerr=[below, above], fmt=marker, color=f"C{number}", capsize=3, markersize=5)


def _text(name: str) -> str:
    """A label as it is: a dollar sign begins no formula, and a lone surrogate no error."""
    return name.encode("utf-8", "replace").decode().replace("$", r"\$")
