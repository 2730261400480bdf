"""One evaluation: every mode and arm at every k, by split, with intervals and the difference to @matched."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluate.arms import ARMS, MODES, Bench, chosen
from pipelines.evaluate.bootstrap import RESAMPLES, SEED, intervals
from pipelines.evaluate.places import Places, Span, load_places
from pipelines.evaluate.questions import Finding, QuestionSet, read_questions
from pipelines.evaluate.results_file import read_results, replay
from pipelines.evaluate.retrievers import retriever
from pipelines.evaluate.scoring import NEVER, Ranking, Truth, first_ranks, recall, truth
from pipelines.lexical.index import load_index
from pipelines.progress import Progress, silent
from pipelines.retrieve.rankers import Lexical
from pipelines.settings import Settings

CHARACTERS_PER_CHUNK = 1500
"""What a chunk of the default settings has on average: the budget at k is k times this (4,500, 7,500, 15,000)."""
DEEP = 50
"""How far down the ranking a missed source is looked for."""
Values = NDArray[np.float64]
Scored = dict[tuple[str, str, int], tuple[Values, Values]]
"""(mode, arm, k) -> recall of each question, and that of @matched."""


@dataclass(frozen=True)
class Row:
    """Means over the questions of a split, each with the ends of its 95 % interval.

    minus_matched is recall less that of the retriever alone with as many chunks (DESIGN, Evaluation).
    """

    mode: str
    arm: str
    k: int
    split: str
    recall: float
    low: float
    high: float
    hit: float
    minus_matched: float
    minus_low: float
    minus_high: float


@dataclass(frozen=True)
class Miss:
    """A question of which an arm did not cover every source at k."""

    question_id: str
    question: str
    split: str
    sources: tuple[tuple[Span, int | None], ...]
    """Each source, and the rank among the first 50 at which it is covered."""
    returned: tuple[tuple[Span, int | None], ...]
    """What was handed over instead, and the line it starts at."""


@dataclass(frozen=True)
class Evaluation:
    """What one question set shows of one index."""

    asked: QuestionSet
    corpus: str
    generation: str
    ks: tuple[int, ...]
    min_coverage: float
    rows: list[Row]
    equal_characters: list[Row]
    """The same, after `characters(k)` characters instead of k chunks."""
    misses: list[Miss]
    """Of the first mode and arm, at the largest k."""
    findings: tuple[Finding, ...]
    recalls: dict[str, dict[str, float]] = field(default_factory=dict)
    """"mode/arm@k" -> {key of a question: its recall}, for comparison with a later evaluation."""
    walks: dict[str, dict[str, int]] = field(default_factory=dict)
    """Where the graph was asked: relation -> {split: questions}."""


def characters(k: int) -> int:
    """The budget of the table at equal characters."""
    return k * CHARACTERS_PER_CHUNK


def evaluate_file(
    settings: Settings,
    path: Path,
    *,
    modes: Sequence[str] = (),
    arms: Sequence[str] = (),
    ks: Sequence[int] = (3, 5, 10),
    min_coverage: float = 0.5,
    results: Path | None = None,
    progress: Progress = silent,
) -> Evaluation:
    """Evaluate a question file in this home: the modes and arms named, or all that are built.

    With `results` a file of results is scored, beside the modes that are named, and compared with the product's
    lexical ranking.

    Raises:
        CgragError: a mode or arm is not built, there is no index, or a file cannot be used.
    """
    open_modes = {mode: MODES[mode].open for mode in chosen("mode", modes, settings)}
    arms = chosen("arm", arms, settings)
    index = load_index(settings)
    places = load_places(settings, index)
    asked = read_questions(path, places, min_coverage)
    benches: dict[str, Bench] = {}
    findings: list[Finding] = []
    contenders: list[tuple[str, str]] = []
    baseline = None
    if results:
        read = read_results(results, asked.questions, places)
        findings += read.findings
        if max(ks) > read.k:
            findings.append(Finding("short results", "", f"recall@{max(ks)} is of {read.k} spans, all that they hold"))
        benches["results"] = Bench(settings, places, asked.questions, replay(read))
        baseline = Bench(settings, places, asked.questions, retriever(Lexical(index)), progress)
        contenders.append(("results", "plain"))
    for mode, open_mode in open_modes.items():
        if modes or not results:
            benches[mode] = Bench(settings, places, asked.questions, open_mode(settings), progress)
            contenders += [(mode, arm) for arm in arms]
    return evaluate(asked, places, benches, contenders, ks, min_coverage, baseline, findings)


def evaluate(
    asked: QuestionSet,
    places: Places,
    benches: dict[str, Bench],
    contenders: Sequence[tuple[str, str]],
    ks: Sequence[int],
    min_coverage: float,
    baseline: Bench | None = None,
    findings: Sequence[Finding] = (),
) -> Evaluation:
    """Score pairs of mode and arm, `benches` by mode; each is less its own bench's @matched, or that of `baseline`."""
    ks = sorted(set(ks))
    wanted = truth([question.sources for question in asked.questions])
    scored: Scored = {}
    filled: Scored = {}
    for mode, arm in contenders:
        bench, base = benches[mode], baseline or benches[mode]
        for k in ks:
            scored[mode, arm, k] = (
                _recall(wanted, bench.handed_over(arm, k), min_coverage),
                _recall(wanted, base.handed_over("matched", k), min_coverage),
            )
            filled[mode, arm, k] = (
                _recall(wanted, bench.filled(arm, k, characters(k)), min_coverage),
                _recall(wanted, base.filled("matched", k, characters(k)), min_coverage),
            )
    mode, arm = contenders[0]
    return Evaluation(
        asked,
        places.corpus,
        places.generation,
        tuple(ks),
        min_coverage,
        _rows(asked, scored),
        _rows(asked, filled),
        misses(asked, wanted, places, benches[mode], arm, ks[-1], min_coverage),
        (*asked.findings, *findings),
        {
            f"{mode}/{arm}@{k}": {q.key: float(value) for q, value in zip(asked.questions, values[0], strict=True)}
            for (mode, arm, k), values in scored.items()
        },
        next((benches[mode].walks() for mode, arm in contenders if ARMS[arm].asset == "knowledge_graph"), {}),
    )


