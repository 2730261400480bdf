"""The settings, and how assets tell of their progress."""

import logging
import time
from collections.abc import Callable
from functools import partial

import dagster as dg

from pipelines.layout import Layout
from pipelines.progress import Progress, Reporter
from pipelines.settings import Settings, load_settings
from resources.runs import mark_process

_EVERY_SECONDS = 5.0
_HEARTBEAT_SECONDS = 600.0
"""Where the shell shows progress, the log has it this often: a run that says nothing for an hour is taken for lost."""
reporters: list[Reporter] = []
"""Where the shell puts its own reporter; while it is empty, progress goes to Dagster's log."""
tellers: list[Callable[[str], None]] = []
"""Where the shell puts what prints a line; what is said goes to Dagster's log in any case."""


class Workspace(dg.ConfigurableResource[None]):
    """Settings of this process, read anew for each run, so that a changed cgrag.toml counts without a restart."""

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        if context.run is not None and context.instance is not None:
            mark_process(context.instance, context.run)

    def settings(self) -> Settings:
        return load_settings()

    def layout(self) -> Layout:
        return Layout(self.settings().home)

    def reporter(self, log: logging.Logger) -> Reporter:
        """What starts a report of a stage's progress: in the shell's own way, and to Dagster's log."""
        if not reporters:
            return partial(LogProgress, log, _EVERY_SECONDS)
        shell = reporters[-1]

        def report(doing: str, unit: str) -> Progress:
            shown, logged = shell(doing, unit), LogProgress(log, _HEARTBEAT_SECONDS, doing, unit)

            def progress(done: int, total: int | None) -> None:
                shown(done, total)
                logged(done, total)

            return progress

        return report

    def say(self, log: logging.Logger) -> Callable[[str], None]:
        """What tells people in words, in the log and in the shell."""

        def say(text: str) -> None:
            log.info(text)
            for tell in tellers[-1:]:
                tell(text)

        return say


class LogProgress:
    """Writes to a log at most every so many seconds."""

    def __init__(self, log: logging.Logger, every: float, doing: str, unit: str) -> None:
        self._log, self._every, self._doing, self._unit = log, every, doing, unit
        self._started = self._last = time.monotonic()

    def __call__(self, done: int, total: int | None) -> None:
        now = time.monotonic()
        if now - self._last < self._every:
            return
        self._last = now
        rate = done / (now - self._started)
        left = f", {(total - done) / rate:.0f} s left" if total and rate else ""
        of = f" of {total:,}" if total else ""
        self._log.info(f"{self._doing}: {done:,}{of} {self._unit}, {rate:,.0f} {self._unit}/s{left}")
