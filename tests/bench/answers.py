"""`make bench-answers QUESTIONS=FILE`: what is cited, and whether it is told that the corpus lacks an answer.

FILE is a question file with the true sources, about the corpus of the user's own home. The questions that the corpus
does not answer stand beside this file: twenty of other fields, and ten about vLLM that its source has nothing on.
"""

import random
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from cgrag.cli.output import shown_progress
from pipelines.answer.answerer import Answerer
from pipelines.evaluate.bootstrap import intervals
from pipelines.evaluate.places import Span, load_places
from pipelines.evaluate.questions import Question, read_questions
from pipelines.lexical.index import load_index
from pipelines.settings import Settings, load_settings
from pipelines.tables import read_json

ASKED, ANSWERED = 50, 30
UNANSWERABLE = Path(__file__).with_name("unanswerable.json")
THRESHOLDS = np.arange(0.3, 0.91, 0.05)


def scores(settings: Settings, questions: Sequence[str]) -> list[float]:
    """The evidence of each question, no model asked."""
    with Answerer(settings) as answerer:
        return [answerer.answer(question, ask=False).evidence for question in questions]


def curve(told: Console, answerable: Sequence[float], others: Sequence[float]) -> None:
    """Print both rates by threshold, and what the threshold that is best on the even ones does on the odd ones."""
    table = Table("threshold", "answerable, found", "others, found")
    for threshold in THRESHOLDS:
        table.add_row(f"{threshold:.2f}", *(f"{share(part, threshold):.2f}" for part in (answerable, others)))
    told.print(table)
    best = max(THRESHOLDS, key=lambda t: (share(answerable[::2], t) - share(others[::2], t), -abs(t - 0.6)))
    halves = [share(part[1::2], best) for part in (answerable, others)]
    told.print(f"best on one half: {best:.2f}; on the other half found {halves[0]:.2f} and {halves[1]:.2f}")


def share(found: Sequence[float], threshold: float) -> float:
    return float(np.mean([one >= threshold for one in found]))


def citations(told: Console, settings: Settings, questions: Sequence[Question]) -> None:
    """Print how many answers cite only what they were given, and cite a true source."""
    with shown_progress() as report, Answerer(settings, report=report) as answerer:
        answers = answerer.answer_all([question.text for question in questions])
    rows: dict[str, list[float]] = {"cited": [], "the first source": [], "any source": []}
    given = cited = 0
    for question, answer in zip(questions, answers, strict=True):
        numbers = {source.n for source in answer.sources}
        cites = [source for source in answer.sources if source.cited]
        cited += len(cites)
        given += sum(source.n in numbers for source in cites)
        for name, sources in (
            ("cited", cites),
            ("the first source", answer.sources[:1]),
            ("any source", answer.sources),
        ):
            spans = [Span(source.path, source.start, source.end) for source in sources]
            rows[name].append(float(any(overlap(span, true) for span in spans for true in question.sources)))
    by = {name: sum(answer.by == name for answer in answers) for name in ("model", "graph", "nobody")}
    told.print(f"{len(answers)} questions: {by}; failed: {sum(bool(answer.missing) for answer in answers)}")
    told.print(f"citations of given sources: {given} of {cited}")
    told.print(f"answers with a name that no cited source has: {sum(bool(a.unsupported) for a in answers)}")
    table = Table("overlaps the true span", "share", "95 %")
    low, high = intervals(np.array(list(rows.values())).T)
    for name, values, least, most in zip(rows, rows.values(), low, high, strict=True):
        table.add_row(name, f"{np.mean(values):.2f}", f"{least:.2f}–{most:.2f}")
    told.print(table)


def overlap(one: Span, other: Span) -> bool:
    return one.path == other.path and one.start < other.end and other.start < one.end


def main() -> None:
    """Print both tables."""
    settings, told = load_settings(), Console()
    asked = read_questions(Path(sys.argv[1]), load_places(settings, load_index(settings))).questions
    chosen = sorted(random.Random(0).sample(list(asked), min(ASKED, len(asked))), key=lambda question: question.id)
    others = read_json(UNANSWERABLE, "It belongs to the checkout.")
    curve(told, scores(settings, [question.text for question in chosen[:ANSWERED]]), scores(settings, others))
    citations(told, settings, chosen)


if __name__ == "__main__":
    main()
