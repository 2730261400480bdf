"""Ranking chunks for a question."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from pipelines.errors import CgragError
from pipelines.lexical.index import LexicalIndex
from pipelines.lexical.tokens import WORD, query_terms, terms
from pipelines.retrieve.symbols import Symbol

if TYPE_CHECKING:
    from bm25s import BM25


@dataclass(frozen=True)
class Part:
    """The definition or section of a result that fits the question best."""

    name: str
    start_line: int
    end_line: int


@dataclass(frozen=True)
class Result:
    """One ranked chunk; offsets in characters, half open, lines 1-based."""

    rank: int
    chunk_id: str
    path: str
    start: int
    end: int
    start_line: int
    end_line: int
    score: float
    via: str
    why: str
    part: Part
    text: str
    cosine: float = 0.0
    """How like the question its most similar unit is; 0 where vectors were not asked."""


@dataclass(frozen=True)
class Near:
    """How like a question a chunk's most similar unit is, and which unit that is."""

    cosine: float
    part: Part


@dataclass(frozen=True)
class Scored:
    """What a ranker makes of one question; equal scores are in order of chunk id, which is that of their number."""

    asked: Sequence[str]
    """The question's terms."""
    scores: NDArray[np.float32]
    """Shape (chunks,); a chunk with 0 is no result."""
    near: Callable[[int], Near | None] = lambda number: None
    """What vectors say of a chunk, by its number; None where they were not asked."""


Mode = Literal["lexical", "dense", "hybrid"]


class Ranker(Protocol):
    """Scores every chunk for questions; pipelines/retrieve/rankers.py has those there are."""

    @property
    def mode(self) -> Mode: ...

    @property
    def index(self) -> LexicalIndex: ...

    def score(self, questions: Sequence[str]) -> Iterator[Scored]: ...


def search(ranker: Ranker, question: str, k: int = 5) -> list[Result]:
    """Return at most `k` chunks, best first; equal scores in order of chunk id.

    A lexical ranker finds nothing for a question without a term of the corpus.

    Raises:
        CgragError: the question is blank, or k is below 1.
    """
    checked(question, k)
    (scored,) = ranker.score([question])
    return results_of(ranker, top_k(scored.scores, k), scored)


def checked(question: str, k: int) -> None:
    """Refuse what cannot be asked.

    Raises:
        CgragError: the question is blank, or k is below 1.
    """
    if k < 1:
        raise CgragError(f"k is {k}; it must be at least 1.", 'Ask for at least one result:  cgrag search "…" --k 5')
    if not question.strip():
        raise CgragError("The question is empty.", 'Ask something:  cgrag search "how is a LoRA adapter loaded"')


def results_of(ranker: Ranker, numbers: Sequence[int], scored: Scored) -> list[Result]:
    """Return the results of some chunks, ranked in the order given."""
    return [_result(ranker, rank, number, scored) for rank, number in enumerate(numbers, 1)]


def best_part_of(part: Part, symbol: Symbol) -> Part:
    """The part of a result that a graph put in: the symbol that it was put in for."""
    return part if part.name == symbol.name else Part(symbol.name, symbol.start_line, symbol.start_line)


def lexical_scores(index: LexicalIndex, asked: Sequence[str]) -> NDArray[np.float32]:
    """Return the score of every chunk, shape (chunks,): B / max B + file_share · F / max F, 0 where B is 0.

    B is the chunk's BM25F score, F that of its file.
    """
    scores = _scores(index.chunks, asked)
    best = scores.max(initial=0)
    if best <= 0:
        return scores
    files = _scores(index.files, asked)
    share = index.settings.file_share * files[index.file_of] / max(files.max(initial=0), np.float32(1e-9))
    return np.where(scores > 0, scores / best + share, np.float32(0))


def _scores(index: "BM25", asked: Sequence[str]) -> NDArray[np.float32]:
    known = [number for term in asked if (number := index.vocab_dict.get(term)) is not None]
    if not known:
        return np.zeros(index.scores["num_docs"], dtype=np.float32)
    scores: NDArray[np.float32] = index.get_scores_from_ids(known)
    return scores


