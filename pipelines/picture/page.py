"""One self-contained page of nodes and lines: opened from a disk it fetches nothing, and its policy forbids it to.

Names and texts reach it as JSON in which no `<` is left, and the script writes them as text only, so that no name can
become markup, whatever it is.
"""

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from string import Template
from typing import Any

from pipelines.errors import CgragError
from pipelines.tables import atomic

MOST_NODES = 200
"""More cannot be read; which ones are shown, the page says."""
_HERE = Path(__file__).parent
_PALETTE = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#7a5195",
    "#8a8a8a",
    "#a6761d",
    "#1b4f5c",
)
"""Told apart by most who see colours otherwise (after Okabe and Ito); from the eleventh on they come again."""


@dataclass(frozen=True)
class Node:
    """One drawn node; nodes of one `kind` have one colour."""

    id: str
    label: str
    kind: str
    size: float
    """Of what it stands for, as an area: a number of members, or of edges."""
    lines: list[str]
    """What is told of it."""
    start: bool = False
    """Whether it is what was asked for."""


@dataclass(frozen=True)
class Line:
    """All edges from one node to another; the first of their kinds gives the colour."""

    source: str
    target: str
    kinds: list[str]
    weight: float
    lines: list[str]
    arrow: bool = True


@dataclass(frozen=True)
class View:
    """What is seen at once; a page with several lets its reader choose."""

    name: str
    nodes: list[Node]
    lines: list[Line]
    note: str = ""
    """What is not shown."""
    colours: dict[str, str] = field(default_factory=dict)
    """Of kinds of nodes that are not to have the next free one."""


def render(title: str, views: Sequence[View]) -> str:
    """Return the page, as HTML.

    >>> page = render("</script>", [View("all", [Node("a", "A", "Class", 1, ["a.py:1"])], [])])
    >>> page.count("</script>"), "http-equiv" in page
    (3, True)
    """
    script = (_HERE / "page.js").read_text(encoding="utf-8")
    library = (_HERE / "vis-network.min.js").read_text(encoding="utf-8").partition("\n//# sourceMappingURL")[0]
    data = json.dumps({"title": title, "views": list(map(_drawn, views))}, ensure_ascii=True)
    for mark in "<>&":
        data = data.replace(mark, f"\\u{ord(mark):04x}")
    return Template((_HERE / "page.html").read_text(encoding="utf-8")).substitute(
        hashes=f"{_hash(library)} {_hash(script)}", library=library, script=script, data=data
    )


def write_page(path: Path, title: str, views: Sequence[View]) -> None:
    """Write the page in place of a file, or not at all.

    Raises:
        CgragError: it cannot be written there.
    """
    if not path.parent.is_dir() or path.is_dir():
        raise CgragError(f"{path} cannot be written: no such folder, or a folder itself.", "Name a file:  --html FILE")
    try:
        with atomic(path) as temporary:
            temporary.write_text(render(title, views), encoding="utf-8")
    except OSError as error:
        raise CgragError(f"{path} cannot be written: {error}", "Name a file elsewhere:  --html FILE") from error


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


def _drawn(view: View) -> dict[str, Any]:
    """A view as the script takes it: with colours, and how many there are of each kind."""
    kinds = Counter(node.kind for node in view.nodes)
    relations = Counter(kind for line in view.lines for kind in line.kinds)
    return asdict(view) | {
        "kinds": _coloured(kinds, view.colours),
        "relations": _coloured(relations, {}),
    }


def _coloured(counts: Counter[str], given: dict[str, str]) -> list[dict[str, Any]]:
    """The most frequent kinds first, each with its number and colour."""
    kinds = sorted(counts, key=lambda kind: (-counts[kind], kind))
    free = [kind for kind in kinds if kind not in given]
    colours = {kind: _PALETTE[at % len(_PALETTE)] for at, kind in enumerate(free)} | given
    return [{"kind": kind, "count": counts[kind], "colour": colours[kind]} for kind in kinds]
