"""What a model is shown of a community: its strongest edges, as numbered facts that name their ends."""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WEIGHTS = {"INHERITS_FROM": 2.0, "IMPORTS": 0.3, "DEFINED_IN": 0.2, "REFERENCES": 0.7, "RELATES_TO": 0.5}
"""How much a relation tells of what something does; others count 1."""
_EACH = 4
"""Triples of one entity, before a weaker one of others is taken: a hub is not all there is to tell."""
LONGEST_NAME = 60
"""In bytes: a triple with a longer name is left out, and so is one whose names are the same."""


@dataclass(frozen=True)
class Triple:
    """An edge with the names of its ends, and the first place that shows it."""

    source: str
    relation: str
    target: str
    path: str
    start_line: int

    @property
    def fact(self) -> str:
        """As a model reads it: without place or line, which an edit elsewhere in the file would change.

        >>> Triple("LoRAModel", "INHERITS_FROM", "Adapter", "a.py", 3).fact
        '`LoRAModel` inherits from `Adapter`'
        """
        return f"`{self.source}` {self.relation.lower().replace('_', ' ')} `{self.target}`"


def strongest(edges: Iterable[Mapping[str, Any]], entities: Mapping[str, Mapping[str, Any]], most: int) -> list[Triple]:
    """Return at most `most` triples of a community's own edges (rows of `edges`), in the order of their ends' ids.

    An edge counts its relation's weight times log2(1 + places), times 1 + log2(1 + what leads to it) of both ends: what
    others use comes first, a test last. Which are taken depends on these edges alone, not on what is around them.
    """
    strength: dict[tuple[str, str, str], float] = {}
    row_of: dict[tuple[str, str, str], Mapping[str, Any]] = {}
    parts: dict[str, list[float]] = defaultdict(list)
    for row in edges:
        key = (row["source"], row["relation"], row["target"])
        one, other = (shown_name(entities[end]["name"]) for end in (row["source"], row["target"]))
        if one and other and one != other:
            row_of[key] = row
            strength[key] = _WEIGHTS.get(row["relation"], 1.0) * math.log2(1 + row["weight"])
            parts[row["target"]].append(strength[key])
    used = {end: 1 + math.log2(1 + math.fsum(found)) for end, found in parts.items()}
    score = {key: round(value * used.get(key[0], 1.0) * used[key[2]], 9) for key, value in strength.items()}
    ranked = sorted(score, key=lambda key: (-score[key], key))
    return [_triple(row_of[key], entities) for key in sorted(_spread(ranked, most))]


def shown_name(name: str) -> str:
    """A name as it stands between backticks; "" of one that is too long.

    >>> shown_name("Using `torch.compile`"), shown_name("x" * 90)
    ("Using 'torch.compile'", '')
    """
    shown = " ".join(name.replace("`", "'").split())
    return shown if 0 < len(shown.encode("utf-8", "replace")) <= LONGEST_NAME and shown.isprintable() else ""


def _spread(ranked: Sequence[tuple[str, str, str]], most: int) -> list[tuple[str, str, str]]:
    """The best ones, at most so many of an entity as long as there are others."""
    taken: list[tuple[str, str, str]] = []
    passed: list[tuple[str, str, str]] = []
    count: Counter[str] = Counter()
    for key in ranked:
        ends = (key[0], key[2])
        if all(count[end] < _EACH for end in ends):
            count.update(ends)
            taken.append(key)
        else:
            passed.append(key)
    return [*taken, *passed][:most]


def _triple(row: Mapping[str, Any], entities: Mapping[str, Mapping[str, Any]]) -> Triple:
    source = entities[row["source"]]
    place = (row["evidence"] or [source])[0]
    names = (shown_name(source["name"]), shown_name(entities[row["target"]]["name"]))
    return Triple(names[0], row["relation"], names[1], place["path"], place["start_line"])
