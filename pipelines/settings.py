"""Every setting of the product. This module alone reads the environment."""

import os
import re
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from pipelines.errors import CgragError

PROJECT = Path(__file__).resolve().parent.parent
"""The checkout: where dagster.yaml lies, and `data/` unless CGRAG_HOME says otherwise."""
DEFAULT_CORPUS = "pypi:vllm==0.10.1"
SETTINGS_FILE = "cgrag.toml"
SETTINGS_VARIABLE = "CGRAG_SETTINGS_FILE"
"""Names another than that of the working directory."""


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


class EmbedSettings(BaseModel):
    """Sentence embeddings of units, for dense and hybrid search (README, Dense vectors)."""

    model_config = ConfigDict(extra="forbid")

    model: str = "sentence-transformers/all-MiniLM-L6-v2"
    """A folder or a hub's name; the default comes from the package index, without an account."""
    revision: str = ""
    """Of a hub's model: another revision is another model."""
    tokens: int = Field(128, ge=8)
    """Of a unit, at most: what is beyond them is not embedded."""
    device: Literal["auto", "cpu", "cuda"] = "auto"
    """auto: the GPU where there is one with room."""
    candidates: int = Field(200, ge=1)
    """How many of the lexical ranking's first chunks hybrid search ranks anew."""
    weight: float = Field(0.4, ge=0)
    """Of the cosine beside the lexical score, both as shares of their best."""
    reranker: str = ""
    """A cross-encoder, a folder or a hub's name, that ranks hybrid search's first 50 once more; without one none."""


class CodeSettings(BaseModel):
    """How code is linked."""

    model_config = ConfigDict(extra="forbid")

    hooks: dict[str, str] = {}
    """Which method a call of an object reaches through a base from outside: {"torch.nn.Module": "forward"}."""


class ExtractSettings(BaseModel):
    """What a model is asked about which chunks, and how patiently (README, Extraction)."""

    model_config = ConfigDict(extra="forbid")

    policy: Literal["hybrid", "llm", "ast", "off"] = "hybrid"
    """hybrid: code by parsing, text by the model; llm: every chunk by the model; ast: parsing alone; off: neither."""
    model: str = ""
    """A folder, a hub's name, or the name under which an endpoint serves it; else the default of this machine."""
    revision: str = ""
    """Part of every request's key: another revision answers anew. Where none is said, that of the local model."""
    taxonomy: Path | None = None
    """The corpus's own types and relations (TOML); without one, those of pipelines/extract/taxonomy.toml."""
    prompt: Path | None = None
    """A template of one's own, with $types, $relations and $chunk; pipelines/extract/prompt.txt shows the form."""
    format: Literal["list", "slots"] = "list"
    """list: the model lists names with their relations; slots: rules choose names and pairs, the model labels them."""
    recipe: str = ""
    """The recipe whose results are read, by its name in `cgrag ledger stats`; else the one of these settings."""
    max_tokens: int = Field(2560, ge=64)
    """Of the longest answer possible; as many names and relations are offered as fit into it."""
    in_flight: int = Field(32, ge=1, le=1024)
    """Requests at once, to each endpoint."""
    timeout: float = Field(600, gt=0)
    """Seconds for one answer, from connecting to its last byte."""
    retries: int = Field(2, ge=0, le=10)
    """Of a request that met a full or failing server, or none; other refusals are not asked again."""
    backoff: float = Field(0.5, ge=0)
    """Seconds before the first retry, doubled for each after it, unless the server says how long."""
    flush_results: int = Field(32, ge=1)
    flush_seconds: float = Field(5, gt=0)
    """A kill loses at most so many results, or those of so many seconds."""
    failed_share: float = Field(0.1, ge=0, le=1)
    """More of those asked may not have failed, or the check fails."""


class AnswerSettings(BaseModel):
    """How questions are answered (README, Answers); the model is that of `extract`."""

    model_config = ConfigDict(extra="forbid")

    prompt: Path | None = None
    """A template of one's own, with $sources and $question; pipelines/answer/prompt.txt shows the form."""
    tokens: int = Field(3000, ge=300)
    """Of the sources in a prompt, at most; fewer where the server's context is smaller."""
    evidence: float = Field(0.65, ge=0, le=1)
    """How much of a question a source must have, by words or meaning, before a model is asked; 0 always asks."""


