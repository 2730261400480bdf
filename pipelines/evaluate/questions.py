"""Question files: read, checked against the corpus, every doubt counted and named."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pipelines.errors import CgragError
from pipelines.evaluate.places import Places, Span, corpus_paths
from pipelines.tables import digest

FORMAT = (
    '{"rag_questions": [{"question_id": …, "question": …, "sources": [{"file_path": …, "first_character_index": …, '
    '"last_character_index": …}]}]}'
)
File = TypeVar("File", bound=BaseModel)
Offset = Annotated[int, Field(ge=-(2**53), le=2**53)]


class Source(BaseModel):
    """A span of a file as question and result files write it: characters, half open."""

    file_path: str
    first_character_index: Offset
    last_character_index: Offset


class QuestionRow(BaseModel):
    """A question of a file as it is written."""

    model_config = ConfigDict(coerce_numbers_to_str=True)

    question_id: str
    question: str
    sources: list[Source] = Field(default_factory=list)
    split: str | None = None
    masked: list[Source] = Field(default_factory=list)


class QuestionFile(BaseModel):
    """A question file as it is written."""

    rag_questions: list[QuestionRow]
    note: str = ""


@dataclass(frozen=True)
class Question:
    """A question, the spans that answer it, and those that no arm may hand over (of synthetic sets: its own text)."""

    id: str
    text: str
    sources: tuple[Span, ...] = ()
    split: str = ""
    masked: tuple[Span, ...] = ()

    @property
    def key(self) -> str:
        """The same in two files only where both the id and the wording are."""
        return digest(self.id, self.text)


@dataclass(frozen=True)
class Finding:
    """Something about a question file or a results file that its author should know."""

    kind: str
    question_id: str
    detail: str


@dataclass(frozen=True)
class QuestionSet:
    """The questions to score, sorted by id, and what was found on the way."""

    name: str
    questions: tuple[Question, ...]
    findings: tuple[Finding, ...] = ()
    ceiling: float = 0.0
    """The share of sources that a single chunk of the corpus covers, averaged over questions: no ranking finds more."""
    note: str = ""
    """What the file says of itself: synthetic ones that they are."""

    @property
    def fingerprint(self) -> str:
        """Of everything that a score depends on."""
        return digest([[q.id, q.text, q.sources, q.split, q.masked] for q in self.questions])


def read_questions(path: Path, places: Places, min_coverage: float = 0.5) -> QuestionSet:
    """Return the questions of a file that can be scored: those with sources, each once.

    A source that cannot be found (its file is not in the corpus, it ends beyond its file, no chunk covers it) is
    reported and stays: it counts as missed, so that leaving files out of a corpus cannot raise a score.

    Raises:
        CgragError: the file cannot be read, is not a question file, has no question with a source, or is about files
            none of which is in the corpus.
    """
    read = load_json(path, QuestionFile, "question file", FORMAT)
    asked = read.rag_questions
    paths = corpus_paths((s.file_path for q in asked for s in (*q.sources, *q.masked)), places)
    findings: list[Finding] = []
    kept: dict[str, Question] = {}
    seen: dict[tuple[str, frozenset[Span]], str] = {}
    for row in asked:
        sources = tuple(dict.fromkeys(_span(source, paths) for source in row.sources))
        masked = tuple(_span(source, paths) for source in row.masked)
        split = "" if row.split in (None, "all") else str(row.split)
        question = Question(row.question_id, row.question, sources, split, masked)
        same = seen.setdefault((row.question, frozenset(sources)), row.question_id)
        if row.question_id in kept:
            findings.append(Finding("duplicate id", row.question_id, "left out; the first of that id is scored"))
        elif not sources:
            findings.append(Finding("no sources", row.question_id, "left out; there is nothing to find"))
        else:
            kept[row.question_id] = question
            if same != row.question_id:
                findings.append(Finding("duplicate question", row.question_id, f"the same as {same}; counts twice"))
            if len(sources) < len(row.sources):
                findings.append(Finding("duplicate source", row.question_id, "a source given twice counts once"))
            findings += _doubts(question, places, min_coverage)
    if not kept:
        raise CgragError(
            f"{path} has no question with a source{f': {summary(findings)}' if findings else ''}.",
            f"A question file is {FORMAT}",
        )
    questions = tuple(kept[key] for key in sorted(kept))
    if not any(span.path in places.lengths for question in questions for span in question.sources):
        raise CgragError(
            f"{path} asks about another corpus: none of the files that it names is in {places.corpus}.",
            "Evaluate it in the home of its corpus:  CGRAG_HOME=… cgrag evaluate QUESTIONS.json",
        )
    return QuestionSet(path.name, questions, tuple(findings), _ceiling(questions, places, min_coverage), read.note)


def read_texts(path: Path, places: Places) -> list[Question]:
    """Return every question of a file in its order, with or without sources; for answering, not for scoring.

    Raises:
        CgragError: the file cannot be read, is not a question file, or has no question.
    """
    asked = load_json(path, QuestionFile, "question file", FORMAT).rag_questions
    if not asked:
        raise CgragError(f"{path} has no questions.", f"A question file is {FORMAT}")
    paths = corpus_paths((source.file_path for row in asked for source in row.masked), places)
    return [
        Question(row.question_id, row.question, masked=tuple(_span(source, paths) for source in row.masked))
        for row in asked
    ]


def load_json(path: Path, schema: type[File], what: str, form: str) -> File:
    """Return the JSON of `path` as `schema`; `what` and `form` name the kind of file and its form to its author.

    Raises:
        CgragError: it cannot be read, is empty, no JSON, or of another form; the message names the place.
    """
    remedy = f"A {what} is {form}"
    try:
        text = path.read_bytes().decode("utf-8-sig")
        if not text.strip():
            raise CgragError(f"{path} is empty.", remedy)
        document: Any = json.loads(text)
    except OSError as error:
        raise CgragError(f"{path} cannot be read: {error.strerror}.", f"Give the path of a {what}.") from error
    except (ValueError, RecursionError) as error:
        raise CgragError(f"{path} is not JSON in UTF-8: {error}", remedy) from error
    try:
        return schema.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the document"
        more = f" (and {error.error_count() - 1} more)" if error.error_count() > 1 else ""
        raise CgragError(f"{path} is not a {what}: {place}: {first['msg']}{more}.", remedy) from error


def summary(findings: Sequence[Finding]) -> str:
    """The kinds of findings with their numbers.

    >>> summary([Finding("no sources", "a", ""), Finding("no sources", "b", "")])
    'no sources 2'
    """
    return ", ".join(f"{kind} {count}" for kind, count in sorted(Counter(f.kind for f in findings).items()))


def _span(source: Source, paths: dict[str, str]) -> Span:
    return Span(paths[source.file_path], source.first_character_index, source.last_character_index)


def _doubts(question: Question, places: Places, min_coverage: float) -> list[Finding]:
    found = [Finding("blank question", question.id, "counts as missed")] if not question.text.strip() else []
    for span in question.sources:
        length = places.lengths.get(span.path)
        where = f"{span.path} [{span.start}:{span.end}]"
        if length is None:
            above = [span.path, *(f"{folder}/" for folder in PurePosixPath(span.path).parents)]
            reason = next((places.skipped[path] for path in above if path in places.skipped), None)
            why = f"left out of the corpus: {reason}" if reason else "not in the corpus"
            found.append(Finding("missing file", question.id, f"{where}: {why}; counts as missed"))
        elif span.end <= span.start:
            found.append(Finding("empty span", question.id, f"{where}; counts as missed"))
        elif span.start < 0 or span.end > length:
            found.append(Finding("beyond the file", question.id, f"{where} of {length} characters"))
        elif places.best_coverage(span) < min_coverage:
            share = f"a single chunk covers {places.best_coverage(span):.0%} at most"
            found.append(Finding("in no chunk", question.id, f"{where}: {share}; counts as missed"))
    return found


def _ceiling(questions: Sequence[Question], places: Places, min_coverage: float) -> float:
    shares = [
        sum(places.best_coverage(span) >= min_coverage for span in question.sources) / len(question.sources)
        for question in questions
    ]
    return sum(shares) / len(shares)
