"""The answer format `slots`: rules choose names and pairs, the model gives each name a type and each pair a label.

An answer is `[[["Engine","Class"],["Base","Class"]],[["Engine","INHERITS_FROM","Base"]]]`. The grammar spells all of it
but the types, the labels (both may be NONE), and which of a pair is the source: nothing is said twice, nothing leads to
itself, and every pair is asked about. As with lists, whether a relation fits the types of its ends is checked
afterwards: the grammar has no memory of them.
"""

import re
from collections.abc import Iterator, Sequence
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
MOST_NAMES = 20
"""The most salient ones. Of the true pairs of 400 chunks of Python and of the annotated docs of the split dev, those
asked about with 24 pairs: of 12 names .50 in code, .36 of a heading's in docs; of 20 .66 and .38; of 32 .69 and .38."""
_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+\w+[^\n]*[:(,][ \t]*$", re.MULTILINE)
_TITLE = re.compile(r"#{1,6}[ \t]+\S")


def candidate_pairs(text: str, ranked: Sequence[str], most: int = MOST_PAIRS) -> list[tuple[str, str]]:
    """Return pairs of names to ask about, in the order of the text; `ranked` has the most salient name first.

    Names go together that stand in one sentence of prose, or with a head: the heading above them, the line of the
    definition around them. Those of the most salient names are kept. Of a name and a part of it there is no pair.

    >>> candidate_pairs("# Use\\nA calls B.\\nC is D.", ["Use", "A", "B", "C", "D"], most=4)
    [('Use', 'A'), ('Use', 'B'), ('Use', 'C'), ('A', 'B')]
    """
    is_code = bool(_DEFINITION.search(text))
    found = set(_below_heads(text, ranked, is_code))
    if not is_code:
        for start, end in Prose(text).sentences():
            found.update(combinations(sorted(number for _, number in _places(text[start:end], ranked)), 2))
    apart = ((a, b) for a, b in found if ranked[a] not in ranked[b] and ranked[b] not in ranked[a])
    kept = sorted(apart, key=lambda pair: (sum(pair), pair))[:most]
    place = {number: at for at, number in _places(text, ranked)}
    ordered = sorted(sorted(pair, key=place.__getitem__) for pair in kept)
    ordered.sort(key=lambda pair: [place[number] for number in pair])
    return [(ranked[one], ranked[other]) for one, other in ordered]


def _below_heads(text: str, ranked: Sequence[str], is_code: bool) -> Iterator[tuple[int, int]]:
    """Yield the numbers of pairs of a head's first name and another on its line or below it, the lower number first."""
    heads: list[tuple[int, int]] = []
    for line in filter(str.strip, text.splitlines()):
        numbers = [number for _, number in _places(line, ranked)]
        head = (_DEFINITION if is_code else _TITLE).match(line)
        indent = len(line) - len(line.lstrip())
        if is_code and not line.lstrip().startswith((")", "]", "}")):
            heads = [above for above in heads if above[0] < indent]
        elif head:
            heads = []
        pairs = [(heads[-1][1], number) for number in numbers] if heads else []
        if head and numbers:
            pairs += [(numbers[0], number) for number in numbers[1:]]
            heads.append((indent, numbers[0]))
        yield from ((min(pair), max(pair)) for pair in pairs if pair[0] != pair[1])


def _places(text: str, names: Sequence[str]) -> list[tuple[int, int]]:
    """(first place, number) of the names that a text has, in its order."""
    return sorted((at[0], number) for number, name in enumerate(names) if (at := find_name(text, name)))


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
