"""Clocks of the benches, and a home for them that leaves the user's own alone."""

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from pipelines.layout import Layout
from pipelines.settings import Settings, load_settings


@contextmanager
def temporary_home() -> Iterator[Settings]:
    """A home that is empty but for the cached source, where the user's own home has one."""
    own = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        sources = Layout(own.home).sources
        if sources.exists():
            (Path(folder) / "sources").symlink_to(sources)
        yield own.model_copy(update={"home": Path(folder)})


def timed(work: Callable[[], object]) -> float:
    """Seconds that a call takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def command(*arguments: str, home: Path, repeats: int = 5) -> float:
    """Median seconds of a whole `cgrag` process."""
    words = [str(Path(sys.executable).parent / "cgrag"), *arguments]
    environment = os.environ | {"CGRAG_HOME": str(home)}
    runs = [
        timed(lambda: subprocess.run(words, env=environment, check=True, capture_output=True)) for _ in range(repeats)
    ]
    return statistics.median(runs)
