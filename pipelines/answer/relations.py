"""Questions for a relation of the corpus's own taxonomy: "What flows through Paris?" asks for edges flows_through."""

import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

from pipelines.answer.plain import OPEN, word_forms
from pipelines.graph.traversal import Direction, Entity, Traversal
from pipelines.retrieve.cues import BE, HAVE, stem

_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_LONGEST_NAME = 5
"""Words of a name."""


class Asked(NamedTuple):
    """A relation, the way to go, and where from."""

    relation: str
    direction: Direction
    name: str
    entities: list[Entity]


def asked_relation(
    question: str, graph: Traversal[Any, Any], relations: Collection[str], types: Collection[str]
) -> Asked | None:
    """Return what a question asks that has nothing but the words of one relation and a name of the graph; else None.

    `relations` are those that may be asked for, `types` the names of the taxonomy's types, which a question may have
    beside ("which rivers …"). A name before the relation's words is the source, one behind them the target.
    """
    words = list(_WORD.finditer(question))
    stems = [stem(word[0].lower()) for word in words]
    for relation in sorted(relations, key=lambda name: (-len(name), name)):
        wanted = [stem(part) for part in re.split(r"[_\W]+", relation.lower()) if part]
        for at in range(len(stems) - len(wanted) + 1):
            if wanted and stems[at : at + len(wanted)] == wanted:
                rest = [*range(at), *range(at + len(wanted), len(words))]
                for named, entities in _names(question, words, rest, graph):
                    others = [words[n][0].lower() for n in rest if n not in named]
                    if all(word in OPEN | BE | HAVE or word in word_forms(types) for word in others):
                        name = question[words[named[0]].start() : words[named[-1]].end()]
                        return Asked(relation, "out" if named[0] < at else "in", name, entities)
    return None


def _names(
    question: str, words: Sequence[re.Match[str]], rest: Sequence[int], graph: Traversal[Any, Any]
) -> Iterator[tuple[range, list[Entity]]]:
    """Yield the runs of the other words that are a name of the graph, the longest first, with what they name."""
    for many in range(min(_LONGEST_NAME, len(rest)), 0, -1):
        for first in rest:
            run = range(first, first + many)
            if all(number in rest for number in run):
                name = question[words[first].start() : words[run[-1]].end()]
                entities = [entity for entity in graph.find(name) if _is_called(entity, name)]
                if entities:
                    yield run, entities


def _is_called(entity: Entity, name: str) -> bool:
    return name.casefold() in (entity.name.casefold(), entity.name.rpartition(".")[2].casefold())
