"""One model server on this machine, shared by all who lease it: started by the first, stopped some time after the last.

A lease is a shared lock on one file, which ends with the process that holds it, however that ends. The server itself
is a child of a keeper (keeper.py), which nobody waits for: it stops the server when no lease has been held for a
while, and the server ends with it.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import psutil

from pipelines.errors import CgragError
from pipelines.locks import is_held, locked, try_lock
from pipelines.progress import Progress, Reporter, no_report
from pipelines.serve.launch import command_of, environment_of, free_port, identity_of, is_free, last_error, mark_of, why
from pipelines.serve.models import model_files, revision_of
from pipelines.settings import PROJECT, Settings
from pipelines.tables import read_record

_POLL_SECONDS = 0.3
_STOP_SECONDS = 20.0
_PORT_TRIES = 3
_STARTING = "Starting a model server ({})"
_WAITING = "Waiting for another run's model server"


@dataclass(frozen=True)
class Server:
    """A server that was started here."""

    keeper: int
    """The number of the process that keeps it, which holds the folder's keeper.lock for as long as it lives."""
    group: int
    """The process group of the server itself."""
    url: str
    model: str
    identity: str
    """What it was started with: with anything else, another is needed."""


def server_folder(settings: Settings) -> Path:
    """Where the record, the log and the locks of the local server lie."""
    return settings.serve.folder / "server"


def log_file(settings: Settings) -> Path:
    return server_folder(settings) / "vllm.log"


@contextmanager
def lease(settings: Settings, model: str, revision: str = "", report: Reporter = no_report) -> Iterator[str]:
    """Yield the address of a local server of a model, started if none runs; until the end it is not stopped.

    Raises:
        CgragError: vLLM is not installed, the model cannot be had or is of another revision, the server does not start,
            or another one is in use.
    """
    folder = server_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    _check_revision(settings, model, revision)
    with open(folder / "users.lock", "a+b") as users:
        with locked(folder / "start.lock", report, _WAITING):
            fcntl.flock(users, fcntl.LOCK_SH)
            server = _found(settings)
            if server and server.identity != identity_of(settings, model, revision):
                _make_room(settings, server, users, model)
                server = None
            if server and not _answers(server.url):  # whoever started it did not live to see it answer
                server = _waited_for(settings, server, report(_STARTING.format(model), "seconds"))
            if server is None:
                server = _start(settings, model, revision, report)
        yield server.url


def endpoints(
    settings: Settings, model: str, revision: str, leases: ExitStack, report: Reporter = no_report
) -> Sequence[str]:
    """Return the addresses that are set, else that of a local server of a model, leased until the stack ends.

    Raises:
        CgragError: as `lease`.
    """
    return settings.llm_urls or [leases.enter_context(lease(settings, model, revision, report))]


def running(settings: Settings) -> Server | None:
    """Return the server that was started here, None where there is none, or its keeper is dead."""
    folder = server_folder(settings)
    return _read(folder / "server.json") if is_kept(folder) else None


def _found(settings: Settings) -> Server | None:
    """The same for who holds the start lock: what a crash has left of one is removed."""
    folder = server_folder(settings)
    server = _read(folder / "server.json")
    if server is not None and not is_kept(folder):
        _clean_up(server, folder)
        return None
    return server


def in_use(settings: Settings) -> bool:
    """Whether anybody holds a lease."""
    return is_held(server_folder(settings) / "users.lock")


def stop(settings: Settings) -> bool:
    """Stop the local server; whether there was one.

    Raises:
        CgragError: it is in use.
    """
    folder = server_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / "start.lock"):
        server = _found(settings)
        if server is None:
            return False
        if in_use(settings):
            raise CgragError(
                f"The local server is in use: somebody is asking {server.model}.",
                "Wait for that run, or stop it first.",
            )
        _stop(server, folder)
        return True


def is_kept(folder: Path) -> bool:
    """Whether the keeper of a folder's server lives: it holds a lock until it ends, however it ends."""
    return is_held(folder / "keeper.lock")


def _check_revision(settings: Settings, model: str, revision: str) -> None:
    """A recipe of other files than those that would be served now would get the answers of the wrong model."""
    here = settings.extract.revision or revision_of(model)
    if here and here != revision:
        raise CgragError(
            f"The recipe asks {model} of the revision {revision or 'unknown'}; here it is {here}.",
            "Ask the one that is here: unset CGRAG_EXTRACT__RECIPE.      Or put the other files in its place.",
        )


def _make_room(settings: Settings, server: Server, users: Any, model: str) -> None:
    if not try_lock(users):  # ours becomes exclusive: nobody else has one
        raise CgragError(
            f"The local server is in use, and serves {server.model} with other settings than are asked for ({model}).",
            "Wait for that run, stop it, or use a server of your own: CGRAG_SERVE__FOLDER=…",
        )
    fcntl.flock(users, fcntl.LOCK_SH)
    _stop(server, server_folder(settings))