class CommunitySettings(BaseModel):
    """How the graph is divided into communities (README, Communities)."""

    model_config = ConfigDict(extra="forbid")

    levels: int = Field(3, ge=1, le=8)
    """At most so many: the whole graph divided is the first."""
    largest: int = Field(150, ge=2)
    """A community with more entities is divided again, where it falls into parts."""


class SummarySettings(BaseModel):
    """Which communities a model summarises, and from how much; the model is that of `extract`."""

    model_config = ConfigDict(extra="forbid")

    levels: int = Field(2, ge=1, le=8)
    """Of communities, from the top."""
    most: int = Field(64, ge=1)
    """Communities at most, the largest of these levels."""
    triples: int = Field(60, ge=1, le=300)
    """Of a community, the strongest: each thirty are a request, and what is said of these one more."""


class ServeSettings(BaseModel):
    """The local model server, started where no endpoint is set (README, Extraction)."""

    model_config = ConfigDict(extra="forbid")

    folder: Path = PROJECT / "data" / "llm"
    """Its models, its log, and who uses it; shared by all homes."""
    port: int = Field(0, ge=0, le=65535)
    """0: one that is free."""
    idle: float = Field(600, gt=0)
    """Seconds without a user after which it stops."""
    start: float = Field(600, gt=0)
    """Seconds that it may take to start."""
    context: int = Field(8192, ge=512)
    """Tokens of a prompt and its answer at most."""
    cache_gib: float = Field(2, gt=0)
    """Memory for keys and values, on the CPU."""
    options: str = ""
    """More options of vLLM's own server, as in a shell."""


