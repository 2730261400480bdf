"""What is left at the end of a process is not collected, unless something would complain of it."""

import subprocess
import sys

import pytest

_PROCESS = """
import sys

from cgrag.collecting import collect_seldom


class Left:
    def __init__(self):
        self.itself = self

    def __del__(self):
        print("collected")


collect_seldom()
kept = Left()
if sys.argv[1:]:
    sys.modules[sys.argv[1]] = sys
print("end")
"""


@pytest.mark.parametrize(("loaded", "said"), [((), ["end"]), (("triton",), ["end", "collected"])])
def test_garbage_is_left_at_the_end_unless_triton_counts_it(loaded, said):
    done = subprocess.run([sys.executable, "-c", _PROCESS, *loaded], capture_output=True, text=True, check=True)
    assert done.stdout.split() == said
