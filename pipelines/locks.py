"""Locks on files, which end with the process that holds them, however that ends."""

import fcntl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pipelines.progress import Reporter, no_report

_POLL_SECONDS = 0.3


def try_lock(file: Any) -> bool:
    """Take an open file's lock for this process alone, if nobody else has it; whether that was so."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_held(path: Path) -> bool:
    """Whether somebody holds the lock of a file, alone or with others."""
    if not path.exists():
        return False
    with open(path, "a+b") as file:
        return not try_lock(file)


@contextmanager
def locked(path: Path, report: Reporter = no_report, waiting: str = "") -> Iterator[None]:
    """Hold a file's lock alone; who has to wait for it is told so, in the words of `waiting`."""
    with open(path, "a+b") as file:
        begun, progress = time.monotonic(), None
        while not try_lock(file):
            progress = progress or report(waiting, "seconds")
            progress(int(time.monotonic() - begun), None)
            time.sleep(_POLL_SECONDS)
        yield