def top_k(scores: NDArray[np.float32], k: int) -> list[int]:
    """Return the positions of the `k` highest positive scores, ties by position: a prefix of any longer list.

    >>> top_k(np.float32([1, 3, 0, 3]), 2), top_k(np.float32([1, 3, 0, 3]), 9)
    ([1, 3], [1, 3, 0])
    """
    positive = np.flatnonzero(scores > 0)
    if len(positive) > k:
        worst = np.partition(scores[positive], len(positive) - k)[len(positive) - k]
        positive = positive[scores[positive] >= worst]
    return [int(number) for number in positive[np.argsort(-scores[positive], kind="stable")][:k]]


def _result(ranker: Ranker, rank: int, number: int, scored: Scored) -> Result:
    row = ranker.index.table.slice(number, 1).to_pylist()[0]
    matches = _matches(row["text"], frozenset(scored.asked))
    shared = _shortest_words(matches, scored.asked)
    near = scored.near(number)
    reasons = [f"has {', '.join(shared[:4])}"] if shared else []
    reasons += [f"meaning {near.cosine:.2f}"] if near else []
    return Result(
        rank=rank,
        chunk_id=row["chunk_id"],
        path=row["path"],
        start=row["start"],
        end=row["end"],
        start_line=row["start_line"],
        end_line=row["end_line"],
        score=float(scored.scores[number]),
        via=ranker.mode,
        why="; ".join(reasons) or "its path or headings have words of the question",
        part=near.part if near and (ranker.mode == "dense" or not shared) else _best_part(row, matches),
        text=row["text"],
        cosine=near.cosine if near else 0.0,
    )


@dataclass(frozen=True)
class _Match:
    offset: int
    word: str
    terms: frozenset[str]


def _matches(text: str, asked: frozenset[str]) -> list[_Match]:
    found = []
    for match in WORD.finditer(text):
        common = asked.intersection(terms(match[0]))
        if common:
            found.append(_Match(match.start(), match[0], common))
    return found


def _shortest_words(matches: Sequence[_Match], asked: Sequence[str]) -> list[str]:
    """For each term of the question that the text has, the shortest word that has it, in lower case."""
    found: dict[str, str] = {}
    for match in sorted(matches, key=lambda match: (len(match.word), match.word)):
        for term in match.terms:
            found.setdefault(term, match.word.lower())
    return list(dict.fromkeys(found[term] for term in asked if term in found))


def _best_part(row: dict[str, Any], matches: Sequence[_Match]) -> Part:
    """The part with most terms of the question, the shortest of these; the chunk itself where no part has any."""
    best = Part(row["trail"][0] if row["trail"] else "", row["start_line"], row["end_line"])
    most = (0, 0)
    for part in row["parts"]:
        inside = [match.terms for match in matches if part["start"] <= row["start"] + match.offset < part["end"]]
        rated = (len(frozenset().union(*inside)), part["start"] - part["end"])
        if inside and rated > most:
            most = rated
            best = Part(part["name"], part["start_line"], part["end_line"])
    return best


def snippet(result: Result, question: str, most: int = 3) -> list[tuple[int, str]]:
    """Return up to `most` lines of a result, those with most terms of the question, as (line number, text) in order.

    Where no line has any, as in what was found by meaning, these are the first lines of its best part.
    """
    asked = frozenset(query_terms(question))
    lines = list(enumerate(re.split(r"\r\n|\r|\n", result.text), result.start_line))
    rated = []
    for number, line in lines:
        common = frozenset().union(*(match.terms for match in _matches(line, asked)))
        rated.append((-len(common), number, line.strip()))
    if not any(missing for missing, _, _ in rated):
        part = [(number, line.strip()) for number, line in lines if number >= result.part.start_line and line.strip()]
        return part[:most]
    return sorted(
        (number, line) for missing, number, line in sorted(rated)[:most] if missing or number == result.start_line
    )
