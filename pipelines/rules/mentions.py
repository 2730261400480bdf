"""What the rules find: mentions, and pairs of them that make edges."""

from dataclasses import dataclass, field
from typing import NamedTuple

from pipelines.graph.names import name_id

CONCEPT, VARIABLE = "Concept", "Variable"
OF_SOURCE = ("abbreviation", "argument", "sentence")
"""Tiers whose sites are where the source is named; others are where the target is, said by the heading around it."""


class Mention(NamedTuple):
    """An entity where a page names it; offsets in characters of the page, half open."""

    start: int
    end: int
    entity: str
    type: str
    binding: str


class Heading(NamedTuple):
    """A heading of a page: where its section starts, its entity, and its level from 1 on."""

    start: int
    entity: str
    title: str
    level: int


@dataclass
class Found:
    """What the rules find on a page, in order."""

    mentions: list[Mention] = field(default_factory=list)
    terms: dict[str, tuple[str, str]] = field(default_factory=dict)
    """{entity: (spelling, type)} of what is in no table: defined terms, options."""
    references: list[tuple[str, str, Mention]] = field(default_factory=list)
    """(source, relation, the mention of the target)."""
    together: list[tuple[Mention, str, Mention]] = field(default_factory=list)
    """(one, relation, other) that stand in one sentence."""
    synonyms: list[tuple[Mention, str, Mention]] = field(default_factory=list)
    """(abbreviation, relation, term)."""
    arguments: list[tuple[Mention, str, Mention]] = field(default_factory=list)
    """(parameter, relation, what an example calls with it)."""

    def term(self, text: str, start: int, end: int, kind: str, binding: str) -> Mention:
        """Return a mention of what is in no table, which is known from now on."""
        name = text[start:end]
        self.terms.setdefault(name_id(name), (name, kind))
        return Mention(start, end, name_id(name), kind, binding)
