"""The retrieval report: one HTML file that works offline, the same in markdown, and the numbers as JSON."""

import base64
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.evaluate.evaluation import Evaluation, Row, characters, document, fired
from pipelines.evaluate.places import Span
from pipelines.evaluate.plots import draw
from pipelines.evaluate.questions import summary

_STYLE = """body{font:15px/1.5 system-ui,sans-serif;max-width:1320px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0;font-variant-numeric:tabular-nums}th,td{padding:.25em .8em;text-align:left;
border-bottom:1px solid #ddd;vertical-align:top}td:first-child{overflow-wrap:anywhere}th{background:#f5f5f5}
img{max-width:100%}"""


@dataclass(frozen=True)
class Heading:
    """A title; level 1 is the report's."""

    level: int
    text: str


@dataclass(frozen=True)
class Table:
    """Rows of plain text under a header."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True)
class Picture:
    """A PNG, and the name of its file beside the markdown."""

    name: str
    png: bytes
    alt: str


Block = Heading | Table | Picture | str


def picture_name(evaluation: Evaluation) -> str:
    """The file name of an evaluation's picture.

    >>> re.sub(r"[^A-Za-z0-9.-]+", "-", "my set.json".removesuffix(".json")) + ".png"
    'my-set.png'
    """
    return re.sub(r"[^A-Za-z0-9.-]+", "-", evaluation.asked.name.removesuffix(".json")) + ".png"


def blocks(evaluations: Sequence[Evaluation], settings: dict[str, Any]) -> Iterator[Block]:
    """Yield the parts of a report on `evaluations` of one index."""
    yield Heading(1, f"Retrieval report: {evaluations[0].corpus if evaluations else 'no questions'}")
    if not evaluations:
        yield "Nothing to evaluate: the docs of the corpus, if any, give no questions. Set CGRAG_QUESTIONS to a file."
    for evaluation in evaluations:
        asked = evaluation.asked
        yield Heading(2, asked.name)
        if asked.note:
            yield asked.note
        yield (
            f"{len(asked.questions)} questions; a source counts as found when one chunk holds at least "
            f"{evaluation.min_coverage:.0%} of it. Ceiling {asked.ceiling:.3f}: no ranking of these chunks finds more. "
            "Intervals: 95 %, paired bootstrap over questions. − matched: less the retriever alone with as many chunks."
        )
        yield Picture(picture_name(evaluation), draw(evaluation), f"Recall on {asked.name}")
        yield Table(ROW_HEADER, [row_cells(row) for row in evaluation.rows])
        if told := fired(evaluation):
            yield told
        yield Heading(3, "At equal characters")
        yield "What each arm hands over, then the retriever's next chunks, cut after the same number of characters."
        yield Table(["characters", *ROW_HEADER], [_budgeted(row) for row in evaluation.equal_characters])
        first = evaluation.rows[0]
        yield Heading(3, f"Misses of {first.mode}, {first.arm}, at k = {evaluation.ks[-1]}: {len(evaluation.misses)}")
        if evaluation.misses:
            yield Table(["question", "split", "source", "rank", "returned instead"], list(_misses(evaluation)))
        if evaluation.findings:
            yield Heading(3, f"Findings about the question file: {summary(evaluation.findings)}")
            rows = [[finding.kind, finding.question_id, finding.detail] for finding in evaluation.findings]
            yield Table(["kind", "question", "detail"], rows)
    yield Heading(2, "Settings and fingerprints")
    prints = [(f"questions {e.asked.name}", e.asked.fingerprint) for e in evaluations]
    prints += [("index", evaluations[0].generation)] if evaluations else []
    yield Table(["name", "value"], [*_flat(settings), *prints])


ROW_HEADER = ["mode", "arm", "split", "k", "recall", "95 % interval", "hit", "− matched", "95 % interval"]


def row_cells(row: Row) -> list[str]:
    """The cells of a row under ROW_HEADER.

    >>> row_cells(Row("lexical", "plain", 5, "all", .9, .84, .96, .9, 0.0, 0.0, 0.0))
    ['lexical', 'plain', 'all', '5', '.900', '.840 – .960', '.900', '+.000', '+.000 – +.000']
    """
    return [
        row.mode,
        row.arm,
        row.split,
        str(row.k),
        _number(row.recall),
        f"{_number(row.low)} – {_number(row.high)}",
        _number(row.hit),
        _number(row.minus_matched, "+"),
        f"{_number(row.minus_low, '+')} – {_number(row.minus_high, '+')}",
    ]


def _number(value: float, sign: str = "") -> str:
    text = f"{value:{sign}.3f}"
    return re.sub(r"^([+-]?)0\.", r"\1.", text)


def _budgeted(row: Row) -> list[str]:
    return [f"{characters(row.k):,}", *row_cells(row)]


def _misses(evaluation: Evaluation) -> Iterator[list[str]]:
    for miss in evaluation.misses:
        sources = "\n".join(f"{span.path} [{span.start}:{span.end}]" for span, _ in miss.sources)
        ranks = "\n".join(str(rank) if rank else "not in 50" for _, rank in miss.sources)
        returned = "\n".join(place(span, line) for span, line in miss.returned[:5])
        question = miss.question if len(miss.question) <= 300 else f"{miss.question[:299]}…"
        yield [question, miss.split, sources, ranks, returned or "nothing"]


def place(span: Span, line: int | None) -> str:
    """`path:line` of a chunk, `path [start:end]` of any other span."""
    return f"{span.path}:{line}" if line else f"{span.path} [{span.start}:{span.end}]"


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def to_markdown(parts: Iterable[Block]) -> str:
    """Return the report as markdown, its pictures as files beside it."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, Heading):
            lines += [f"{'#' * part.level} {_inline(part.text)}", ""]
        elif isinstance(part, Picture):
            lines += [f"![{_inline(part.alt)}]({part.name})", ""]
        elif isinstance(part, Table):
            table = [part.header, ["---"] * len(part.header), *part.rows]
            lines += [*(f"| {' | '.join(_inline(cell) for cell in row)} |" for row in table), ""]
        else:
            lines += [_inline(part), ""]
    return _clean("\n".join(lines))


