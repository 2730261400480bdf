"""The grammar of one request's answer: what it lets through is closed, grounded, ordered, compact and bounded.

An answer is a JSON list of entities in the order in which the text first names them, each with the relations that go
out from it: `[["Engine","Class",["INHERITS_FROM","Base"]],["Base","Class"]]`. The grammar makes sure that there is no
whitespace, that every name is one that was offered, that no entity comes twice, that a relation does not lead to where
it begins, and that its source may be one of its heads. It has no memory of an entity's type once the entity is over,
so whether a relation's target may be one of its tails is checked afterwards.

In EBNF as xgrammar and llguidance read it. Compiling it took 29 ms a chunk (5 without the rules against self-loops),
beside 800 for the answer, on one CPU.
"""

import json
from collections.abc import Sequence
from functools import lru_cache

from pipelines.extract.taxonomy import Taxonomy

MOST_RELATIONS = 6
"""Of one entity. Of the true relations of 2,000 chunks of Python (the parser's) and of the annotated docs of the split
dev, those within so many of their source: 4 → .81 and .95, 6 → .93 and .98, 8 → .98 and 1.0, 12 → 1.0. Each more takes
bytes that fewer names then have, so that the last few are not worth it."""


def grammar_of(names: Sequence[str], taxonomy: Taxonomy, relations: int = MOST_RELATIONS) -> str:
    """Return the grammar of answers about `names`, which are in the order of the text and at least one.

    `first` and `next` go through the names, before and after the first entity; `other` are all names but one, by way of
    those before it and those after it.

    >>> from pipelines.extract.taxonomy import NodeType
    >>> print(grammar_of(["Paris"], Taxonomy(version="1", types=[NodeType(name="City", definition="a city")])))
    root ::= "[" first0 "]"
    first0 ::= "" | e0
    e0 ::= "[\\"Paris\\"," body0 "]"
    body0 ::= t0
    t0 ::= "\\"City\\""
    """
    last, quoted = len(names) - 1, [spelt(name) for name in names]
    groups = _groups(taxonomy)
    rules = ['root ::= "[" first0 "]"']
    for at, name in enumerate(quoted):
        rules.append(f"first{at} ::= {f'e{at} next{at + 1} | first{at + 1}' if at < last else f'{_EMPTY} | e{at}'}")
        if at:
            onward = f"next{at + 1}" if at < last else _EMPTY
            rules.append(f'next{at} ::= "," e{at} {onward} | {onward}')
            rules.append(f"before{at} ::= {_either(at > 1 and f'before{at - 1}', literal(quoted[at - 1]))}")
            rules.append(f"after{at} ::= {_either(literal(name), at < last and f'after{at + 1}')}")
        if last:
            rules.append(f"other{at} ::= {_either(at > 0 and f'before{at}', at < last and f'after{at + 1}')}")
        rules.append(f'e{at} ::= {literal("[" + name + ",")} body{at} "]"')
        out = relations if last else 0
        rules.append(f"body{at} ::= " + " | ".join(_body(g, kinds, at, out) for g, (_, kinds) in enumerate(groups)))
    for number, (types, kinds) in enumerate(groups):
        rules.append(f"t{number} ::= {_choice(types)}")
        if kinds:
            rules.append(f"r{number} ::= {_choice(kinds)}")
    return "\n".join(rules)


def exactly(answer: str) -> str:
    """Return the grammar that lets through this one answer."""
    return f"root ::= {literal(answer)}"


def longest(names: Sequence[str], taxonomy: Taxonomy, relations: int = MOST_RELATIONS) -> int:
    """Return the length of the longest answer that the grammar lets through, in bytes of UTF-8.

    No tokenizer gives more tokens than bytes, and a model may spell a name in any of the tokens that it can be put
    together from, down to single bytes: of 136 answers of a small model 131 took more tokens than the tokenizer itself
    gives for the same text. So a bound in tokens that always holds is the one in bytes.
    """
    lengths = sorted(len(spelt(name).encode()) for name in names)
    entities = sum(lengths) + len(lengths) * len('["",],') - len(",") + len("[]")
    if len(lengths) == 1:
        return entities + _longest_body(taxonomy, 0, 0)
    # the target of all but the longest name may be the longest, its own only the second
    bodies = (len(lengths) - 1) * _longest_body(taxonomy, relations, lengths[-1])
    return entities + bodies + _longest_body(taxonomy, relations, lengths[-2])


def _longest_body(taxonomy: Taxonomy, relations: int, target: int) -> int:
    """Bytes of the longest type with its relations to a target of so many."""
    return max(
        max(map(len, types)) + (relations * (max(map(len, kinds)) + target + len(',["",]')) if kinds else 0)
        for types, kinds in _groups(taxonomy)
    )


def written(answer: object) -> str:
    """Return an answer as the grammar has it: JSON without whitespace."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


_EMPTY = '""'
spelt = json.JSONEncoder(ensure_ascii=False).encode
"""A name as an answer spells it: JSON."""


@lru_cache(maxsize=8)
def _groups(taxonomy: Taxonomy) -> list[tuple[list[str], tuple[str, ...]]]:
    """(types, relations that may go out from these), types with the same relations together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for kind in taxonomy.type_names:
        out = tuple(relation.name for relation in taxonomy.relations if relation.allows_head(kind))
        groups.setdefault(out, []).append(kind)
    return [(types, relations) for relations, types in groups.items()]


def _body(group: int, kinds: Sequence[str], at: int, relations: int) -> str:
    return f't{group} (",[" r{group} "," other{at} "]"){{0,{relations}}}' if kinds and relations else f"t{group}"


def _either(*choices: str | bool) -> str:
    return " | ".join(choice for choice in choices if isinstance(choice, str))


def _choice(names: Sequence[str]) -> str:
    return " | ".join(literal(spelt(name)) for name in names)


def literal(text: str) -> str:
    """A string as the grammar quotes it."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
