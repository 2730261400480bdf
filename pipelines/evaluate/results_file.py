"""Result files: what `cgrag search-dataset` or another tool retrieved for the questions of a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from pipelines.errors import CgragError
from pipelines.evaluate.places import Places, Span, corpus_paths
from pipelines.evaluate.questions import Finding, Question, Source, load_json
from pipelines.evaluate.retrievers import Retriever
from pipelines.evaluate.scoring import Ranking
from pipelines.tables import write_json

FORMAT = (
    '{"search_results": [{"question_id": …, "question": …, "retrieved_sources": [{"file_path": …, '
    '"first_character_index": …, "last_character_index": …}]}], "k": …}'
)
_LEAST_KNOWN = 0.5
"""Where fewer of the files named are in the corpus, the results are of another one."""


class _Result(BaseModel):
    model_config = ConfigDict(coerce_numbers_to_str=True)

    question_id: str
    question: str = ""
    retrieved_sources: list[Source] = Field(default_factory=list)


class _ResultFile(BaseModel):
    search_results: list[_Result]
    k: int | None = None
    corpus: str | None = None
    generation: str | None = None


@dataclass(frozen=True)
class Results:
    """What a file handed over, by question id, and what its author should know."""

    name: str
    rankings: dict[str, Ranking]
    k: int
    """The longest ranking that it can hold."""
    findings: tuple[Finding, ...]


def write_results(
    path: Path,
    questions: Sequence[Question],
    rankings: Sequence[Ranking],
    answers: Sequence[Mapping[str, object]] = (),
    **about: object,
) -> None:
    """Write rankings in the form of `FORMAT`; `about` (k, mode, corpus, generation) stands beside them.

    With `answers`, one for each question, what these have is added to its row.

    Raises:
        CgragError: the file cannot be written.
    """
    rows: list[dict[str, Any]] = []
    more = answers or [{}] * len(questions)
    for question, ranking, answer in zip(questions, rankings, more, strict=True):
        spans = [
            {"file_path": span.path, "first_character_index": span.start, "last_character_index": span.end}
            for span in ranking
        ]
        rows.append({"question_id": question.id, "question": question.text, "retrieved_sources": spans, **answer})
    try:
        write_json(path, {"search_results": rows, **about})
    except OSError as error:
        raise CgragError(f"{path} cannot be written: {error.strerror}.", "Give another file:  --out FILE") from error


def read_results(path: Path, questions: Sequence[Question], places: Places) -> Results:
    """Return the rankings that a file has for `questions`; one without a result counts as answered by nothing.

    Raises:
        CgragError: the file is no results file, is of another corpus, or answers none of the questions.
    """
    read = load_json(path, _ResultFile, "results file", FORMAT)
    written = {source.file_path for row in read.search_results for source in row.retrieved_sources}
    paths = corpus_paths(written, places)
    unknown = {name for name in written if paths[name] not in places.lengths}
    named = read.corpus not in (None, places.corpus)
    if named or (written and len(unknown) > (1 - _LEAST_KNOWN) * len(written)):
        of = f"{read.corpus}" if named else "another corpus"
        raise CgragError(
            f"{path} holds results of {of}: {len(written) - len(unknown)} of the {len(written)} files that it names "
            f"are in {places.corpus}.",
            "Evaluate it in the home of its corpus:  CGRAG_HOME=… cgrag evaluate QUESTIONS.json --results FILE",
        )
    wanted = {question.id: question for question in questions}
    findings: list[Finding] = []
    rankings: dict[str, Ranking] = {}
    for row in read.search_results:
        if row.question_id not in wanted:
            findings.append(Finding("unknown question", row.question_id, "not in the question file; left out"))
        elif row.question_id in rankings:
            findings.append(Finding("duplicate result", row.question_id, "left out; the first of that id counts"))
        else:
            spans = [
                Span(paths[source.file_path], source.first_character_index, source.last_character_index)
                for source in row.retrieved_sources
            ]
            findings += _doubts(row, spans, wanted[row.question_id], places)
            rankings[row.question_id] = spans
    if not rankings:
        raise CgragError(
            f"{path} answers none of the {len(wanted)} questions: no question_id is the same.",
            f"Make results of these questions:  cgrag search-dataset QUESTIONS.json --k 10 --out {path}",
        )
    if read.generation not in (None, places.generation):
        findings.append(Finding("other index", "", "the results were made with another index than the current one"))
    findings += [Finding("no result", key, "counts as missed") for key in wanted if key not in rankings]
    longest = max(len(ranking) for ranking in rankings.values())
    return Results(path.name, rankings, max(read.k or 0, longest), tuple(findings))


def _doubts(row: _Result, spans: Sequence[Span], question: Question, places: Places) -> list[Finding]:
    found = []
    if row.question.strip() and row.question != question.text:
        found.append(Finding("other wording", row.question_id, "its question is worded otherwise; scored by its id"))
    for span in spans:
        where = f"{span.path} [{span.start}:{span.end}]"
        if span.path not in places.lengths:
            found.append(Finding("result in a missing file", row.question_id, f"{where}: not in the corpus"))
        elif span.end <= span.start:
            found.append(Finding("empty result", row.question_id, f"{where}: covers nothing"))
    return found


def replay(results: Results) -> Retriever:
    """Return a retriever that hands over what the file has."""

    def retrieve(questions: Sequence[Question], k: int) -> list[Ranking]:
        return [results.rankings.get(question.id, [])[:k] for question in questions]

    return retrieve
