"""The real corpus, indexed once per session by the real command."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SHARED = PROJECT.parent / "shared"
Cgrag = Callable[..., subprocess.CompletedProcess[str]]


def cgrag_in(home: Path) -> Cgrag:
    """A function that runs the real `cgrag` on `home`, in a directory of its own, and returns what it printed."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("CGRAG_", "DAGSTER_"))}
    environment |= {"CGRAG_HOME": str(home), "COLUMNS": "200"}
    home.mkdir(parents=True, exist_ok=True)

    def run(*arguments: str, check: bool = True, stdin: str = "", **settings: str) -> subprocess.CompletedProcess[str]:
        command = [str(Path(sys.executable).parent / "cgrag"), *arguments]
        done = subprocess.run(
            command, env=environment | settings, cwd=home, capture_output=True, text=True, input=stdin, timeout=300
        )
        assert not check or done.returncode == 0, done.stderr
        return done

    return run


def stop_group(process: subprocess.Popen[str]) -> None:
    """End a server and its children by Ctrl-C, or by force where that is ignored, as it is behind `nohup … &`."""
    os.killpg(process.pid, signal.SIGINT)
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


@pytest.fixture(scope="session")
def vllm_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with the default corpus, built by `cgrag run`; skipped where the package index cannot be reached."""
    home = tmp_path_factory.mktemp("vllm") / "home"
    done = cgrag_in(home)("run", check=False)
    if done.returncode and "cannot be reached" in done.stderr:
        pytest.skip("the package index cannot be reached, so there is no vLLM corpus")
    assert done.returncode == 0, done.stderr
    return home


@pytest.fixture(scope="session")
def vllm(vllm_home: Path) -> Cgrag:
    """The real `cgrag` on the default corpus."""
    return cgrag_in(vllm_home)
