"""The local server: started once, shared, stopped when idle, and nothing of it left behind, whoever dies."""

import os
import re
import signal
import subprocess
import sys
import threading
from http.server import HTTPServer

import pytest

from pipelines.errors import CgragError
from pipelines.progress import silent
from pipelines.serve import lease as leases
from pipelines.serve.launch import command_of, free_port, identity_of
from pipelines.serve.lease import in_use, lease, log_file, running, server_folder, stop
from pipelines.settings import Settings
from tests.stub_vllm import Health
from tests.unit.serve.conftest import MODEL, gone, until


def worker_of(settings):
    return int(re.search(r"worker (\d+)", log_file(settings).read_text())[1])


def test_it_is_started_once_and_shared(serving):
    settings = serving()
    assert running(settings) is None
    with lease(settings, MODEL) as first, lease(settings, MODEL) as second:
        assert first == second
        assert in_use(settings)
        server = running(settings)
    assert not in_use(settings)
    with lease(settings, MODEL) as third:
        assert (third, running(settings)) == (first, server)


def test_another_process_shares_it_and_its_lease_ends_with_it(serving):
    settings = serving()
    with lease(settings, MODEL) as url:
        pass
    code = "import fcntl, sys, time; f = open(sys.argv[1], 'a+b'); fcntl.flock(f, fcntl.LOCK_SH); print(flush=True)"
    command = [sys.executable, "-c", f"{code}; time.sleep(600)", str(server_folder(settings) / "users.lock")]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as other:
        other.stdout.readline()
        with pytest.raises(CgragError, match="in use: somebody is asking a-model"):
            stop(settings)
        with pytest.raises(CgragError, match="in use, and serves a-model"), lease(settings, "b-model"):
            pass
        other.kill()
    assert not in_use(settings)
    with lease(settings, "b-model") as now:
        assert now != url
        assert running(settings).model == "b-model"


def test_it_stops_when_nobody_has_used_it_for_a_while(serving):
    settings = serving(idle=0.5)
    with lease(settings, MODEL):
        server, worker = running(settings), worker_of(settings)
    until(lambda: gone(server.keeper, server.group, worker))
    assert running(settings) is None
    assert not (server_folder(settings) / "server.json").exists()


def test_it_is_stopped_when_told(serving):
    settings = serving()
    assert not stop(settings)
    with lease(settings, MODEL):
        server, worker = running(settings), worker_of(settings)
    assert stop(settings)
    until(lambda: gone(server.keeper, server.group, worker))  # what is killed is there until init has seen it
    assert not stop(settings)


@pytest.mark.parametrize("killed", ["keeper", "group", "both"])
def test_after_a_crash_nothing_is_left_and_another_is_started(serving, killed):
    settings = serving()
    with lease(settings, MODEL) as first:
        server, worker = running(settings), worker_of(settings)
    for process in (server.keeper, server.group):
        if killed == "both" or process == getattr(server, killed):
            os.kill(process, signal.SIGKILL)
    until(lambda: gone(server.keeper))
    with lease(settings, MODEL) as second:
        assert second != first
        assert gone(server.keeper, server.group, worker)


@pytest.mark.parametrize(
    ("log", "told", "remedy"),
    [
        ("ValueError: Available memory on node 0 (1/2 GiB) is less than desired", "not enough memory", "CACHE_GIB"),
        ("torch.OutOfMemoryError: CUDA out of memory.", "not enough memory", "CACHE_GIB"),
        ("ValueError: 3 GiB KV cache is needed, which is larger than the available", "too small for the", "CONTEXT"),
        ("OSError: We couldn't connect to 'https://hub' to load", "cannot be downloaded", "CGRAG_EXTRACT__MODEL"),
        ("ImportError: no such thing\nRuntimeError: engine failed", "no such thing", "See its log"),
        ("that was all", "ended without a reason", "See its log"),
    ],
)
def test_a_server_that_does_not_start_says_why(serving, log, told, remedy):
    settings = serving(log)
    with pytest.raises(CgragError, match=told) as error, lease(settings, MODEL):
        pass
    assert remedy in error.value.remedy
    assert str(log_file(settings)) in error.value.remedy
    assert log in log_file(settings).read_text()
    assert not (server_folder(settings) / "server.json").exists()
    assert not in_use(settings)


