"""A model's answer, validated again: closed types, names that stand in the text, relations that the taxonomy allows."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from pydantic_core import SchemaValidator, ValidationError, core_schema

from pipelines.extract.names import find_name, is_junk
from pipelines.extract.taxonomy import Taxonomy

Format = Literal["list", "slots"]
NONE = "NONE"
"""In slots: what a model says of a name or a pair that is nothing."""


@lru_cache(maxsize=8)
def schema_of(taxonomy: Taxonomy) -> SchemaValidator:
    """Return the Pydantic schema of answers: a list of (name, type, (relation, target), …).

    Made of its parts, since Pydantic does not read the annotation `tuple[str, str, *tuple[X, ...]]`.

    >>> from pipelines.extract.taxonomy import load_taxonomy
    >>> schema_of(load_taxonomy()).validate_json('[["Engine","Class",["CALLS","load"]]]')
    [('Engine', 'Class', ('CALLS', 'load'))]
    """
    name = core_schema.str_schema(strict=True)
    types = core_schema.literal_schema(list(taxonomy.type_names))
    parts: list[core_schema.CoreSchema] = [name, types]
    if taxonomy.relations:
        relations = core_schema.literal_schema([relation.name for relation in taxonomy.relations])
        parts.append(core_schema.tuple_schema([relations, name]))
    entity = core_schema.tuple_schema(parts, variadic_item_index=2 if taxonomy.relations else None)
    return SchemaValidator(core_schema.list_schema(entity))


@lru_cache(maxsize=8)
def slots_schema_of(taxonomy: Taxonomy) -> SchemaValidator:
    """Return the Pydantic schema of answers in slots: (name, type) of each name, (source, label, target) of each pair.

    >>> from pipelines.extract.taxonomy import load_taxonomy
    >>> slots_schema_of(load_taxonomy()).validate_json('[[["a","NONE"]],[["a","CALLS","b"]]]')
    ([('a', 'NONE')], [('a', 'CALLS', 'b')])
    """
    name = core_schema.str_schema(strict=True)
    types = core_schema.literal_schema([*taxonomy.type_names, NONE])
    labels = core_schema.literal_schema([*(relation.name for relation in taxonomy.relations), NONE])
    entities = core_schema.list_schema(core_schema.tuple_schema([name, types]))
    edges = core_schema.list_schema(core_schema.tuple_schema([name, labels, name]))
    return SchemaValidator(core_schema.tuple_schema([entities, edges]))


class InvalidAnswer(Exception):
    """Why an answer cannot be used at all."""


@dataclass(frozen=True)
class Entity:
    """A named thing; `starts` are its mentions, in characters from the start of the text that was read."""

    name: str
    type: str
    starts: tuple[int, ...]


@dataclass(frozen=True, order=True)
class Relation:
    """An edge between two entities of the same answer, by their names."""

    source: str
    target: str
    type: str


@dataclass(frozen=True)
class Answer:
    """What holds of an answer, and how much of it was dropped."""

    entities: tuple[Entity, ...] = ()
    relations: tuple[Relation, ...] = ()
    ungrounded: int = 0
    """Names that the text does not have."""
    junk: int = 0
    refused: int = 0
    """Relations of a dropped name, of a name to itself, or against the rules of the taxonomy."""


def parse_answer(
    content: str, taxonomy: Taxonomy, format: Format = "list"
) -> tuple[list[tuple[str, str]], set[Relation]]:
    """Return the names with their types and the relations of an answer, as it has them; what is NONE is left out.

    Raises:
        InvalidAnswer: it is no JSON of the form asked for, or uses a type or relation that the taxonomy does not have.
    """
    schema = slots_schema_of(taxonomy) if format == "slots" else schema_of(taxonomy)
    try:
        read = schema.validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        place = ".".join(str(part) for part in first["loc"])
        raise InvalidAnswer(f"{place}: {first['msg']}" if place else first["msg"]) from error
    if format == "slots":
        entities, edges = read
        named = [(name.strip(), kind) for name, kind in entities if kind != NONE]
        return named, {Relation(one.strip(), other.strip(), label) for one, label, other in edges if label != NONE}
    return [(name.strip(), kind) for name, kind, *_ in read], set(_relations(read))


def read_answer(text: str, content: str, taxonomy: Taxonomy, start: int = 0, format: Format = "list") -> Answer:
    """Return what `content`, an answer about `text`, says; mentions are counted from `start` on.

    A name that is given two types keeps the first.

    Raises:
        InvalidAnswer: it is no JSON of the form asked for, or uses a type or relation that the taxonomy does not have.
    """
    named, relations = parse_answer(content, taxonomy, format)
    entities: dict[str, Entity] = {}
    ungrounded: set[str] = set()
    junk: set[str] = set()
    for name, kind in named:
        places = find_name(text, name)
        if is_junk(name):
            junk.add(name)
        elif not places:
            ungrounded.add(name)
        elif name not in entities:
            entities[name] = Entity(name, kind, tuple(start + place for place in places))
    kept = {relation for relation in relations if _holds(relation, entities, taxonomy)}
    return Answer(
        entities=tuple(entities.values()),
        relations=tuple(sorted(kept)),
        ungrounded=len(ungrounded),
        junk=len(junk),
        refused=len(relations - kept),
    )


def join(first: Answer, second: Answer) -> Answer:
    """Return what the answers about the two halves of a text say together."""
    entities = {entity.name: entity for entity in first.entities}
    for entity in second.entities:
        known = entities.get(entity.name)
        starts = (known.starts if known else ()) + entity.starts
        entities[entity.name] = Entity(entity.name, known.type if known else entity.type, starts)
    return Answer(
        entities=tuple(entities.values()),
        relations=tuple(sorted({*first.relations, *second.relations})),
        ungrounded=first.ungrounded + second.ungrounded,
        junk=first.junk + second.junk,
        refused=first.refused + second.refused,
    )


def _relations(read: list[Any]) -> Iterator[Relation]:
    for name, _, *said in read:
        for relation, target in said:
            yield Relation(name.strip(), target.strip(), relation)


def _holds(relation: Relation, entities: dict[str, Entity], taxonomy: Taxonomy) -> bool:
    head, tail, kind = entities.get(relation.source), entities.get(relation.target), taxonomy.relation(relation.type)
    if head is None or tail is None or kind is None or head is tail:
        return False
    return kind.allows(head.type, tail.type)
