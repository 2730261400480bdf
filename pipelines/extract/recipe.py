"""A recipe: everything that turns a chunk's text into a request, and the request's answer into entities.

Model, revision, prompt, taxonomy, grammar and decode settings: two recipes never share a ledger. A recipe is stored
beside its results, so that old ones can be read after the settings have changed.
"""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.errors import CgragError
from pipelines.extract.answer import Answer, InvalidAnswer, join, read_answer
from pipelines.extract.names import VERSION as NAMES_VERSION
from pipelines.extract.names import names_in
from pipelines.extract.taxonomy import Taxonomy, load_taxonomy
from pipelines.layout import Layout, file_name
from pipelines.settings import ExtractSettings, Settings
from pipelines.tables import digest, read_json, write_json

VERSION = 1
"""Raise it when the same recipe renders other requests."""
PROMPT = Path(__file__).with_name("prompt.txt")
CANARY = "cgrag canary: write one sentence about the sea, and no JSON."
_CANARY_NAME = "Qorvex9Zyl"
_SHORTEST_SPLIT = 400
_MOST_ENTITIES, _MOST_RELATIONS = 24, 16


@dataclass(frozen=True)
class Request:
    """What is sent to the server; `key` is the hash of all of it and of the model's revision."""

    key: str
    body: dict[str, Any]


class Recipe(BaseModel):
    """How chunks are asked about; `id` names its ledger."""

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))

    model: str
    revision: str
    prompt: str
    """The template, with $types and $relations."""
    taxonomy: Taxonomy
    max_tokens: int
    version: tuple[int, int] = (VERSION, NAMES_VERSION)

    @cached_property
    def id(self) -> str:
        return f"{file_name(self.model).rpartition('-')[0]}-{digest(self.model_dump(mode='json'))[:8]}"

    @cached_property
    def system(self) -> str:
        """The fixed part of every prompt: it comes first, so that a server's prefix cache keeps it."""
        types = "\n".join(f"- {kind.name}: {kind.definition}" for kind in self.taxonomy.types)
        relations = "\n".join(
            f"- {relation.name}: {relation.definition}"
            + (f"; from {' or '.join(relation.heads)}" if relation.heads else "")
            + (f"; to {' or '.join(relation.tails)}" if relation.tails else "")
            for relation in self.taxonomy.relations
        )
        return Template(self.prompt).substitute(types=types, relations=relations)

    def request(self, text: str) -> Request | None:
        """Return the request for a text, which stands in it as it is; None where it has no name to ask about."""
        names = names_in(text)
        return self._request(text, names) if names else None

    def canary(self) -> Request:
        """Return a request whose answer only a server that binds to the grammar can give."""
        return self._request(CANARY, [_CANARY_NAME], only=True)

    def fails_canary(self, content: str) -> bool:
        """Whether this answer to the canary shows that the grammar does not bind."""
        wanted = {"entities": [{"name": _CANARY_NAME, "type": self.taxonomy.type_names[0]}], "relations": []}
        try:
            return bool(json.loads(content) != wanted)
        except (ValueError, RecursionError):
            return True

    def read(self, text: str, pieces: list[dict[str, Any]]) -> Answer:
        """Return what the pieces of a ledger row (start, end, content) say about `text`.

        Raises:
            InvalidAnswer: one of them is not valid.
        """
        if not pieces:
            raise InvalidAnswer("there is no answer")
        answers = [
            read_answer(text[piece["start"] : piece["end"]], piece["content"], self.taxonomy, piece["start"])
            for piece in pieces
        ]
        return answers[0] if len(answers) == 1 else join(*answers)

    def split(self, text: str) -> int | None:
        """Return where to cut a text whose answer was cut off: at a line, a blank, or its middle; None if too short."""
        if len(text) < _SHORTEST_SPLIT:
            return None
        middle = len(text) // 2
        for mark in ("\n", " "):
            places = [at + 1 for at in (text.rfind(mark, 0, middle), text.find(mark, middle)) if at > 0]
            near = [at for at in places if abs(at - middle) <= len(text) // 4]
            if near:
                return min(near, key=lambda at: abs(at - middle))
        return middle

    def _request(self, text: str, names: list[str], only: bool = False) -> Request:
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": self.system}, {"role": "user", "content": text}],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "extraction", "strict": True, "schema": self._schema(names, only)},
            },
            "max_tokens": self.max_tokens,
            "temperature": 0,
        }
        return Request(digest(body, self.revision, self.version), body)

    def _schema(self, names: list[str], only: bool) -> dict[str, Any]:
        types = self.taxonomy.type_names
        name = {"type": "string", "enum": names}
        relations = [relation.name for relation in self.taxonomy.relations]
        entity = _object({"name": name, "type": {"type": "string", "enum": list(types[:1] if only else types)}})
        relation = _object({"source": name, "target": name, "type": {"type": "string", "enum": relations}})
        return _object(
            {
                "entities": {
                    "type": "array",
                    "items": entity,
                    "minItems": 1 if only else 0,
                    "maxItems": 1 if only else min(len(names), _MOST_ENTITIES),
                },
                "relations": {
                    "type": "array",
                    "items": relation,
                    "maxItems": 0 if only or not relations else _MOST_RELATIONS,
                },
            }
        )


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def recipe_of(settings: ExtractSettings) -> Recipe:
    """Return the recipe that the settings describe.

    Raises:
        CgragError: the taxonomy cannot be used.
    """
    return Recipe(
        model=settings.model,
        revision=settings.revision,
        prompt=PROMPT.read_text(encoding="utf-8"),
        taxonomy=load_taxonomy(settings.taxonomy),
        max_tokens=settings.max_tokens,
    )


def active_recipe(settings: Settings) -> Recipe:
    """Return the recipe whose results are used: the one that CGRAG_EXTRACT__RECIPE names, else that of the settings.

    Raises:
        CgragError: there is no such recipe in this home, or the taxonomy cannot be used.
    """
    named = settings.extract.recipe
    return stored_recipe(Layout(settings.home), named) if named else recipe_of(settings.extract)


def store_recipe(layout: Layout, recipe: Recipe) -> None:
    """Write the recipe beside its results, once."""
    file = layout.ledgers / recipe.id / "recipe.json"
    if not file.exists():
        write_json(file, recipe.model_dump(mode="json"))


def stored_recipe(layout: Layout, name: str) -> Recipe:
    """Return the recipe of a ledger by its name.

    Raises:
        CgragError: there is none of this name, or its description is damaged.
    """
    file = layout.ledgers / name / "recipe.json"
    remedy = "See them all:  cgrag ledger stats"
    record = read_json(file, remedy) if name == Path(name).name else None
    if record is None:
        raise CgragError(f"This home has no ledger of a recipe {name!r}.", remedy)
    try:
        return Recipe.model_validate(record)
    except ValidationError as error:
        raise CgragError(f"{file} is damaged.", f"Remove {file}; a run with that recipe writes it again.") from error


def recipe_names(layout: Layout) -> list[str]:
    """Return the names of all recipes that have a ledger here, sorted."""
    return sorted(file.parent.name for file in layout.ledgers.glob("*/recipe.json"))
