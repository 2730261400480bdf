"""Scores of an extraction against the truth of the same chunks: mentions, types, and edges by relation."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.annotations import HEADING, Annotated
from pipelines.evaluate.bootstrap import ratio_interval
from pipelines.graph.admission import Precision

Edge = tuple[str, str, str]
"""(source, relation, target), by the keys of names."""
_EITHER_WAY = "RELATES_TO"


@dataclass(frozen=True)
class Said:
    """What is said of one chunk, by names: {key: type}, and edges."""

    names: Mapping[str, str] = field(default_factory=dict)
    edges: frozenset[Edge] = frozenset()
    headings: frozenset[str] = frozenset()
    """Keys of the titles around the chunk: as a source each stands for `HEADING`, too."""


@dataclass(frozen=True)
class Scores:
    """Of one recipe over some chunks."""

    recipe: str
    chunks: int
    mentions: Precision
    mention_recall: Precision
    types: Precision
    """Of the names that are right, those whose type is."""
    edges: Precision
    edge_recall: Precision
    pairs: Precision
    """Edges whose ends are right, whatever the relation."""
    labels: dict[str, Precision]
    """Precision by relation."""
    label_recall: dict[str, Precision]
    cooccurrence: Precision | None = None
    """Of the pairs of the same names that stand in one sentence."""


def key(name: str) -> str:
    """Return a name as names are compared: marks, case and a plural's end aside.

    >>> key("`Engine.run()`"), key("KV  caches"), key("class")
    ('engine.run', 'kv cache', 'class')
    """
    folded = " ".join(name.split()).strip("`*'").removesuffix("()").casefold()
    return folded[:-1] if len(folded) > 3 and folded.endswith("s") and not folded.endswith("ss") else folded


def truth_of(chunk: Annotated) -> Said:
    """Return what the annotators found in a chunk."""
    by_symbol = {note.symbol: note.text for note in chunk.mentions if note.symbol}
    texts = {note.text for note in chunk.mentions}

    def end(name: str) -> str:
        return HEADING if name == HEADING else key(name if name in texts else by_symbol.get(name, name))

    return Said(
        {key(note.text): note.type for note in chunk.mentions},
        frozenset((end(source), relation, end(target)) for source, relation, target in chunk.edges),
    )


def score(recipe: str, said: Sequence[Said], truth: Sequence[Said], together: Sequence[Said] | None = None) -> Scores:
    """Return the scores of what a recipe says of some chunks; intervals by resampling the chunks.

    `together` are the pairs of the recipe's own names that stand in one sentence.
    """
    told = [_as_told(one, true) for one, true in zip(said, truth, strict=True)]
    relations = sorted({relation for one in (*told, *truth) for _, relation, _ in one.edges})
    common = [sorted(s.names.keys() & t.names.keys()) for s, t in zip(told, truth, strict=True)]
    names = [(len(both), len(s.names), len(t.names)) for both, s, t in zip(common, told, truth, strict=True)]
    types = [
        (sum(s.names[name] == t.names[name] for name in both), sum(bool(s.names[name]) for name in both))
        for both, s, t in zip(common, told, truth, strict=True)
    ]
    edges = [_counts(s.edges, t.edges) for s, t in zip(told, truth, strict=True)]
    pairs = [_counts(_unlabelled(s.edges), _unlabelled(t.edges)) for s, t in zip(told, truth, strict=True)]
    by_label = {
        relation: [_counts(_of(s.edges, relation), t.edges, relation) for s, t in zip(told, truth, strict=True)]
        for relation in relations
    }
    return Scores(
        recipe,
        len(said),
        mentions=share((right, found) for right, found, _ in names),
        mention_recall=share((right, true) for right, _, true in names),
        types=share(types),
        edges=share((right, found) for right, found, _, _ in edges),
        edge_recall=share((met, true) for _, _, met, true in edges),
        pairs=share((right, found) for right, found, _, _ in pairs),
        labels={relation: share((right, found) for right, found, _, _ in rows) for relation, rows in by_label.items()},
        label_recall={relation: share((met, true) for _, _, met, true in rows) for relation, rows in by_label.items()},
        cooccurrence=score("", together, truth).edges if together is not None else None,
    )


def share(counts: Iterable[tuple[float, float]]) -> Precision:
    """Return the share of all (right, found) of the chunks, with its interval.

    >>> share([(1, 2), (1, 2)]).text
    '.50 [.50, .50] of 4'
    """
    table: NDArray[np.float64] = np.array(list(counts), dtype=np.float64).reshape(-1, 2)
    right, found = table.sum(axis=0)
    low, high = ratio_interval(table[:, 0], table[:, 1])
    return Precision(right=round(right), found=round(found), value=right / found if found else 0.0, low=low, high=high)


def _as_told(said: Said, truth: Said) -> Said:
    """An edge from a title counts as one from the heading, unless it is true of the title's own name."""
    edges = frozenset(
        (HEADING, relation, target)
        if source in said.headings and (source, relation, target) not in truth.edges
        else (source, relation, target)
        for source, relation, target in said.edges
    )
    return Said(said.names, edges, said.headings)


def _counts(said: frozenset[Edge], truth: frozenset[Edge], relation: str = "") -> tuple[int, int, int, int]:
    """(right, said, true edges that were met, true edges); of one relation, if it is named."""

    def holds(edge: Edge, among: frozenset[Edge]) -> bool:
        source, kind, target = edge
        return edge in among or (kind in (_EITHER_WAY, "") and (target, kind, source) in among)

    wanted = _of(truth, relation) if relation else truth
    right = sum(holds(edge, truth) for edge in said)
    return right, len(said), sum(holds(edge, said) for edge in wanted), len(wanted)


def _of(edges: frozenset[Edge], relation: str) -> frozenset[Edge]:
    return frozenset(edge for edge in edges if edge[1] == relation)


def _unlabelled(edges: frozenset[Edge]) -> frozenset[Edge]:
    return frozenset((min(a, b), "", max(a, b)) for a, _, b in edges)


def count_types(said: Iterable[Said]) -> dict[str, int]:
    """How many names were given each type, sorted."""
    return dict(sorted(Counter(kind for one in said for kind in one.names.values()).items()))
