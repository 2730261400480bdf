"""The closed taxonomy: which types and relations a model may use, read from a file."""

import tomllib
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, StringConstraints, ValidationError, model_validator

from pipelines.errors import CgragError

DEFAULT = Path(__file__).with_name("taxonomy.toml")
Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z][A-Za-z0-9_]{0,59}$")]
Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class NodeType(BaseModel):
    """A type of entities; a last resort is for what no other type fits."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    definition: Text
    last_resort: bool = False


class RelationType(BaseModel):
    """A relation; `heads` and `tails` are the types that its source and target may have, any where none are said."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: Name
    definition: Text
    heads: tuple[Name, ...] | None = None
    tails: tuple[Name, ...] | None = None
    last_resort: bool = False

    def allows_head(self, head: str) -> bool:
        """Whether an entity of this type may be its source."""
        return self.heads is None or head in self.heads

    def allows(self, head: str, tail: str) -> bool:
        """Whether entities of these two types may be its source and target."""
        return self.allows_head(head) and (self.tails is None or tail in self.tails)


class Example(BaseModel):
    """A text with the answer that it should get, shown to the model; its names should be found nowhere else."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    text: Text
    answer: tuple[tuple[str | tuple[str, str], ...], ...]
    """As grammar.py says: [name, type, [relation, target], …] of each entity, in the order of the text."""


class Taxonomy(BaseModel):
    """Everything that an answer may consist of.

    >>> Taxonomy(version="1", types=[NodeType(name="City", definition="a city")]).type_names
    ('City',)
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    version: Text
    types: tuple[NodeType, ...]
    relations: tuple[RelationType, ...] = ()
    example: Example | None = None

    @property
    def type_names(self) -> tuple[str, ...]:
        return tuple(kind.name for kind in self.types)

    def relation(self, name: str) -> RelationType | None:
        """The relation of this name, if there is one."""
        return next((relation for relation in self.relations if relation.name == name), None)

    def reference(self, head: str, tail: str) -> str:
        """REFERENCES where entities of these types may have it, else RELATES_TO, else ""."""
        for name in ("REFERENCES", "RELATES_TO"):
            relation = self.relation(name)
            if relation and relation.allows(head, tail):
                return name
        return ""

    @model_validator(mode="after")
    def _is_consistent(self) -> "Taxonomy":
        if not self.types:
            raise ValueError("it has no types")
        known = self.type_names
        for names in (known, [relation.name for relation in self.relations]):
            twice = sorted({name for name in names if list(names).count(name) > 1})
            if twice:
                raise ValueError(f"{twice[0]} is defined twice")
        for relation in self.relations:
            for side, allowed in (("heads", relation.heads), ("tails", relation.tails)):
                unknown = sorted(set(allowed or ()) - set(known))
                if unknown:
                    raise ValueError(f"{relation.name} is about the type {unknown[0]}, which is not defined")
                if allowed == ():
                    raise ValueError(f"{relation.name} allows no {side}, so it never holds; leave them out for any")
        return self


def load_taxonomy(path: Path | None = None) -> Taxonomy:
    """Return the taxonomy of a TOML file, the product's own if none is given.

    Raises:
        CgragError: the file cannot be read, or is no taxonomy; the message names the place.
    """
    file = path or DEFAULT
    remedy = f"Mend it, or unset CGRAG_EXTRACT__TAXONOMY; {DEFAULT.name} of pipelines/extract shows the form."
    try:
        return Taxonomy.model_validate(tomllib.loads(file.read_text(encoding="utf-8")))
    except OSError as error:
        raise CgragError(f"The taxonomy {file} cannot be read: {error.strerror}.", remedy) from error
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        raise CgragError(f"The taxonomy {file} is not valid: {place or 'it'}: {first['msg']}.", remedy) from error
    except ValueError as error:
        raise CgragError(f"The taxonomy {file} is not TOML in UTF-8: {error}", remedy) from error
