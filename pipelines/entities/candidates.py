"""Which pairs are worth a look: of all pairs only those that share a key, rare parts of a spelling, or an abbreviation.

Near spellings are found by prefix filtering (Chaudhuri, Ganti and Kaushik, ICDE 2006; Bayardo, Ma and Srikant, WWW
2007): two sets of three-letter pieces can only be alike to a degree if they share one of their few rarest pieces.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import combinations

from pipelines.entities.spelling import bare_key, is_near

Pair = tuple[str, str]
_LEAST_SHARED = 0.4
"""Of the pieces of two near spellings together: what "GPU" and "GPUs" share."""
_MOST_TOGETHER = 200
"""Names that share a piece: a block of more says nothing, and would cost all pairs of it."""
MOST_MEANINGS = 20
"""A key of more symbols, such as that of a method which every class has, is evidence for none of them."""


@dataclass
class Candidates:
    """Pairs of ids, in their order, by what brought them together."""

    same_key: dict[Pair, int] = field(default_factory=dict)
    """How many entities the name may mean by its key."""
    near: set[Pair] = field(default_factory=set)
    passed_over: int = 0
    """Names that share their key with more symbols than `MOST_MEANINGS`."""


def find_candidates(names: Mapping[str, str], placed: Mapping[str, Iterable[str]]) -> Candidates:
    """Return the pairs of names, {id: spelling}, that are spelt alike, and those with placed entities, {id: spellings}.

    >>> names = {"name:gpu": "GPU", "name:gpus": "GPUs", "name:run_it": "run_it"}
    >>> found = find_candidates(names, {"a.py::A.RunIt": ["A.RunIt", "RunIt"]})
    >>> found.near, found.same_key
    ({('name:gpu', 'name:gpus')}, {('a.py::A.RunIt', 'name:run_it'): 1})
    """
    found = Candidates()
    by_key: dict[str, list[str]] = defaultdict(list)
    for id, name in names.items():
        by_key[bare_key(name)].append(id)
    for ids in by_key.values():
        found.same_key |= dict.fromkeys(combinations(sorted(ids), 2), 1)
    meant: dict[str, set[str]] = defaultdict(set)
    for id, spellings in placed.items():
        for key in {*map(bare_key, spellings)} & by_key.keys():
            meant[key].add(id)
    for key, meanings in meant.items():
        if len(meanings) > MOST_MEANINGS:
            found.passed_over += len(by_key[key])
            continue
        found.same_key |= {_pair(one, other): len(meanings) for one in by_key[key] for other in meanings}
    found.near = {
        pair for pair in _sharing(names) if pair not in found.same_key and is_near(names[pair[0]], names[pair[1]])
    }
    return found


def _pair(a: str, b: str) -> Pair:
    return (a, b) if a < b else (b, a)


def _sharing(names: Mapping[str, str]) -> set[Pair]:
    """Pairs whose spellings may share enough of their pieces."""
    pieces = {id: _pieces(bare_key(name)) for id, name in names.items()}
    times = Counter(piece for each in pieces.values() for piece in each)
    blocks: dict[str, list[str]] = defaultdict(list)
    for id, each in pieces.items():
        rarest = sorted(each, key=lambda piece: (times[piece], piece))
        for piece in rarest[: len(each) - math.ceil(_LEAST_SHARED * len(each)) + 1]:
            blocks[piece].append(id)
    return {
        _pair(a, b)
        for block in blocks.values()
        if len(block) <= _MOST_TOGETHER
        for a, b in combinations(block, 2)
        if _share(pieces[a], pieces[b]) >= _LEAST_SHARED
    }


def _share(a: set[str], b: set[str]) -> float:
    return len(a & b) / len(a | b)


def _pieces(key: str) -> set[str]:
    text = f"^{key}$"
    return {text[at : at + 3] for at in range(len(text) - 2)}
