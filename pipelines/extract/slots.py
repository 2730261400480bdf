"""The answer format `slots`: rules choose names and pairs, the model gives each name a type and each pair a label.

An answer is `[[["Engine","Class"],["Base","Class"]],[["Engine","INHERITS_FROM","Base"]]]`. The grammar spells all of it
but the types, the labels (both may be NONE), and which of a pair is the source: nothing is said twice, nothing leads to
itself, and every pair is asked about. As with lists, whether a relation fits the types of its ends is checked
afterwards: the grammar has no memory of them.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from pipelines.extract.answer import NONE
from pipelines.extract.grammar import literal, spelt
from pipelines.extract.names import find_name
from pipelines.extract.taxonomy import Example, Taxonomy
from pipelines.rules.prose import Prose

Pairs = Sequence[tuple[str, str]]
MOST_PAIRS = 24
"""Of a chunk. Of the true relations of the chunks that grammar.py tells of, those within so many of their chunk:
8 → .84 in code and .64 in docs, 12 → .94 and .80, 16 → .98 and .90, 24 → 1.0 and 1.0."""
_TWICE = 2
"""Of a name that a sentence has again and again, so many places are looked at."""


def candidate_pairs(text: str, names: Sequence[str], most: int = MOST_PAIRS) -> list[tuple[str, str]]:
    """Return pairs of names to ask about, in the order of the names: those of one sentence, the nearest first.

    Of two names one of which is a part of the other there is none.

    >>> candidate_pairs("A calls B. C is D, a kind of A.", ["A", "B", "C", "D"], most=3)
    [('A', 'B'), ('A', 'D'), ('C', 'D')]
    """
    nearest: dict[tuple[int, int], int] = {}
    for start, end in Prose(text).sentences():
        sentence = text[start:end]
        places = sorted((at, number) for number, name in enumerate(names) for at in find_name(sentence, name)[:_TWICE])
        for (at, one), (other_at, other) in combinations(places, 2):
            if names[one] not in names[other] and names[other] not in names[one]:
                pair = (min(one, other), max(one, other))
                nearest[pair] = min(other_at - at, nearest.get(pair, len(text)))
    kept = sorted(nearest, key=lambda pair: (nearest[pair], pair))[:most]
    return [(names[one], names[other]) for one, other in sorted(kept)]


def slots_grammar(names: Sequence[str], pairs: Pairs, taxonomy: Taxonomy) -> str:
    """Return the grammar of answers about names, at least one, and pairs of them.

    >>> from pipelines.extract.taxonomy import NodeType
    >>> print(slots_grammar(["Paris"], [], Taxonomy(version="1", types=[NodeType(name="City", definition="a city")])))
    root ::= "[[" e0 "],[" "]]"
    e0 ::= "[\\"Paris\\"," t "]"
    t ::= "\\"City\\"" | "\\"NONE\\""
    """
    entities = ' "," '.join(f"e{number}" for number in range(len(names)))
    asked = ' "," '.join(f"p{number}" for number in range(len(pairs)))
    rules = [f'root ::= "[[" {entities} "],[" {asked} "]]"'.replace("  ", " ")]
    rules += [f'e{at} ::= {literal(f"[{spelt(name)},")} t "]"' for at, name in enumerate(names)]
    for at, (one, other) in enumerate(pairs):
        ways = [f"{literal(f'[{spelt(a)},')} r {literal(f',{spelt(b)}]')}" for a, b in ((one, other), (other, one))]
        none = literal(f"[{spelt(one)},{spelt(NONE)},{spelt(other)}]")
        rules.append(f"p{at} ::= {' | '.join([*ways, none])}")
    rules.append(f"t ::= {' | '.join(literal(spelt(name)) for name in (*taxonomy.type_names, NONE))}")
    if pairs:
        rules.append(f"r ::= {' | '.join(literal(spelt(relation.name)) for relation in taxonomy.relations)}")
    return "\n".join(rules)


def longest_slots(names: Sequence[str], pairs: Pairs, taxonomy: Taxonomy) -> int:
    """Return the length of the longest answer that the grammar lets through, in bytes of UTF-8 (see `longest`)."""
    kind = max(map(_bytes, (*taxonomy.type_names, NONE)))
    label = max(map(_bytes, (NONE, *(relation.name for relation in taxonomy.relations))))
    entities = sum(_bytes(name) + kind + len("[,],") for name in names) - len(",")
    edges = sum(_bytes(one) + _bytes(other) + label + len("[,,],") for one, other in pairs) - len(",") * bool(pairs)
    return entities + edges + len("[[],[]]")


def in_slots(example: Example) -> list[Any]:
    """Return the answer of a taxonomy's example in slots."""
    edges = [[name, kind, target] for name, _, *out in example.answer for kind, target in map(tuple, out)]
    return [[[name, kind] for name, kind, *_ in example.answer], edges]


def _bytes(name: str) -> int:
    return len(spelt(name).encode())
