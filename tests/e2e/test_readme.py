"""The commands that the README shows with their output, run on the same corpus.

With README_UPDATE=1 the output in the README is written anew instead of being compared.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from tests.e2e.conftest import PROJECT, Cgrag

README = PROJECT / "README.md"
UPDATE = os.environ.get("README_UPDATE")
_BLOCK = re.compile(r"(?<=```console\n)\$ (cgrag [^\n]+)\n(.*?)(?=```)", re.DOTALL)
EXAMPLES = [(match[1], match[2]) for match in _BLOCK.finditer(README.read_text())]


def test_the_readme_has_examples() -> None:
    assert len(EXAMPLES) >= 2


@pytest.mark.parametrize(("command", "shown"), EXAMPLES, ids=[command for command, _ in EXAMPLES])
def test_an_example_prints_what_the_readme_shows(vllm: Cgrag, vllm_home: Path, command: str, shown: str) -> None:
    done = vllm(*shlex.split(command)[1:])
    printed = done.stdout.replace(str(vllm_home), "data")
    if UPDATE:
        README.write_text(README.read_text().replace(f"$ {command}\n{shown}```", f"$ {command}\n{printed}```"))
    else:
        assert printed == shown


def test_every_link_of_the_readme_leads_somewhere() -> None:
    text = README.read_text()
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", line.lower()).replace(" ", "-") for line in re.findall(r"^#+ (.*)$", text, re.M)
    }
    for target in re.findall(r"\]\(([^)]+)\)", text):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        elif not target.startswith("http"):
            assert (PROJECT / target).exists(), target
