"""How a model is asked for a summary: the fixed prompt, numbered facts, and the grammar that binds it to these."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from pipelines.extract.answer import InvalidAnswer
from pipelines.extract.grammar import exactly
from pipelines.extract.recipe import Request
from pipelines.layout import file_name
from pipelines.serve.models import model_asked
from pipelines.settings import Settings
from pipelines.summaries.said import Said, grammar_of, longest, names_in, read
from pipelines.summaries.tables import REMEDY
from pipelines.tables import digest

VERSION = 1
"""Raise it when the same facts render another request, or an answer is read otherwise."""
PROMPT = Path(__file__).with_name("prompt.txt")
CANARY = "cgrag canary: write one sentence about the sea, and no title."
_CANARY_ANSWER = "Qorvex9Zyl [1]"
_ENDING = 2
"""Tokens beside the answer's own: its end, and one to spare."""


@dataclass(frozen=True)
class SummaryRecipe:
    """Model and prompt; `id` names the ledger. It is asked by `extract.run` as recipes of extraction are."""

    model: str
    revision: str
    system: str
    max_tokens: int = 2_800
    """More than the longest summary of the longest names; each request has its own bound."""
    least: ClassVar[int] = 1_800
    """Tokens of thirty facts."""
    shorter: ClassVar[str] = ""
    empty: ClassVar[str] = ""
    again: ClassVar[str] = REMEDY

    @cached_property
    def id(self) -> str:
        told = digest(self.model, self.revision, self.system, self.max_tokens, VERSION)
        return f"summaries/{file_name(self.model).rpartition('-')[0]}-{told[:8]}"

    def request(self, text: str) -> Request | None:
        """Return the request about written facts; None where they name nothing."""
        if not names_in(text):
            return None
        return self._request(f"Facts:\n{text}", grammar_of(text), longest(text) + _ENDING)

    def read(self, text: str, pieces: list[dict[str, Any]]) -> Said:
        """Return what a ledger row's only piece says of written facts.

        Raises:
            InvalidAnswer: it is no summary of these.
        """
        if len(pieces) != 1:
            raise InvalidAnswer("there is no answer")
        return read(text, pieces[0]["content"])

    def split(self, text: str) -> int | None:
        """A summary is never cut off, so nothing is asked in halves."""
        return None

    def canary(self) -> Request:
        """Return a request whose answer only a server that binds to the grammar can give."""
        return self._request(CANARY, exactly(_CANARY_ANSWER), self.max_tokens)

    def fails_canary(self, content: str) -> bool:
        """Whether this answer to the canary shows that the grammar does not bind."""
        return content != _CANARY_ANSWER

    def _request(self, asked: str, grammar: str, max_tokens: int) -> Request:
        messages = [{"role": "system", "content": self.system}, {"role": "user", "content": asked}]
        key = digest(self.model, self.revision, messages, grammar, max_tokens, VERSION)
        return Request(key, self.model, messages, grammar, max_tokens)


def summary_recipe(settings: Settings) -> SummaryRecipe:
    """Return how the settings ask for summaries: the model is that of extraction."""
    return SummaryRecipe(*model_asked(settings), PROMPT.read_text(encoding="utf-8").rstrip("\n"))
