"""How a model is asked for an answer: the template, the messages, and the grammar that binds it to its sources."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from string import Template
from typing import ClassVar, NamedTuple

from pipelines.answer.said import MOST_TOKENS, grammar_of
from pipelines.answer.sources import BYTES_PER_TOKEN, Source
from pipelines.errors import CgragError
from pipelines.extract.grammar import exactly
from pipelines.extract.recipe import Request
from pipelines.extract.template import check_template, read_template
from pipelines.serve.models import model_asked
from pipelines.settings import Settings
from pipelines.tables import digest

VERSION = 1
"""Raise it when the same question, sources and template render another request, or are read otherwise."""
PROMPT = Path(__file__).with_name("prompt.txt")
LONGEST_QUESTION = 2_000
"""Characters of a question that the model is shown: more is a pasted file."""
CANARY = "cgrag canary: write one sentence about the sea."
_CANARY_ANSWER = "Qorvex9Zyl [1]"
_PLACEHOLDERS = ("sources", "question")


class Turn(NamedTuple):
    """A question of a conversation, and its answer without citations: their numbers count only once."""

    question: str
    answer: str


@dataclass(frozen=True)
class AnswerRecipe:
    """Model and template; all of it is part of the key of a cached answer."""

    model: str
    revision: str
    prompt: str
    max_tokens: int = MOST_TOKENS
    least: ClassVar[int] = 300
    """Tokens of sources below which an answer is not worth to be asked for."""
    shorter: ClassVar[str] = ""

    @cached_property
    def key(self) -> str:
        return digest(self.model, self.revision, self.prompt, self.max_tokens, VERSION)

    @cached_property
    def system(self) -> str:
        """What stands before the sources: the same for all questions."""
        return Template(self.prompt.partition("$sources")[0]).substitute().strip("\n")

    @cached_property
    def _rest(self) -> str:
        return "$sources" + self.prompt.partition("$sources")[2].rstrip("\n")

    def request(self, question: str, sources: Sequence[Source], turns: Sequence[Turn] = ()) -> Request:
        """Return the request; question and sources stand in it as they are, whatever braces or dollars they have."""
        shown = "\n\n".join(source.shown for source in sources)
        asked = Template(self._rest).substitute(sources=f"Sources:\n\n{shown}\n", question=question[:LONGEST_QUESTION])
        return self._request(asked, grammar_of(len(sources)), turns)

    def room(self, context: int | None, tokens: int, question: str, turns: Sequence[Turn] = ()) -> int:
        """Return how many tokens of sources fit: at most `tokens`, and no more than a server's context leaves."""
        if context is None:
            return tokens
        rest = [self.system, self._rest, question[:LONGEST_QUESTION], *(part for turn in turns for part in turn)]
        return min(tokens, context - self.max_tokens - sum(map(_tokens, rest)))

    def canary(self) -> Request:
        """Return a request whose answer only a server that binds to the grammar can give."""
        return self._request(CANARY, exactly(_CANARY_ANSWER))

    def fails_canary(self, content: str) -> bool:
        """Whether this answer to the canary shows that the grammar does not bind."""
        return content != _CANARY_ANSWER

    def _request(self, asked: str, grammar: str, turns: Sequence[Turn] = ()) -> Request:
        messages = [{"role": "system", "content": self.system}]
        for turn in turns:
            messages += [{"role": "user", "content": turn.question}, {"role": "assistant", "content": turn.answer}]
        messages.append({"role": "user", "content": asked})
        return Request(digest(self.key, messages, grammar), self.model, messages, grammar, self.max_tokens)


def _tokens(text: str) -> int:
    return len(text.encode()) // BYTES_PER_TOKEN + 10  # and the marks of a message around it


def answer_recipe(settings: Settings) -> AnswerRecipe:
    """Return how the settings ask for answers: the model is that of extraction.

    Raises:
        CgragError: the prompt cannot be used.
    """
    return AnswerRecipe(*model_asked(settings), load_prompt(settings.answer.prompt))


def load_prompt(path: Path | None = None) -> str:
    """Return the template of a file, the product's own if none is given.

    Raises:
        CgragError: the file cannot be read, a placeholder is missing, twice there or not known; the message names it.
    """
    file = path or PROMPT
    remedy = f"Mend it, or unset CGRAG_ANSWER__PROMPT; {PROMPT.name} of pipelines/answer shows the form."
    prompt = read_template(file, remedy)
    used = Template(prompt).get_identifiers()
    for name in _PLACEHOLDERS:
        if name not in used or prompt.count(f"${name}") != 1:
            raise CgragError(f"The prompt {file} needs the placeholder ${name} once.", remedy)
    check_template(file, prompt, _PLACEHOLDERS, remedy)
    if prompt.index("$question") < prompt.index("$sources"):
        raise CgragError(f"In the prompt {file} $question stands before $sources.", remedy)
    return prompt
