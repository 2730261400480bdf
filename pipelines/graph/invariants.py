"""What must hold before a graph takes the place of the last one."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from pipelines.errors import CgragError
from pipelines.extract.partition import Stored
from pipelines.graph.build import Graph

_SAID = ("rule", "cooccurrence", "llm")
_REMEDY = "Build again:  cgrag run"


class Refused(CgragError):
    """A graph that is not promoted; `invariant` names the rule, `examples` some of the rows that break it."""

    def __init__(self, invariant: str, problem: str, examples: list[str], remedy: str = _REMEDY) -> None:
        shown = "".join(f"\n  {example}" for example in examples[:5])
        super().__init__(
            f"The new graph is refused ({invariant}): {problem}{shown}", f"The last graph stays in place. {remedy}"
        )
        self.invariant = invariant
        self.examples = examples


def check_graph(graph: Graph, chunks: Iterable[Mapping[str, Any]], symbols: int) -> None:
    """Make sure of the invariants of the graph; `symbols` is how many the parser found.

    Raises:
        Refused: one does not hold.
    """
    ids = graph.entities["id"].to_pylist()
    _refuse("identity", "an entity appears twice", [name for name, count in Counter(ids).items() if count > 1])
    known = set(ids)
    edges = list(zip(*(graph.edges[name].to_pylist() for name in ("source", "relation", "target")), strict=True))
    _refuse("identity", "an edge appears twice", [str(key) for key, count in Counter(edges).items() if count > 1])
    lost = [f"{source} {relation} {target}" for source, relation, target in edges if not {source, target} <= known]
    found_by = dict(zip(edges, graph.edges["origin"].to_pylist(), strict=True))
    loops = [f"{a} {r}" for (a, r, b), origin in found_by.items() if a == b and origin in _SAID]
    _refuse("loops", "an edge of a rule or a model leads to where it begins", loops)
    _refuse("ends", "an edge leads from or to nothing", lost)
    texts = {row["chunk_id"]: row for row in chunks}
    mentions = graph.mentions.to_pylist()
    _refuse("mentions", "a mention is of no entity", [row["entity"] for row in mentions if row["entity"] not in known])
    _refuse("generation", "a chunk is not of this corpus", [
        row["entity"] for row in mentions if row["chunk_id"] not in texts
    ] + [
        place["chunk_id"]
        for evidence in graph.edges["evidence"].to_pylist()
        for place in evidence
        if place["chunk_id"] and place["chunk_id"] not in texts
    ])  # fmt: skip
    _refuse("mentions", "the text of a mention is not there", [
        f"{row['entity']} in {texts[row['chunk_id']]['path']}:{row['line']}" for row in mentions
        if not row["text"] or _text(texts[row["chunk_id"]], row["start"], row["end"]) != row["text"]
    ])  # fmt: skip
    if symbols and not any(relation == "DEFINED_IN" for _, relation, _ in edges):
        raise Refused("empty", f"{symbols:,} symbols were found, and no DEFINED_IN edge", [])


def check_extraction(stored: Stored, share: float, override: str) -> None:
    """Make sure that no larger share of the chunks that a model was asked about failed; an override lets it pass.

    Raises:
        Refused: more did.
    """
    if stored.failed > share * stored.asked and not override:
        raise Refused(
            "extractions",
            f"{stored.failed:,} of {stored.asked:,} chunks that a model was asked about failed, more than {share:.0%}",
            [],
            "Redo them:  cgrag resume --failed      or let it pass and record why: CGRAG_GRAPH_OVERRIDE='…'",
        )


def _text(chunk: Mapping[str, Any], start: int, end: int) -> str:
    return str(chunk["text"])[start - chunk["start"] : end - chunk["start"]] if start >= chunk["start"] else ""


def _refuse(invariant: str, problem: str, examples: list[str]) -> None:
    if examples:
        raise Refused(invariant, f"{problem} ({len(examples):,})", sorted(examples))
