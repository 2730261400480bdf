"""What every command prints with: JSON on standard output, progress and words for people."""

import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer
from rich.console import Console

if TYPE_CHECKING:
    import rich.progress

    from pipelines.graph.look_up import Store
    from pipelines.progress import Reporter
    from pipelines.retrieve.search import Mode

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on standard output.")]
SearchMode = Annotated[str, typer.Option("--mode", help="lexical, dense or hybrid; the last two need `make dense`.")]
GraphStore = Annotated[str, typer.Option("--store", help="Where the graph is asked: duckdb or neo4j.")]
Choice = TypeVar("Choice", bound=str)
console = Console(highlight=False, soft_wrap=True, emoji=False)
errors = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
_LINE_EVERY = 5.0


def print_json(document: object) -> None:
    """Print one document; ASCII, so that no terminal encoding and no odd file name can break it."""
    sys.stdout.write(json.dumps(document, indent=1, ensure_ascii=True) + "\n")


def names_in(text: str) -> list[str]:
    """The names of an option that takes several, comma-separated."""
    return [name.strip() for name in text.split(",") if name.strip()]


def checked_store(name: str) -> "Store":
    """The store of that name; another is wrong usage."""
    stores: tuple[Store, ...] = ("duckdb", "neo4j")
    return one_of(name, stores, "--store")


def checked_mode(name: str) -> "Mode":
    """The mode of that name; another is wrong usage."""
    modes: tuple[Mode, ...] = ("lexical", "dense", "hybrid")
    return one_of(name, modes, "--mode")


def one_of(name: str, known: Sequence[Choice], option: str) -> Choice:
    """The choice of that name; another is wrong usage of the option."""
    for one in known:
        if name == one:
            return one
    raise typer.BadParameter(f"{name!r} is none of {', '.join(known)}", param_hint=option)


def print_table(lines: Sequence[Sequence[str]]) -> None:
    """Print lines of cells in columns, the first of them as their header."""
    rows = [[plain(cell) for cell in line] for line in lines]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for number, line in enumerate(rows):
        text = "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip()
        console.print(f"  {text}", style="bold" if number == 0 else "", markup=False)


def plain(text: str) -> str:
    """Text that any terminal takes: control characters shown, not sent; lone surrogates replaced."""
    return "".join(c if c.isprintable() or c == "\t" else "\N{REPLACEMENT CHARACTER}" for c in text)


class ShellProgress:
    """One bar in a terminal, a line every five seconds elsewhere: done, total, rate, time left."""

    def __init__(self, doing: str, unit: str) -> None:
        self._doing, self._unit = doing, unit
        self._started = self._shown = self._updated = time.monotonic()
        self._done = 0
        self._bar = _bar() if errors.is_terminal else None
        self._task = self._bar.add_task(doing, total=None, unit=unit) if self._bar else None
        if self._bar:
            self._bar.start()

    def __call__(self, done: int, total: int | None) -> None:
        if self._bar and self._task is not None:
            self._bar.update(self._task, completed=done, total=total)
        elif time.monotonic() - self._shown >= _LINE_EVERY:
            self._shown = time.monotonic()
            rate = done / (self._shown - self._started)
            left = f", {(total - done) / rate:.0f} s left" if total and rate else ""
            errors.print(
                f"  {self._doing}: {done:,}{f' of {total:,}' if total else ''} {self._unit}, {rate:,.0f}/s{left}"
            )
        self._done = done
        self._updated = time.monotonic()

    def close(self) -> None:
        """Take the bar away; in its place a line says what was done."""
        if self._bar:
            self._bar.stop()
        if self._done:
            seconds = self._updated - self._started
            errors.print(f"  {self._doing}: {self._done:,} {self._unit} in {seconds:.1f} s")


def _bar() -> "rich.progress.Progress":
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("  {task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[unit]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
    )


@contextmanager
def shown_progress() -> Iterator["Reporter"]:
    """Yield what starts a bar in place of the last one; the one that is left at the end is closed."""
    bars: list[ShellProgress] = []

    def report(doing: str, unit: str) -> ShellProgress:
        for bar in bars:
            bar.close()
        bars[:] = [ShellProgress(doing, unit)]
        return bars[0]

    try:
        yield report
    finally:
        for bar in bars:
            bar.close()
