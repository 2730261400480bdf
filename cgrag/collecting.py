"""When a process of ours looks for garbage."""

import atexit
import gc
import sys

_YOUNG = 50_000
"""Python's 700 makes a fifth of the start of Dagster or torch a search among modules, which stay."""


def collect_seldom() -> None:
    """Look for garbage after more objects than Python does, and not at the end: that took up to a second.

    At the end it is looked for where triton is loaded: its binding counts what is left, and prints pages of it.
    """
    gc.set_threshold(_YOUNG)
    atexit.register(lambda: None if "triton" in sys.modules else gc.freeze())
