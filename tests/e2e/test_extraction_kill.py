"""`cgrag run --select extractions`, killed at random moments and run again: nothing is lost, little is asked twice."""

import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pipelines.corpus.scan import load_plan
from pipelines.extract.partition import stored_rows
from pipelines.layout import Layout
from pipelines.tables import digest
from tests.e2e.conftest import cgrag_in, environment_of
from tests.extraction import docs
from tests.fake_model import MODEL, FakeModel
from tests.support import write_tree

FILES = docs("a", 120) | docs("b", 120) | docs("c", 60)
IN_FLIGHT, FLUSHED = 8, 32
KILLS = 3


@pytest.fixture
def fake() -> Iterator[FakeModel]:
    with FakeModel(delay=0.005) as model:
        yield model


Start = Callable[[], subprocess.Popen[bytes]]


def corpus(place: Path, fake: FakeModel) -> tuple[Path, Start]:
    """A home in which all but the model's part is done, and what starts the rest of it."""
    home, tree = place / "home", write_tree(place / "tree", FILES)
    settings = {
        "CGRAG_LLM_URLS": fake.url,
        "CGRAG_EXTRACT__MODEL": MODEL,
        "CGRAG_EXTRACT__IN_FLIGHT": str(IN_FLIGHT),
        "CGRAG_PARTITION_CHUNKS": "0",
    }
    cgrag_in(home)("run", "--corpus", str(tree), **settings)
    command = [str(Path(sys.executable).parent / "cgrag"), "run", "--select", "extractions", "--yes"]
    environment = environment_of(home, **settings)

    def start() -> subprocess.Popen[bytes]:
        return subprocess.Popen(command, env=environment, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    return home, start


def finish(child: subprocess.Popen[bytes]) -> None:
    said = child.communicate()[0].decode()
    assert child.returncode == 0, said


def rows(home: Path) -> list[str]:
    layout = Layout(home)
    return sorted(digest(row) for key in load_plan(layout) for row in stored_rows(layout, key))


def test_killed_at_random_moments_nothing_is_lost_and_little_is_asked_twice(tmp_path: Path, fake: FakeModel) -> None:
    with FakeModel() as other:
        undisturbed, start = corpus(tmp_path / "undisturbed", other)
        finish(start())
        assert other.requests == len(FILES)
    home, start = corpus(tmp_path / "killed", fake)
    moments = random.Random(7)
    repeated = 0
    for _ in range(KILLS):
        child = start()
        before = fake.requests
        at = before + moments.randrange(5, 60)

        def kill(n: int, child: subprocess.Popen[bytes] = child, at: int = at) -> None:
            if n == at:
                child.send_signal(signal.SIGKILL)

        fake.gate = kill
        child.communicate()
        now = fake.requests - len(fake.asked)
        assert now - repeated <= IN_FLIGHT + FLUSHED, "asked twice after one kill"
        repeated = now
        if child.returncode == 0:
            break
        assert child.returncode == -signal.SIGKILL
    fake.gate = lambda n: None
    finish(start())
    assert rows(home) == rows(undisturbed)
    assert set(fake.asked) == set(other.asked)
    print(f"{KILLS} kills, {fake.requests} requests for {len(FILES)} chunks")
    assert fake.requests - len(FILES) <= KILLS * (IN_FLIGHT + FLUSHED)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_command_with_all_answers_stored(tmp_path: Path, fake: FakeModel, number: int) -> None:
    _, start = corpus(tmp_path, fake)
    child = start()
    fake.gate = lambda n: child.send_signal(number) if n == 100 else None
    said = child.communicate()[0].decode()
    assert child.returncode not in (0, -signal.SIGTERM), said
    assert "Traceback" not in said
    asked = fake.requests
    fake.gate = lambda n: None
    finish(start())
    assert fake.requests - len(FILES) <= IN_FLIGHT, (asked, fake.requests)
