"""The grammar of one request's answer: what it lets through is closed, grounded, ordered, compact and bounded.

An answer is a JSON list of entities in the order in which the text first names them, each with the relations that go
out from it: `[["Engine","Class",["INHERITS_FROM","Base"]],["Base","Class"]]`. The grammar makes sure that there is no
whitespace, that every name is one that was offered, that no entity comes twice, and that a relation's source may be
one of its heads. It has no memory of an entity's type once the entity is over, so that a relation's target is checked
afterwards; so is that it is not the source itself (a list of targets for each name makes compiling take seven times
as long).

In EBNF as xgrammar and llguidance read it. Compiling one of 32 names took 8 ms (the whole answer takes 400).
"""

import json
from collections.abc import Sequence
from functools import lru_cache

from pipelines.extract.taxonomy import Taxonomy

MOST_RELATIONS = 4
"""Of one entity."""


def grammar_of(names: Sequence[str], taxonomy: Taxonomy, relations: int = MOST_RELATIONS) -> str:
    """Return the grammar of answers about `names`, which are in the order of the text and at least one.

    >>> from pipelines.extract.taxonomy import NodeType
    >>> print(grammar_of(["Paris"], Taxonomy(version="1", types=[NodeType(name="City", definition="a city")])))
    root ::= "[" (e0 | "") "]"
    e0 ::= "[\\"Paris\\"," body "]"
    body ::= t0
    t0 ::= "\\"City\\""
    name ::= "\\"Paris\\""
    """
    last, quoted = len(names) - 1, [_json(name) for name in names]
    rules = [f'root ::= "[" {"first0" if last else "(e0 | " + _EMPTY + ")"} "]"']
    for at, name in enumerate(quoted):
        if at < last:
            rules.append(f"first{at} ::= e{at} next{at + 1} | first{at + 1}")
        elif last:
            rules.append(f"first{at} ::= {_EMPTY} | e{at}")
        if at:
            onward = f"next{at + 1}" if at < last else _EMPTY
            rules.append(f'next{at} ::= "," e{at} {onward} | {onward}')
        rules.append(f'e{at} ::= {_literal("[" + name + ",")} body "]"')
    groups = _groups(taxonomy)
    rules.append("body ::= " + " | ".join(_body(number, kinds, relations) for number, (_, kinds) in enumerate(groups)))
    for number, (types, kinds) in enumerate(groups):
        rules.append(f"t{number} ::= {_choice(types)}")
        if kinds:
            rules.append(f"r{number} ::= {_choice(kinds)}")
    rules.append("name ::= " + " | ".join(map(_literal, quoted)))
    return "\n".join(rules)


def exactly(answer: str) -> str:
    """Return the grammar that lets through this one answer."""
    return f"root ::= {_literal(answer)}"


def longest(names: Sequence[str], taxonomy: Taxonomy, relations: int = MOST_RELATIONS) -> int:
    """Return the length of the longest answer that the grammar lets through, in bytes of UTF-8.

    No tokenizer gives more tokens than bytes, and a model may spell a name in any of the tokens that it can be put
    together from, down to single bytes: of 32 answers of a small model 27 took more tokens than the tokenizer itself
    gives for the same text. So a bound in tokens that always holds is the one in bytes.
    """
    lengths = [len(_json(name).encode()) for name in names]
    body = max(
        max(map(len, types)) + (relations * (max(map(len, kinds)) + max(lengths) + len(',["",]')) if kinds else 0)
        for types, kinds in _groups(taxonomy)
    )
    return sum(lengths) + len(names) * (body + len('["",],')) - len(",") + len("[]")


def written(answer: object) -> str:
    """Return an answer as the grammar has it: JSON without whitespace."""
    return json.dumps(answer, ensure_ascii=False, separators=(",", ":"))


_EMPTY = '""'
_json = json.JSONEncoder(ensure_ascii=False).encode


@lru_cache(maxsize=8)
def _groups(taxonomy: Taxonomy) -> list[tuple[list[str], tuple[str, ...]]]:
    """(types, relations that may go out from these), types with the same relations together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for kind in taxonomy.type_names:
        out = tuple(relation.name for relation in taxonomy.relations if relation.allows_head(kind))
        groups.setdefault(out, []).append(kind)
    return [(types, relations) for relations, types in groups.items()]


def _body(number: int, kinds: Sequence[str], relations: int) -> str:
    return f't{number} (",[" r{number} "," name "]"){{0,{relations}}}' if kinds and relations else f"t{number}"


def _choice(names: Sequence[str]) -> str:
    return " | ".join(_literal(_json(name)) for name in names)


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
