"""A local server that is the stub of tests/stub_vllm.py."""

import sys
import time

import psutil
import pytest

from pipelines.serve import lease as leases
from pipelines.serve.lease import stop
from pipelines.settings import Settings

MODEL = "a-model"


@pytest.fixture
def serving(tmp_path, monkeypatch):
    """Settings whose server is the stub; `say` is what it prints and dies of. Whatever runs at the end is stopped."""
    made = []

    def make(say="", when="", **serve):
        folder = tmp_path / "llm"
        settings = Settings(home=tmp_path / "home", serve={"folder": folder, "idle": 300, "start": 60} | serve)

        def command(settings, model, revision, files, port):
            options = ["--port", str(port), "--model", model, "--revision", revision, "--say", say, "--when", str(when)]
            return [sys.executable, "-m", "tests.stub_vllm", *options]

        monkeypatch.setattr(leases, "command_of", command)
        monkeypatch.setattr(leases, "identity_of", lambda settings, *asked: " ".join(asked))
        monkeypatch.setattr(leases, "find_spec", lambda name: True)
        monkeypatch.setattr(leases, "model_files", lambda settings, model, report: model)
        made.append(settings)
        return settings

    yield make
    for settings in made:
        stop(settings)


def until(holds):
    """Wait for something that another process does."""
    deadline = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def gone(*processes):
    """Whether none of these processes runs any more."""

    def runs(process):
        try:
            return psutil.Process(process).status() != psutil.STATUS_ZOMBIE
        except psutil.Error:
            return False

    return not any(map(runs, processes))
