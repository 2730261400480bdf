"""Local mode: what the graph has around the entities of a question, as sources beside the retrieved chunks.

Entities are those that the question names (exactly, or by search key), and those of the best hits, which vectors and
words have found. Their edges come with the place that says so, the communities around them with their summaries.
"""

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pipelines.answer.names import identifiers
from pipelines.answer.sources import Source, at_line, first_place, sources_of
from pipelines.graph.names import shown_id
from pipelines.graph.traversal import Edge, Entity, Traversal
from pipelines.lexical.tokens import query_terms, terms_of
from pipelines.retrieve.search import Result

if TYPE_CHECKING:
    from pipelines.communities.stored import Communities

_MOST_MEANT = 3
"""Entities that one name may mean: more is no name."""
_HITS = 2
"""Best hits whose definitions or sections are entities of the question, too."""
_EDGES, _COMMUNITIES = 24, 2
_NAME = re.compile(r"[^\W_](?:[\w.+#-]*\w)?")
_LONGEST_NAME = 4


def named_entities(graph: Traversal[Any, Any], question: str) -> list[Entity]:
    """Return the entities that a question names, those of the longest names first."""
    found: dict[str, Entity] = {}
    for name in (*identifiers(question), *_phrases(question)):
        meant = graph.find(name)
        if len(meant) <= _MOST_MEANT:
            found |= {entity.id: entity for entity in meant if entity.id not in found}
    return list(found.values())


def local_sources(
    graph: Traversal[Any, Any],
    communities: "Communities | None",
    question: str,
    named: Sequence[Entity],
    results: Sequence[Result],
) -> list[Source]:
    """Return edges, then summaries, then chunks, numbered: edges whose ends the question names come first.

    They are those around what the question names, and around the definitions or sections of the best results.
    """
    hits = [f"{result.path}::{result.part.name}" for result in results[:_HITS]]
    ids = list(dict.fromkeys([*(entity.id for entity in named), *hits]))
    edges = _ranked(graph.edges(ids), question)[:_EDGES]
    found = [_of_edge(edge, places) for edge, places in zip(edges, graph.evidence(edges), strict=True)]
    if communities is not None:
        around = {row.id: row for id in ids for row in communities.of(id) if row.summary}
        found += [
            at_line(row.cited[0], f"community {row.name}", row.summary)
            for row in list(around.values())[:_COMMUNITIES]
            if row.cited
        ]
    return [source.numbered(n) for n, source in enumerate((*found, *sources_of(results)), 1)]


def _phrases(question: str) -> list[str]:
    """Runs of the question's words that could be a name, the longest first; none is a stop word alone."""
    parts = _NAME.findall(question)
    runs = [
        parts[first : first + many] for many in range(_LONGEST_NAME, 0, -1) for first in range(len(parts) - many + 1)
    ]
    return [" ".join(run) for run in runs if len(query_terms(" ".join(run))) >= len(run)]


def _ranked(edges: Sequence[Edge], question: str) -> list[Edge]:
    """Edges whose other names and relation share most with the question first, then the heaviest."""
    asked = set(query_terms(question))

    def shared(edge: Edge) -> int:
        return len(asked & terms_of(f"{shown_id(edge.source)} {edge.relation} {shown_id(edge.target)}"))

    return sorted(edges, key=lambda edge: (-shared(edge), -math.log1p(edge.weight), edge.source, edge.target))


def _of_edge(edge: Edge, places: Sequence[dict[str, Any]]) -> Source:
    source, target = shown_id(edge.source), shown_id(edge.target)
    told = f"{source} {edge.relation.replace('_', ' ').lower()} {target}"
    return at_line(first_place(edge, places), f"{source} {edge.relation} {target}", told)
