"""An answer, as it is shown, kept and handed over."""

from dataclasses import replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from pipelines.answer.sources import Source


class Answer(BaseModel):
    """What is said to a question, and from where.

    `by` is who said it: the graph, a model, or nobody; then `missing` says what stood in the way, if anything did.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    question: str
    text: str = ""
    found: bool = False
    by: Literal["graph", "model", "nobody"] = "nobody"
    sources: list[Source] = []
    edges: list[dict[str, Any]] = []
    """Where one relation of the graph answers: the rows of `cgrag graph`."""
    unsupported: list[str] = []
    """Identifiers of the text that stand in no source which it cites."""
    evidence: float = 0.0
    """The share of the question's words, by weight, that the best source has."""
    retrieved: list[tuple[str, int, int]] = []
    """Path, start and end of every chunk that was retrieved, best first."""
    calls: int = 0
    """Requests to a model."""
    missing: str = ""
    notes: list[str] = []
    cached: bool = False
    seconds: dict[str, float] = {}

    def stored(self) -> dict[str, Any]:
        """What is kept of it: not what the model was shown."""
        bare = self.model_copy(update={"sources": [replace(source, text="") for source in self.sources]})
        return bare.model_dump(mode="json", exclude={"cached", "seconds"})

    def document(self) -> dict[str, Any]:
        """The JSON that scripts read."""
        rest = self.model_dump(mode="json", exclude={"text", "sources", "retrieved", "question"})
        rows = [source.row() for source in self.sources]
        return {"question": self.question, "answer": self.text, "sources": rows, **rest}