def _recall(wanted: Truth, rankings: list[Ranking], min_coverage: float) -> Values:
    return recall(wanted, first_ranks(wanted, rankings, min_coverage))


def _rows(asked: QuestionSet, scored: Scored) -> list[Row]:
    """Rows by mode, arm, split and k; the columns of a split are resampled together."""
    found = np.column_stack([values for values, _ in scored.values()])
    minus = np.column_stack([values - matched for values, matched in scored.values()])
    rows = []
    for split in ["all", *sorted({question.split for question in asked.questions} - {""})]:
        inside = np.array([split in ("all", question.split) for question in asked.questions])
        low, high = intervals(found[inside])
        minus_low, minus_high = intervals(minus[inside])
        for column, (mode, arm, k) in enumerate(scored):
            values, differences = found[inside, column], minus[inside, column]
            numbers = [values.mean(), low[column], high[column], (values > 0).mean()]
            numbers += [differences.mean(), minus_low[column], minus_high[column]]
            rows.append(Row(mode, arm, k, split, *(round(float(number), 6) + 0.0 for number in numbers)))
    place = {split: number for number, split in enumerate(dict.fromkeys(row.split for row in rows))}
    order = {key[:2]: number for number, key in enumerate(scored)}
    return sorted(rows, key=lambda row: (order[row.mode, row.arm], place[row.split], row.k))


def misses(
    asked: QuestionSet, wanted: Truth, places: Places, bench: Bench, arm: str, k: int, min_coverage: float
) -> list[Miss]:
    """Return the questions of which an arm leaves a source uncovered at `k`."""
    handed = bench.handed_over(arm, k)
    covered = first_ranks(wanted, handed, min_coverage) < NEVER
    deep = first_ranks(wanted, bench.retrieve(max(DEEP, k)), min_coverage)
    found = []
    for number, (question, ranking) in enumerate(zip(asked.questions, handed, strict=True)):
        mine = np.flatnonzero(wanted.owner == number)
        if not covered[mine].all():
            ranks = [int(rank) if rank < NEVER else None for rank in deep[mine]]
            returned = tuple((span, places.line(span)) for span in ranking)
            sources = tuple(zip(question.sources, ranks, strict=True))
            found.append(Miss(question.id, question.text, question.split, sources, returned))
    return found


def document(evaluation: Evaluation, with_misses: bool = False) -> dict[str, Any]:
    """Return the JSON of `cgrag evaluate` (CLI.md): the rows, and all that they depend on."""
    asked = evaluation.asked
    report = {
        "questions": len(asked.questions),
        "set": asked.name,
        "corpus": evaluation.corpus,
        "generation": evaluation.generation,
        "question_set": asked.fingerprint,
        "min_coverage": evaluation.min_coverage,
        "ceiling": round(asked.ceiling, 6),
        "bootstrap": {"resamples": RESAMPLES, "seed": SEED},
        "rows": [asdict(row) for row in evaluation.rows],
        "equal_characters": [asdict(row) | {"characters": characters(row.k)} for row in evaluation.equal_characters],
        "fired": {"questions": asked_of_graph(evaluation), "by_relation": evaluation.walks},
        "findings": [asdict(finding) for finding in evaluation.findings],
    }
    if with_misses:
        report["misses"] = [_miss(miss) for miss in evaluation.misses]
    return report


def asked_of_graph(evaluation: Evaluation) -> int:
    """Return for how many questions a walk was taken."""
    return sum(sum(counts.values()) for counts in evaluation.walks.values())


def fired(evaluation: Evaluation) -> str:
    """Where the graph was asked, in words; "" where no arm of the evaluation asks it."""
    told = []
    for relation, counts in evaluation.walks.items():
        splits = ", ".join(f"{split} {count}" for split, count in counts.items() if split)
        told.append(f"{relation} {sum(counts.values())}{f' ({splits})' if splits else ''}")
    questions = f"{asked_of_graph(evaluation)} of {len(evaluation.asked.questions)} questions"
    return f"The graph was asked for {questions}: {'; '.join(told)}." if told else ""


def _miss(miss: Miss) -> dict[str, Any]:
    return {
        "question_id": miss.question_id,
        "question": miss.question,
        "split": miss.split,
        "sources": [_place(span) | {"rank": rank} for span, rank in miss.sources],
        "returned": [_place(span) | {"start_line": line} for span, line in miss.returned],
    }


def _place(span: Span) -> dict[str, Any]:
    return {"path": span.path, "start": span.start, "end": span.end}
