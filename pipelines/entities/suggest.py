"""Names that likely mean the same, each pair with a score and the evidence for it; nothing here becomes a fact.

What suggests a pair is its spelling, or a text that gives one as the abbreviation of the other. Vectors, neighbours
and contexts then say more about it; by themselves they suggest none, since they are as close for opposites: of the
names of vLLM's docs, those with a cosine above .75 that are not spelt alike were such as "kv consumer", "kv producer".
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import duckdb

from pipelines.dense.encoder import Encoder, Vectors
from pipelines.entities.candidates import Candidates, Pair, find_candidates
from pipelines.entities.contexts import Contexts, load_contexts
from pipelines.entities.spelling import likeness
from pipelines.errors import CgragError
from pipelines.graph.reviewed import is_bare, merges_of, read_decisions, reviewed_file
from pipelines.graph.store import open_current
from pipelines.layout import Layout
from pipelines.settings import Settings

WEIGHTS = {"spelling": 0.5, "embedding": 0.2, "types": 0.1, "neighbours": 0.1, "chunks": 0.1}
"""Of each part of a score; of those that are known of a pair, so that a score without vectors has the same scale."""
_SHOWN = 3


@dataclass(frozen=True)
class Suggestion:
    """Two entities that may be one; `a` and `b` are rows of id, name, types, mentions and the first place."""

    a: dict[str, Any]
    b: dict[str, Any]
    score: float
    """From 0 to 1: the weighted mean of `parts`."""
    parts: dict[str, float]
    evidence: dict[str, Any]
    """By part: what is alike, and where; `abbreviation` where a text says that they are one."""


@dataclass(frozen=True)
class Suggested:
    """The likeliest pairs first, of so many names and candidates; `note` says what could not be looked at."""

    suggestions: list[Suggestion]
    names: int
    candidates: int
    note: str


def suggest(settings: Settings, k: int, open_encoder: Callable[[], Encoder] | None) -> Suggested:
    """Return the `k` likeliest pairs that nobody has decided about; without an encoder they are scored without vectors.

    Raises:
        CgragError: there is no graph, or the reviewed file cannot be read.
    """
    with open_current(Layout(settings.home)) as graph:
        names = dict(graph.execute("SELECT id, name FROM entities WHERE path = ''").fetchall())
        found = find_candidates(names, _placed(graph))
        said = _abbreviations(graph)
        pairs = _undecided({*found.same_key, *found.near, *said}, settings)
        contexts = load_contexts(graph, Layout(settings.home), sorted({id for pair in pairs for id in pair}))
    note = f"{found.passed_over} names may mean any of many symbols, and are left out" if found.passed_over else ""
    vectors: dict[str, Vectors] = {}
    if pairs:
        try:
            vectors = _embedded(contexts, open_encoder) if open_encoder else {}
        except CgragError as error:
            open_encoder, note = None, f"{note}; {error.problem}" if note else error.problem
        if open_encoder is None:
            note = f"{note}; " * bool(note) + "scored without vectors:  make dense  installs the encoder"
    rows = [_suggestion(pair, found, said, contexts, vectors) for pair in sorted(pairs)]
    rows.sort(key=lambda row: (-row.score, row.a["id"], row.b["id"]))
    return Suggested(rows[:k], len(names), len(pairs), note)


def _placed(graph: duckdb.DuckDBPyConnection) -> dict[str, list[str]]:
    """How symbols, pages and headings may be called: by their names and the last part of them, a file by its stem."""
    rows = graph.execute("SELECT id, name, key, type FROM entities WHERE path <> ''").fetchall()
    return {
        id: [key] if "::" not in id else [name] if kind == "Concept" else [name, name.rpartition(".")[2]]
        for id, name, key, kind in rows
    }


def _abbreviations(graph: duckdb.DuckDBPyConnection) -> dict[Pair, dict[str, Any]]:
    """Where a text gives one name as the abbreviation of another."""
    query = "SELECT source, target, evidence FROM edges WHERE binding = 'abbreviation' ORDER BY source, target"
    rows = graph.execute(query).fetchall()
    places = {(min(a, b), max(a, b)): evidence[0] for a, b, evidence in rows}
    return {pair: {name: place[name] for name in ("path", "start_line")} for pair, place in places.items()}


def _undecided(pairs: Iterable[Pair], settings: Settings) -> set[Pair]:
    """Those that are not decided, would not make two symbols one, and are not one already."""
    path = reviewed_file(settings)
    decisions = read_decisions(path)
    decided = {one.pair for one in decisions}
    group_of = {id: group for group in merges_of(decisions, path).groups for id in group}

    def is_open(a: str, b: str) -> bool:
        both = {*group_of.get(a, (a,)), *group_of.get(b, (b,))}
        return (
            (a, b) not in decided and group_of.get(a, a) != group_of.get(b, b) and sum(not is_bare(x) for x in both) < 2
        )

    return {pair for pair in pairs if is_open(*pair)}


def _embedded(contexts: Contexts, open_encoder: Callable[[], Encoder]) -> dict[str, Vectors]:
    """The vector of each name as it stands in its first context."""
    ids = sorted(contexts)
    vectors = open_encoder().encode([contexts[id].described for id in ids], "document")
    return dict(zip(ids, vectors, strict=True))


def _suggestion(
    pair: Pair,
    found: Candidates,
    said: Mapping[Pair, dict[str, Any]],
    contexts: Contexts,
    vectors: Mapping[str, Vectors],
) -> Suggestion:
    a, b = (contexts[id] for id in pair)
    parts: dict[str, float] = {}
    evidence: dict[str, Any] = {}
    meanings = found.same_key.get(pair, 0)
    if meanings:
        parts["spelling"] = 0.5 + 0.5 / meanings
        evidence["spelling"] = {"same_key": True, "meanings": meanings}
    else:
        ratio = likeness(a.name, b.name)
        parts["spelling"] = 1.0 if pair in said else ratio
        evidence["spelling"] = {"same_key": False, "ratio": round(ratio, 3)}
    if pair in said:
        evidence["abbreviation"] = said[pair]  # whose vector is like nothing
    elif vectors:
        cosine = float(vectors[pair[0]] @ vectors[pair[1]])
        parts["embedding"] = max(cosine, 0.0)
        evidence["embedding"] = {"cosine": round(cosine, 3)}
    parts["types"] = float(bool({*a.types} & {*b.types}))
    evidence["types"] = [a.types, b.types]
    parts["neighbours"], evidence["neighbours"] = _shared(a.neighbours - {pair[1]}, b.neighbours - {pair[0]})
    parts["chunks"], evidence["chunks"] = _shared(set(a.chunks), set(b.chunks))
    evidence["chunks"]["shared"] = [a.chunks[chunk] for chunk in evidence["chunks"]["shared"]]
    weight = sum(WEIGHTS[name] for name in parts)
    score = sum(WEIGHTS[name] * value for name, value in parts.items()) / weight
    rounded = {name: round(value, 3) for name, value in parts.items()}
    return Suggestion(a.row(pair[0]), b.row(pair[1]), round(score, 3), rounded, evidence)


def _shared(a: set[str], b: set[str]) -> tuple[float, dict[str, Any]]:
    """The share of two sets that is in both, and some of what is."""
    both = a & b
    return len(both) / len(a | b) if both else 0.0, {
        "both": len(both),
        "of": len(a | b),
        "shared": sorted(both)[:_SHOWN],
    }
