"""Locks on files, which end with the process that holds them, however that ends."""

import fcntl
from pathlib import Path
from typing import Any


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
