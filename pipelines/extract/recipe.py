"""A recipe: everything that turns a chunk's text into a request, and the request's answer into entities.

Model, revision, prompt, taxonomy, grammar and decode settings: two recipes never share a ledger. A recipe is stored
beside its results, so that old ones can be read after the settings have changed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from string import Template
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.errors import CgragError
from pipelines.extract.answer import Answer, Format, InvalidAnswer, join, read_answer
from pipelines.extract.grammar import MOST_RELATIONS, exactly, grammar_of, longest, written
from pipelines.extract.names import VERSION as NAMES_VERSION
from pipelines.extract.names import ranked_names
from pipelines.extract.slots import MOST_NAMES, MOST_PAIRS, candidate_pairs, in_slots, longest_slots, slots_grammar
from pipelines.extract.taxonomy import Example, Taxonomy, load_taxonomy
from pipelines.extract.template import check_template, read_template
from pipelines.layout import Layout, file_name
from pipelines.serve.models import model_asked
from pipelines.settings import Settings
from pipelines.tables import digest, read_json, write_json

VERSION = 3
"""Raise it when the same recipe renders other requests."""
PROMPT = Path(__file__).with_name("prompt.txt")
SLOTS_PROMPT = Path(__file__).with_name("prompt-slots.txt")
CANARY = "cgrag canary: write one sentence about the sea, and no JSON."
_CANARY_NAME = "Qorvex9Zyl"
_SHORTEST_SPLIT = 400
CHARACTERS_PER_TOKEN = 4
"""Of prose and code, roughly, where no tokenizer is at hand."""
_KEPT = 2_000
_ENDING = 2
"""Tokens beside the answer's own: its end, and one to spare."""
_FEW_RELATIONS, _FEW_NAMES = 2, 16
"""Where an answer would get too long, relations are given up first, down to so many; then names; then the rest."""
_FEW_PAIRS = 8
_PLACEHOLDERS = ("types", "relations", "chunk")
_OPTIONAL = ("example",)


@dataclass(frozen=True)
class Request:
    """What is sent to the server; `key` is the hash of all of it and of the model's revision."""

    key: str
    model: str
    messages: list[dict[str, str]]
    grammar: str
    max_tokens: int

    @property
    def body(self) -> dict[str, Any]:
        """The JSON of the request, its constraint in the words of Outlines' adapter for vLLM."""
        from outlines.models.vllm import VLLMTypeAdapter
        from outlines.types import CFG

        return {
            "model": self.model,
            "messages": self.messages,
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "chat_template_kwargs": {"enable_thinking": False},  # of templates that know it, such as Qwen3's
            **VLLMTypeAdapter().format_output_type(CFG(self.grammar)),
        }


