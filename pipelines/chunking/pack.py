"""Units of a file are packed into chunks: the largest single gain in recall (README, Chunking)."""

from collections.abc import Iterator
from dataclasses import dataclass

from pipelines.chunking.lines import Lines
from pipelines.chunking.model import Unit
from pipelines.settings import ChunkSettings


@dataclass(frozen=True)
class Chunk:
    """Consecutive units, as `text[start:end]`; with an overlap `start` lies before the first of them."""

    start: int
    end: int
    units: tuple[Unit, ...]

    @property
    def trail(self) -> list[str]:
        """The trails of the units, each once, in order."""
        return list(dict.fromkeys(part for unit in self.units for part in unit.trail))


def pack(lines: Lines, units: list[Unit], settings: ChunkSettings) -> Iterator[Chunk]:
    """Yield chunks in order, each of as many consecutive units as fit the cap (of one unit with strategy `units`)."""
    waiting: list[Unit] = []
    for unit in units:
        if waiting and (settings.strategy == "units" or unit.end - waiting[0].start > settings.cap):
            yield _chunk(lines, waiting, settings.overlap)
            waiting = []
        waiting.append(unit)
    if waiting:
        yield _chunk(lines, waiting, settings.overlap)


def _chunk(lines: Lines, units: list[Unit], overlap: int) -> Chunk:
    start = units[0].start
    if overlap and start:
        number = lines.number(max(start - overlap, 0))
        earliest = lines.start(number) if lines.start(number) >= start - overlap else lines.start(number + 1)
        start = min(earliest, start)
    return Chunk(start, units[-1].end, tuple(units))