def test_a_port_that_is_taken_is_named_and_its_holder_is_not_mistaken_for_ours(serving):
    with HTTPServer(("127.0.0.1", 0), Health) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        settings = serving(port=other.server_port)
        with pytest.raises(CgragError, match=f"port {other.server_port} is taken") as error, lease(settings, MODEL):
            pass
        other.shutdown()
    assert "CGRAG_SERVE__PORT=0" in error.value.remedy


def test_a_free_port_that_is_taken_meanwhile_is_tried_again_elsewhere(serving, monkeypatch):
    settings, ports = serving(), iter([1, 2, 3])
    said = {1: "OSError: [Errno 98] address already in use", 2: "", 3: ""}

    def command(settings, model, revision, files, port):
        return [
            sys.executable,
            "-m",
            "tests.stub_vllm",
            "--port",
            str(port),
            "--say",
            said[next(ports)] if port else "",
        ]

    monkeypatch.setattr(leases, "command_of", command)
    with lease(settings, MODEL):
        assert next(ports) == 3


def test_a_server_that_is_not_ready_when_its_starter_dies_is_waited_for(serving, tmp_path):
    settings = serving(when=tmp_path / "ready")
    begin = threading.Thread(target=lambda: leases._started(settings, MODEL, "", MODEL, free_port(), silent))
    server_folder(settings).mkdir(parents=True)
    begin.start()
    until(lambda: running(settings))
    server = running(settings)
    told = []

    def report(doing, unit):
        told.append(doing)
        (tmp_path / "ready").touch()
        return silent

    with lease(settings, MODEL, report=report) as url:
        assert (url, running(settings)) == (server.url, server)
    begin.join()
    assert told == [f"Starting a model server ({MODEL})"]


def test_a_recipe_of_other_files_than_are_here_is_refused(serving, monkeypatch):
    settings = serving()
    monkeypatch.setattr(leases, "revision_of", lambda model: "new")
    with pytest.raises(CgragError, match="of the revision old; here it is new"), lease(settings, MODEL, "old"):
        pass
    with lease(settings, MODEL, "new"):
        assert running(settings)


def test_without_vllm_and_endpoints_both_ways_out_are_told(serving, monkeypatch):
    settings = serving()
    monkeypatch.setattr(leases, "find_spec", lambda name: None)
    with pytest.raises(CgragError, match="vLLM is not installed") as error, lease(settings, MODEL):
        pass
    assert "make run" in error.value.remedy
    assert "CGRAG_LLM_URLS" in error.value.remedy


def test_the_real_command_serves_on_loopback_alone(tmp_path):
    settings = Settings(serve={"options": "--max-num-seqs 7", "context": 4096})
    command = command_of(settings, "name", "r1", str(tmp_path), 123)
    assert command[command.index("--host") + 1] == "127.0.0.1"
    assert command[command.index("--max-model-len") + 1] == "4096"
    assert command[-2:] == ["--max-num-seqs", "7"]
    assert "--revision" not in command
    (tmp_path / "config.json").write_text('{"max_position_embeddings": 2048}')
    command = command_of(settings, "name", "r1", str(tmp_path), 123)
    assert command[command.index("--max-model-len") + 1] == "2048"


def test_a_hub_s_model_is_served_in_its_revision_and_another_is_another_server():
    settings = Settings()
    command = command_of(settings, "hub/name", "r1", "hub/name", 123)
    assert command[command.index("--revision") + 1] == "r1"
    assert identity_of(settings, "hub/name", "r1") != identity_of(settings, "hub/name", "r2")
