"""How long work tells that it is alive; the shell and Dagster each bring a reporter of their own."""

from collections.abc import Callable
from typing import Protocol


class Progress(Protocol):
    """Called with what has been done so far, out of a total that may be None where it is not known."""

    def __call__(self, done: int, total: int | None) -> None: ...


Reporter = Callable[[str, str], Progress]
"""Starts a report: (what is being done, its unit) -> Progress."""


def silent(done: int, total: int | None) -> None:
    """Progress that nobody watches."""


def no_report(doing: str, unit: str) -> Progress:
    """The reporter of those who want none."""
    return silent