class Recipe(BaseModel):
    """How chunks are asked about; `id` names its ledger."""

    model_config = ConfigDict(extra="forbid", frozen=True, ignored_types=(cached_property,))

    model: str
    revision: str
    prompt: str
    """The template, with $types, $relations and $chunk; $example, if wanted."""
    taxonomy: Taxonomy
    max_tokens: int
    """The longest answer, which is never cut off: names and relations are offered as far as they fit."""
    format: Format = "list"
    """What an answer looks like: a list of entities with their relations, or labels for slots that rules choose."""
    version: tuple[int, int] = (VERSION, NAMES_VERSION)
    again: ClassVar[str] = "cgrag resume --failed"
    least: ClassVar[int] = 700
    """Tokens of a usual chunk."""
    shorter: ClassVar[str] = ", or ask for shorter answers: CGRAG_EXTRACT__MAX_TOKENS=…"

    @cached_property
    def id(self) -> str:
        told = self.model_dump(mode="json", exclude={"format"} if self.format == "list" else None)
        return f"{file_name(self.model).rpartition('-')[0]}-{digest(told)[:8]}"

    @property
    def empty(self) -> str:
        """The answer about a text without a name."""
        return "[]" if self.format == "list" else "[[],[]]"

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
        example = _shown(self.taxonomy.example, self.format) if self.taxonomy.example else ""
        before = self.prompt.partition("$chunk")[0]
        return Template(before).substitute(types=types, relations=relations, example=example).rstrip("\n")

    @cached_property
    def _after(self) -> str:
        return Template(self.prompt.partition("$chunk")[2].rstrip("\n")).substitute()

    def request(self, text: str) -> Request | None:
        """Return the request for a text, which stands in it as it is; None where it has no name to ask about.

        Names and relations are offered as far as the longest answer fits into `max_tokens`. Rendering takes a
        millisecond, and is wanted when a chunk is asked about and when its table is written: the last are kept.
        """
        return self._rendered(text)

    @cached_property
    def _rendered(self) -> Callable[[str], Request | None]:
        return lru_cache(maxsize=_KEPT)(self._render)

    def _render(self, text: str) -> Request | None:
        ranked, relations = ranked_names(text), MOST_RELATIONS
        if self.format == "slots":
            return self._render_slots(text, ranked)
        names = [name for _, name in ranked]
        while names and longest(names, self.taxonomy, relations) > self.max_tokens:
            if relations > _FEW_RELATIONS or (relations > 1 and len(names) <= _FEW_NAMES):
                relations -= 1
            else:
                names.pop()
        if not names:
            return None
        names = [name for _, name in sorted(ranked[: len(names)])]
        most = longest(names, self.taxonomy, relations) + _ENDING
        return self._request(text, grammar_of(names, self.taxonomy, relations), most)

    def _render_slots(self, text: str, ranked: list[tuple[int, str]]) -> Request | None:
        """Pairs are given up first, down to a few; then names, with their pairs."""
        kept, most_pairs = min(len(ranked), MOST_NAMES), MOST_PAIRS if self.taxonomy.relations else 0
        while kept:
            names = [name for _, name in sorted(ranked[:kept])]
            pairs = candidate_pairs(text, [name for _, name in ranked[:kept]], most_pairs)
            most = longest_slots(names, pairs, self.taxonomy) + _ENDING
            if most <= self.max_tokens:
                return self._request(text, slots_grammar(names, pairs, self.taxonomy), most)
            if len(pairs) > _FEW_PAIRS or (pairs and kept <= _FEW_NAMES):
                most_pairs = len(pairs) - 1
            else:
                kept -= 1
        return None

    def canary(self) -> Request:
        """Return a request whose answer only a server that binds to the grammar can give."""
        return self._request(CANARY, exactly(self._canary_answer), self.max_tokens)

    def fails_canary(self, content: str) -> bool:
        """Whether this answer to the canary shows that the grammar does not bind."""
        return content != self._canary_answer

    @property
    def _canary_answer(self) -> str:
        return written([[_CANARY_NAME, self.taxonomy.type_names[0]]])

    def read(self, text: str, pieces: list[dict[str, Any]]) -> Answer:
        """Return what the pieces of a ledger row (start, end, content) say about `text`.

        Raises:
            InvalidAnswer: one of them is not valid.
        """
        if not pieces:
            raise InvalidAnswer("there is no answer")
        answers = [
            read_answer(
                text[piece["start"] : piece["end"]], piece["content"], self.taxonomy, piece["start"], self.format
            )
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

    def _request(self, text: str, grammar: str, max_tokens: int) -> Request:
        messages = [{"role": "system", "content": self.system}, {"role": "user", "content": text + self._after}]
        key = digest(self.model, self.revision, messages, grammar, max_tokens, self.version)
        return Request(key, self.model, messages, grammar, max_tokens)


def _shown(example: Example, format: Format) -> str:
    answer = in_slots(example) if format == "slots" else example.answer
    return f"\nFor example, of the excerpt\n{example.text}\nthe answer is\n{written(answer)}\n"


def recipe_of(settings: Settings) -> Recipe:
    """Return the recipe that the settings describe.

    Raises:
        CgragError: the taxonomy or the prompt cannot be used.
    """
    extract = settings.extract
    taxonomy = load_taxonomy(extract.taxonomy)
    if taxonomy.example:
        _check_example(taxonomy.example, taxonomy, extract.taxonomy)
    model, revision = model_asked(settings)
    return Recipe(
        model=model,
        revision=revision,
        prompt=load_prompt(extract.prompt or (SLOTS_PROMPT if extract.format == "slots" else None)),
        taxonomy=taxonomy,
        max_tokens=extract.max_tokens,
        format=extract.format,
    )


def load_prompt(path: Path | None = None) -> str:
    """Return the prompt template of a file, the product's own if none is given.

    Raises:
        CgragError: the file cannot be read, a placeholder is missing, or one is not known; the message names it.
    """
    file = path or PROMPT
    remedy = f"Mend it, or unset CGRAG_EXTRACT__PROMPT; {PROMPT.name} of pipelines/extract shows the form."
    prompt = read_template(file, remedy)
    used = Template(prompt).get_identifiers()
    for name in _PLACEHOLDERS:
        if f"${name}" not in prompt or name not in used:
            raise CgragError(f"The prompt {file} lacks the placeholder ${name}.", remedy)
    check_template(file, prompt, (*_PLACEHOLDERS, *_OPTIONAL), remedy)
    after = prompt.partition("$chunk")[2]
    late = [name for name in (*_PLACEHOLDERS, *_OPTIONAL) if name in Template(after).get_identifiers()]
    if late:
        raise CgragError(f"In the prompt {file} ${late[0]} stands after $chunk, which comes last and once.", remedy)
    return prompt


def _check_example(example: Example, taxonomy: Taxonomy, file: Path | None) -> None:
    try:
        said = read_answer(example.text, written(example.answer), taxonomy)
        names = said.ungrounded + said.junk
        wrong = f"{names} names and {said.refused} relations" if names or said.refused else ""
    except InvalidAnswer as error:
        wrong = str(error)
    if wrong:
        raise CgragError(
            f"The example of the taxonomy {file or 'of cgrag'} is against the taxonomy itself: {wrong}.",
            "Mend its answer: every name stands in its text, every relation keeps the rules.",
        )


def active_recipe(settings: Settings) -> Recipe:
    """Return the recipe whose results are used: the one that CGRAG_EXTRACT__RECIPE names, else that of the settings.

    Raises:
        CgragError: there is no such recipe in this home, or the taxonomy cannot be used.
    """
    named = settings.extract.recipe
    return stored_recipe(Layout(settings.home), named) if named else recipe_of(settings)


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
        raise CgragError(
            f"{file} is damaged, or of another version of cgrag, so its answers cannot be read.",
            f"If nobody needs them, remove {file.parent}.",
        ) from error


def recipe_names(layout: Layout) -> list[str]:
    """Return the names of all recipes that have a ledger here, sorted."""
    return sorted(file.parent.name for file in layout.ledgers.glob("*/recipe.json"))