def _inline(text: str) -> str:
    escaped = re.sub(r"([\\`*_\[\]<>|])", r"\\\1", text)
    return "<br>".join(" ".join(line.split()) for line in escaped.split("\n"))


def to_html(parts: Iterable[Block], title: str) -> str:
    """Return the report as one HTML file that needs nothing else, its pictures inside."""
    body = []
    for part in parts:
        if isinstance(part, Heading):
            body.append(f"<h{part.level}>{html.escape(part.text)}</h{part.level}>")
        elif isinstance(part, Picture):
            body.append(f'<img alt="{html.escape(part.alt)}" src="{data_uri(part.png)}">')
        elif isinstance(part, Table):
            rows = ["".join(f"<td>{_cell(cell)}</td>" for cell in row) for row in part.rows]
            head = "".join(f"<th>{_cell(cell)}</th>" for cell in part.header)
            body.append(f"<table><tr>{head}</tr>{''.join(f'<tr>{row}</tr>' for row in rows)}</table>")
        else:
            body.append(f"<p>{html.escape(part)}</p>")
    head = f'<meta charset="utf-8"><title>{html.escape(title)}</title><style>{_STYLE}</style>'
    return _clean(
        f'<!doctype html><html lang="en"><head>{head}</head><body>\n' + "\n".join(body) + "\n</body></html>\n"
    )


def _cell(text: str) -> str:
    return html.escape(text).replace("\n", "<br>").replace("/", "/<wbr>")


def data_uri(png: bytes) -> str:
    """A PNG as the address of an image."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def _clean(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def to_json(evaluations: Sequence[Evaluation], inputs: dict[str, Any]) -> dict[str, Any]:
    """Return report.json: what `cgrag evaluate --json` prints of each set, what it was made of, recall by question."""
    return {
        "inputs": inputs,
        "sets": [document(evaluation, with_misses=True) for evaluation in evaluations],
        "recalls": {
            f"{evaluation.asked.name} {name}": recalls
            for evaluation in evaluations
            for name, recalls in evaluation.recalls.items()
        },
    }
