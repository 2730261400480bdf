"""Choosing the parser of a file by its format, with line windows to fall back on."""

from pipelines.chunking.lines import Lines
from pipelines.chunking.markup import parse_markdown, parse_sections
from pipelines.chunking.model import Parsed, Unit
from pipelines.chunking.python import Unparsable, parse_python
from pipelines.chunking.windows import cut
from pipelines.settings import ChunkSettings


def parse_text(lines: Lines, format: str, settings: ChunkSettings, encoding_problem: str = "") -> Parsed:
    """Return the units and the outline of a text, whatever it holds: what its parser refuses is cut into line windows.

    `format` is as in files.parquet; `encoding_problem` says why CPython would refuse the file's bytes.
    """
    if settings.strategy == "windows" or format == "text":
        return _windows(lines, settings.cap, "")
    if format == "markdown":
        return parse_markdown(lines, settings.cap, settings.section)
    if format == "sections":
        return parse_sections(lines, settings.cap, settings.section)
    if encoding_problem:
        return _windows(lines, settings.cap, encoding_problem)
    try:
        return parse_python(lines, settings.cap)
    except Unparsable as error:
        return _windows(lines, settings.cap, str(error))


def _windows(lines: Lines, cap: int, problem: str) -> Parsed:
    span = lines.trimmed(0, len(lines.text))
    pieces = (lines.trimmed(*piece) for piece in (cut(lines, *span, cap) if span else ()))
    return Parsed("windows", [Unit(*piece, "window") for piece in pieces if piece], [], problem)
