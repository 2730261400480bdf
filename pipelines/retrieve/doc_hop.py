"""From docs to the code that they speak of: where the best hits are pages, what these refer to takes every fifth place.

Measured on questions made of the sentences around links that people wrote, each asked link left out (README,
Evaluation): code is found more often, and questions that ask for no code lose next to nothing. Only what a hit says
itself counts: what is named in another chunk of the section alone is passed over.
"""

from collections.abc import Hashable, Sequence
from typing import Any, TypeVar

from pipelines.graph.traversal import Traversal

Chunk = TypeVar("Chunk", bound=Hashable)
SEEDS = 3
"""Of the retriever's first hits, those of docs are gone out from."""
EVERY = 5
_ORIGINS = ("link", "rule", "cooccurrence", "llm")
"""Surest first."""


class DocHop:
    """What pages refer to, in the graph as it is seen."""

    def __init__(self, graph: Traversal[Any, Any]) -> None:
        self._graph = graph

    def targets(self, chunk_id: str, headings: Sequence[str]) -> list[tuple[str, str]]:
        """Return (entity, origin) of what a chunk refers to, the surest first; `headings` are the entities around it.

        Of those, links come first, then what is referred to most often.
        """
        edges = [edge for edge in self._graph.edges(headings, ["REFERENCES"], "out") if edge.origin in _ORIGINS]
        here = {entity for entity, chunk in self._graph.mentions({e.target for e in edges}) if chunk == chunk_id}
        ordered = sorted(edges, key=lambda edge: (_ORIGINS.index(edge.origin), -edge.weight, edge.target))
        return list(dict.fromkeys((edge.target, edge.origin) for edge in ordered if edge.target in here))


def spread(ranked: Sequence[Chunk], reached: Sequence[Chunk], k: int) -> list[Chunk]:
    """Return at most `k` chunks: a ranking in which every fifth place is taken by what was reached, as far as there is.

    >>> spread([1, 2, 3, 4, 5, 6], [9, 3], 7), spread([1, 2], [9], 3)
    ([1, 2, 3, 4, 9, 5, 6], [1, 2, 9])
    """
    found: dict[Chunk, None] = {}
    own, more = iter(ranked), iter(reached)
    while len(found) < k:
        sources = (more, own) if len(found) % EVERY == EVERY - 1 else (own, more)
        following = next((chunk for source in sources for chunk in source if chunk not in found), None)
        if following is None:
            break
        found[following] = None
    return list(found)
