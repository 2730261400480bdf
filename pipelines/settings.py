"""Every setting of the product. This module alone reads the environment."""

from pathlib import Path
from typing import Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, TomlConfigSettingsSource

from pipelines.errors import CgragError

PROJECT = Path(__file__).resolve().parent.parent
"""The checkout: where dagster.yaml lies, and `data/` unless CGRAG_HOME says otherwise."""
DEFAULT_CORPUS = "pypi:vllm==0.10.1"
SETTINGS_FILE = "cgrag.toml"


class ChunkSettings(BaseModel):
    """How text becomes chunks; part of every chunk partition's fingerprint."""

    model_config = ConfigDict(extra="forbid")

    strategy: Literal["packed", "units", "windows"] = "packed"
    """packed: structural units joined up to the cap; units: each alone; windows: structure ignored."""
    cap: int = Field(2000, ge=200)
    """The longest chunk, in characters (an overlap comes on top)."""
    overlap: int = Field(0, ge=0, le=1000)
    """Characters of the text before a chunk that are repeated in it."""
    section: int = Field(600, ge=0)
    """A heading starts a new unit only after this many characters."""


class FieldSettings(BaseModel):
    """BM25F's weight of one field and how strongly its length is normalised (0 to 1)."""

    model_config = ConfigDict(extra="forbid")

    weight: float = Field(ge=0)
    b: float = Field(ge=0, le=1)


class LexicalSettings(BaseModel):
    """BM25F over the fields of a chunk, plus a share of its file's own score (README, Retrieval)."""

    model_config = ConfigDict(extra="forbid")

    path: FieldSettings = FieldSettings(weight=2, b=0.75)
    trail: FieldSettings = FieldSettings(weight=2, b=0.75)
    body: FieldSettings = FieldSettings(weight=1, b=0.4)
    k1: float = Field(0.9, gt=0)
    file_path: FieldSettings = FieldSettings(weight=5, b=0.75)
    file_body: FieldSettings = FieldSettings(weight=1, b=0.4)
    file_share: float = Field(0.5, ge=0)


class Settings(BaseSettings):
    """Read from `CGRAG_*` variables first, then from cgrag.toml in the working directory.

    A nested setting is `CGRAG_CHUNKING__CAP=1500`, or `cap = 1500` under `[chunking]`.
    """

    model_config = SettingsConfigDict(
        env_prefix="CGRAG_", env_nested_delimiter="__", toml_file=SETTINGS_FILE, extra="forbid", populate_by_name=True
    )

    home: Path = PROJECT / "data"
    """All data of one corpus."""
    dagster_home: Path = Field(PROJECT, validation_alias=AliasChoices("DAGSTER_HOME", "dagster_home"))
    index_url: str = Field(
        "https://pypi.org/simple/", validation_alias=AliasChoices("CGRAG_INDEX_URL", "PIP_INDEX_URL", "index_url")
    )
    """The package index that `pypi:` corpora come from."""
    neo4j_uri: str | None = Field(None, validation_alias=AliasChoices("NEO4J_URI", "neo4j_uri"))
    """Where a Neo4j listens, if there is one."""
    max_file_bytes: int = Field(2_000_000, ge=1)
    """A larger file is skipped, and counted."""
    max_source_bytes: int = Field(4_000_000_000, ge=1)
    """An archive that unpacks to more is refused."""
    partition_chunks: int = Field(400, ge=0)
    """The aim for one partition; 0 makes every directory a partition of its own."""
    chunking: ChunkSettings = ChunkSettings()
    lexical: LexicalSettings = LexicalSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, TomlConfigSettingsSource(settings_cls)


def load_settings() -> Settings:
    """Return the settings, paths made absolute.

    Raises:
        CgragError: a value is not valid or a key of cgrag.toml is unknown; the message names it.
    """
    try:
        settings = Settings()
    except ValidationError as error:
        first = error.errors()[0]
        name = "__".join(str(part) for part in first["loc"]).upper()
        variable = name if name in ("DAGSTER_HOME", "PIP_INDEX_URL") else f"CGRAG_{name.removeprefix('CGRAG_')}"
        raise CgragError(
            f"The setting {variable} is not valid: {first['msg']} (it is {first.get('input')!r}).",
            f"Change it in the environment or in {SETTINGS_FILE}; README, Settings, lists what each takes.",
        ) from error
    except ValueError as error:
        raise CgragError(f"{SETTINGS_FILE} cannot be read: {error}", f"Mend or remove {SETTINGS_FILE}.") from error
    return settings.model_copy(
        update={"home": settings.home.expanduser().absolute(), "dagster_home": settings.dagster_home.absolute()}
    )