class Settings(BaseSettings):
    """Read from `CGRAG_*` variables first, then from cgrag.toml in the working directory.

    A nested setting is `CGRAG_CHUNKING__CAP=1500`, or `cap = 1500` under `[chunking]`.
    """

    model_config = SettingsConfigDict(
        env_prefix="CGRAG_",
        env_nested_delimiter="__",
        nested_model_default_partial_update=True,
        toml_file=SETTINGS_FILE,
        extra="forbid",
        populate_by_name=True,
    )

    home: Path = PROJECT / "data"
    """All data of one corpus."""
    dagster_home: Path = Field(PROJECT, validation_alias=AliasChoices("DAGSTER_HOME", "dagster_home"))
    postgres_url: SecretStr | None = None
    """Where Dagster keeps its runs, if dagster.yaml says so (deploy/dagster.yaml does); from the environment alone."""
    index_url: str = Field(
        "https://pypi.org/simple/", validation_alias=AliasChoices("CGRAG_INDEX_URL", "PIP_INDEX_URL", "index_url")
    )
    """The package index that `pypi:` corpora come from."""
    neo4j_uri: str | None = Field(None, validation_alias=AliasChoices("NEO4J_URI", "neo4j_uri"))
    """Where a Neo4j listens, if there is one, such as bolt://127.0.0.1:7687."""
    neo4j_user: str = Field("neo4j", validation_alias=AliasChoices("NEO4J_USER", "neo4j_user"))
    neo4j_password: SecretStr | None = Field(None, validation_alias=AliasChoices("NEO4J_PASSWORD", "neo4j_password"))
    """From the environment alone; without one the server is asked without a login."""
    neo4j_database: str | None = Field(None, validation_alias=AliasChoices("NEO4J_DATABASE", "neo4j_database"))
    """The user's own, where none is named."""
    neo4j_corpus: str = ""
    """The corpus's name in the database; where none is said, its usual one, such as vllm-0.10.1."""
    max_file_bytes: int = Field(2_000_000, ge=1)
    """A larger file is skipped, and counted."""
    max_source_bytes: int = Field(4_000_000_000, ge=1)
    """An archive that unpacks to more is refused."""
    partition_chunks: int = Field(400, ge=0)
    """The aim for one partition; 0 makes every directory a partition of its own."""
    questions: Path | None = None
    """A question file that the retrieval report is about, beside the synthetic set of the corpus's docs."""
    chunking: ChunkSettings = ChunkSettings()
    lexical: LexicalSettings = LexicalSettings()
    embed: EmbedSettings = EmbedSettings()
    code: CodeSettings = CodeSettings()
    extract: ExtractSettings = ExtractSettings()
    answer: AnswerSettings = AnswerSettings()
    communities: CommunitySettings = CommunitySettings()
    summaries: SummarySettings = SummarySettings()
    graph_override: str = ""
    """Why a graph is promoted although more extractions failed than is allowed; recorded with it."""
    admit: dict[str, str] = {}
    """Why edges are followed although their measure does not admit them: {"rule" or a recipe's id: the reason}."""
    reviewed: Path | None = None
    """Which names are one, as people have reviewed it: a file to be kept with the corpus; else one in the home."""
    serve: ServeSettings = ServeSettings()
    llm_urls: Annotated[tuple[str, ...], NoDecode] = ()
    """OpenAI-compatible endpoints, comma-separated, such as http://127.0.0.1:8000/v1; requests are spread over them."""
    llm_api_key: SecretStr | None = None
    """From the environment alone; shown and stored nowhere."""

    @field_validator("llm_urls", mode="before")
    @classmethod
    def _split_urls(cls, value: object) -> object:
        urls = value.split(",") if isinstance(value, str) else value
        return [url.strip().rstrip("/") for url in urls if str(url).strip()] if isinstance(urls, list | tuple) else urls

    @field_validator("llm_urls")
    @classmethod
    def _are_urls(cls, urls: tuple[str, ...]) -> tuple[str, ...]:
        for url in urls:
            if not url.startswith(("http://", "https://")) or len(url) < 9:
                raise ValueError("an address does not begin with http:// or https://")
        return urls

    @field_validator("neo4j_uri")
    @classmethod
    def _is_bolt(cls, uri: str | None) -> str | None:
        if not uri:
            return None
        if not re.match(r"(bolt|neo4j)(\+s|\+ssc)?://[^/@\s]", uri):
            raise ValueError("it is no address such as bolt://127.0.0.1:7687 or neo4j+s://host")
        if "@" in uri:
            raise ValueError("a user or password does not belong in the address; set NEO4J_USER and NEO4J_PASSWORD")
        return uri

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        file = TomlConfigSettingsSource(settings_cls, os.environ.get(SETTINGS_VARIABLE, SETTINGS_FILE))
        for variable in ("CGRAG_LLM_API_KEY", "CGRAG_POSTGRES_URL", "NEO4J_PASSWORD"):
            if file.toml_data.keys() & {variable, variable.removeprefix("CGRAG_").lower()}:
                raise ValueError(f"a secret does not belong in a file; set {variable} in the environment")
        return init_settings, env_settings, file


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
        own = name in ("DAGSTER_HOME", "PIP_INDEX_URL") or name.startswith("NEO4J_U")
        variable = name if own else f"CGRAG_{name.removeprefix('CGRAG_')}"
        value = repr(first.get("input"))
        shown = "" if "@" in value else f" (it is {value})"  # an address may hold a password
        raise CgragError(
            f"The setting {variable} is not valid: {first['msg'].removeprefix('Value error, ')}{shown}.",
            f"Change it in the environment or in {SETTINGS_FILE}; README, Settings, lists what each takes.",
        ) from error
    except ValueError as error:
        raise CgragError(f"{SETTINGS_FILE} cannot be read: {error}", f"Mend or remove {SETTINGS_FILE}.") from error
    questions, reviewed = (
        file.expanduser().absolute() if file else None for file in (settings.questions, settings.reviewed)
    )
    files = {name: getattr(settings.extract, name) for name in ("taxonomy", "prompt")}
    given = {name: file.expanduser().absolute() for name, file in files.items() if file is not None}
    settings.extract = settings.extract.model_copy(update=given)
    if settings.answer.prompt:
        prompt = settings.answer.prompt.expanduser().absolute()
        settings.answer = settings.answer.model_copy(update={"prompt": prompt})
    folder = settings.serve.folder.expanduser().absolute()
    settings.serve = settings.serve.model_copy(update={"folder": folder})
    return settings.model_copy(
        update={
            "home": settings.home.expanduser().absolute(),
            "dagster_home": settings.dagster_home.absolute(),
            "questions": questions,
            "reviewed": reviewed,
        }
    )