def _start(settings: Settings, model: str, revision: str, report: Reporter) -> Server:
    if find_spec("vllm") is None:
        raise CgragError(
            "No model server is set, and vLLM is not installed here, so no chunk can be asked about.",
            "Install it:  make run      or name a server: CGRAG_LLM_URLS=http://HOST:PORT/v1 (several, "
            "comma-separated, share the work).",
        )
    if settings.serve.port and not is_free(settings.serve.port):
        raise _taken(settings.serve.port)
    files = model_files(settings, model, report)
    progress = report(_STARTING.format(model), "seconds")
    for _ in range(_PORT_TRIES):
        port = settings.serve.port or free_port()
        server, reason = _started(settings, model, revision, files, port, progress)
        if server is not None:
            return server
        if "address already in use" not in reason.lower():
            break
        if settings.serve.port:
            raise _taken(port)
    told, remedy = why(reason, f"See its log: {log_file(settings)}")
    raise CgragError(f"The model server did not start with {model}: {told}.", f"{remedy}  (log: {log_file(settings)})")


def _taken(port: int) -> CgragError:
    return CgragError(
        f"The port {port} is taken, so the model server does not start.",
        "Use another:  CGRAG_SERVE__PORT=0 takes one that is free.",
    )


def _started(
    settings: Settings, model: str, revision: str, files: str, port: int, progress: Progress
) -> tuple[Server | None, str]:
    """Start a keeper and wait until its server answers; return why it does not."""
    folder = server_folder(settings)
    url = f"http://127.0.0.1:{port}/v1"
    spec = {
        "command": [
            "env",
            mark_of(folder),
            *environment_of(files),
            *command_of(settings, model, revision, files, port),
        ],
        "idle": settings.serve.idle,
        "folder": str(folder),
        "server": {"url": url, "model": model, "identity": identity_of(settings, model, revision)},
    }
    log_file(settings).write_bytes(b"")
    command = [sys.executable, "-m", "pipelines.serve.keeper", json.dumps(spec)]
    said = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, start_new_session=True, check=True).stdout
    keeper, begun = int(said), time.monotonic()
    try:
        while time.monotonic() - begun < settings.serve.start:
            if not is_kept(folder):
                return None, _log_of(settings)
            server = _read(folder / "server.json")
            if server and server.keeper == keeper and _answers(url):
                return server, ""
            progress(int(time.monotonic() - begun), None)
            time.sleep(_POLL_SECONDS)
    except BaseException:
        _end(keeper, folder)
        raise
    _end(keeper, folder)
    return None, f"Error: it did not answer within {settings.serve.start:g} s"


def _waited_for(settings: Settings, server: Server, progress: Progress) -> Server | None:
    """Wait until a server answers; None if it ends before it does."""
    begun, folder = time.monotonic(), server_folder(settings)
    while not _answers(server.url):
        if not is_kept(folder):
            _clean_up(server, folder)
            return None
        if time.monotonic() - begun > settings.serve.start:
            raise CgragError(
                f"The model server does not answer: {last_error(_log_of(settings))}.",
                f"Stop it, then run again:  cgrag llm down  (log: {log_file(settings)})",
            )
        progress(int(time.monotonic() - begun), None)
        time.sleep(_POLL_SECONDS)
    return server


def _read(record: Path) -> Server | None:
    found = read_record(record)
    try:
        return Server(**found) if found else None
    except TypeError:  # another version of this program wrote it
        return None


def _end(keeper: int, folder: Path) -> None:
    """Ask a keeper that lives to end, and wait until it has."""
    if is_kept(folder):
        with suppress(ProcessLookupError):
            os.kill(keeper, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while is_kept(folder) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _answers(url: str) -> bool:
    try:
        with httpx.Client(trust_env=False, timeout=5) as client:
            return client.get(url.removesuffix("/v1") + "/health").is_success
    except httpx.HTTPError:
        return False


def _log_of(settings: Settings) -> str:
    return log_file(settings).read_bytes()[-200_000:].decode("utf-8", "replace")


def _stop(server: Server, folder: Path) -> None:
    _end(server.keeper, folder)
    _clean_up(server, folder)


def _clean_up(server: Server, folder: Path) -> None:
    """End what is left of a server: its keeper, every process of its group, and its record."""
    if is_kept(folder):
        with suppress(ProcessLookupError):
            os.kill(server.keeper, signal.SIGKILL)
    if _is_ours(server.group, folder):
        with suppress(ProcessLookupError):
            os.killpg(server.group, signal.SIGKILL)
    (folder / "server.json").unlink(missing_ok=True)


def _is_ours(group: int, folder: Path) -> bool:
    """Whether a process of this group is of the server of this folder: numbers come again."""
    name, _, value = mark_of(folder).partition("=")
    for process in psutil.process_iter(["environ"]):
        with suppress(OSError):
            if os.getpgid(process.pid) == group and (process.info["environ"] or {}).get(name) == value:
                return True
    return False
