"""One model server on this machine, shared by all who lease it: started by the first, stopped some time after the last.

A lease is a shared lock on one file, which ends with the process that holds it, however that ends. The server itself
is a child of a keeper (keeper.py), which nobody waits for: it stops the server when no lease has been held for a
while, and the server ends with it.
"""

import fcntl
import json
import os
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import httpx
import psutil

from pipelines.errors import CgragError
from pipelines.progress import Progress, Reporter, no_report
from pipelines.serve.models import has_gpu, model_files, revision_of
from pipelines.settings import PROJECT, Settings
from pipelines.tables import digest, read_record

_POLL_SECONDS = 0.3
_STOP_SECONDS = 20.0
_STARTING = "Starting a model server ({})"
_PORT_TRIES = 3
_SMALL_MACHINE = 4
"""On so few cores vLLM leaves none to itself."""
_TOO_SMALL = (
    "Give it less: CGRAG_SERVE__CACHE_GIB=1, CGRAG_SERVE__CONTEXT=4096, or a smaller model: CGRAG_EXTRACT__MODEL=…"
)
_REASONS = (
    (
        re.compile(r"out of memory|MemoryError|Available memory on node|No available memory|cannot allocate", re.I),
        "there is not enough memory",
        _TOO_SMALL,
    ),
    (
        re.compile(r"KV cache is needed, which is larger than the available", re.I),
        "its memory for keys and values is too small for the context",
        "Lower CGRAG_SERVE__CONTEXT, or raise CGRAG_SERVE__CACHE_GIB.",
    ),
    (
        re.compile(
            r"couldn't connect to|Repository Not Found|is not a (?:valid|local folder)|Cannot find the requested"
        ),
        "the model cannot be downloaded",
        "Check its name and the connection, or name a folder that holds it: CGRAG_EXTRACT__MODEL=…",
    ),
)


@dataclass(frozen=True)
class Server:
    """A server that was started here."""

    keeper: int
    """Its process number; the server's processes are a group of their own, `group`."""
    keeper_started: str
    """By the kernel's clock, since numbers come again."""
    group: int
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
def lease(settings: Settings, model: str, report: Reporter = no_report) -> Iterator[str]:
    """Yield the address of a local server of `model`, started if none runs; until the end it is not stopped.

    Raises:
        CgragError: vLLM is not installed, the model cannot be had, the server does not start, or another one is in use.
    """
    folder = server_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "users.lock", "a+b") as users:
        with _locked(folder / "start.lock", report):
            fcntl.flock(users, fcntl.LOCK_SH)
            server = running(settings)
            if server and server.identity != _identity(settings, model):
                _make_room(settings, server, users, model)
                server = None
            if server is None:
                server = _start(settings, model, report)
            elif not _answers(server.url):  # whoever started it did not live to see it answer
                _wait_for(settings, server, report(_STARTING.format(model), "seconds"))
        yield server.url


def running(settings: Settings) -> Server | None:
    """Return the server that was started here, None where there is none; what a crash has left of one is removed."""
    record = server_folder(settings) / "server.json"
    server = _read(record)
    if server is None or start_of(server.keeper) == server.keeper_started:
        return server
    _clean_up(server, record)
    return None


def in_use(settings: Settings) -> bool:
    """Whether anybody holds a lease."""
    file = server_folder(settings) / "users.lock"
    if not file.exists():
        return False
    with open(file, "a+b") as users:
        return not _try_lock(users)


def stop(settings: Settings) -> bool:
    """Stop the local server; whether there was one.

    Raises:
        CgragError: it is in use.
    """
    folder = server_folder(settings)
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder / "start.lock", no_report):
        server = running(settings)
        if server is None:
            return False
        if in_use(settings):
            raise CgragError(
                f"The local server is in use: somebody is asking {server.model}.",
                "Wait for that run, or stop it first.",
            )
        _stop(server, folder / "server.json")
        return True


def start_of(process: int) -> str:
    """Return when a process was started, by the kernel's clock; "" where there is none that runs."""
    try:
        found = psutil.Process(process)
        return "" if found.status() == psutil.STATUS_ZOMBIE else str(found.create_time())
    except psutil.Error:
        return ""


def _make_room(settings: Settings, server: Server, users: Any, model: str) -> None:
    if not _try_lock(users):  # ours becomes exclusive: nobody else has one
        raise CgragError(
            f"The local server is in use, and serves {server.model} with other settings than are asked for ({model}).",
            "Wait for that run, stop it, or use a server of your own: CGRAG_SERVE__FOLDER=…",
        )
    fcntl.flock(users, fcntl.LOCK_SH)
    _stop(server, server_folder(settings) / "server.json")


def _start(settings: Settings, model: str, report: Reporter) -> Server:
    if find_spec("vllm") is None:
        raise CgragError(
            "No model server is set, and vLLM is not installed here, so no chunk can be asked about.",
            "Install it:  make run      or name a server: CGRAG_LLM_URLS=http://HOST:PORT/v1 (several, "
            "comma-separated, share the work).",
        )
    files = model_files(settings, model, report)
    progress = report(_STARTING.format(model), "seconds")
    for _ in range(_PORT_TRIES):
        port = settings.serve.port or _free_port()
        server, reason = _started(settings, model, files, port, progress)
        if server is not None:
            return server
        if "address already in use" not in reason.lower():
            break
        if settings.serve.port:
            raise CgragError(
                f"The port {port} is taken, so the model server does not start.",
                "Use another:  CGRAG_SERVE__PORT=0 takes one that is free.",
            )
    told, remedy = next(
        ((told, remedy) for pattern, told, remedy in _REASONS if pattern.search(reason)),
        (_last_error(reason), f"See its log: {log_file(settings)}"),
    )
    raise CgragError(f"The model server did not start with {model}: {told}.", f"{remedy}  (log: {log_file(settings)})")


def _started(settings: Settings, model: str, files: str, port: int, progress: Progress) -> tuple[Server | None, str]:
    """Start a keeper and wait until its server answers; return why it does not."""
    folder = server_folder(settings)
    url = f"http://127.0.0.1:{port}/v1"
    spec = {
        "command": ["env", _mark(folder), *_environment(files), *_command(settings, model, files, port)],
        "idle": settings.serve.idle,
        "folder": str(folder),
        "server": {"url": url, "model": model, "identity": _identity(settings, model)},
    }
    log_file(settings).write_bytes(b"")
    command = [sys.executable, "-m", "pipelines.serve.keeper", json.dumps(spec)]
    said = subprocess.run(command, cwd=PROJECT, stdout=subprocess.PIPE, start_new_session=True, check=True).stdout
    keeper, begun = int(said), time.monotonic()
    try:
        while time.monotonic() - begun < settings.serve.start:
            if not start_of(keeper):
                return None, _log_of(settings)
            server = _read(folder / "server.json")
            if server and server.keeper == keeper and _answers(url):
                return server, ""
            progress(int(time.monotonic() - begun), None)
            time.sleep(_POLL_SECONDS)
    except BaseException:
        _end(keeper)
        raise
    _end(keeper)
    return None, f"Error: it did not answer within {settings.serve.start:g} s"


def _wait_for(settings: Settings, server: Server, progress: Progress) -> None:
    begun = time.monotonic()
    while not _answers(server.url):
        if not start_of(server.keeper) or time.monotonic() - begun > settings.serve.start:
            raise CgragError(
                f"The model server does not answer: {_last_error(_log_of(settings))}.",
                f"Stop it, then run again:  cgrag llm down  (log: {log_file(settings)})",
            )
        progress(int(time.monotonic() - begun), None)
        time.sleep(_POLL_SECONDS)


def _read(record: Path) -> Server | None:
    found = read_record(record)
    try:
        return Server(**found) if found else None
    except TypeError:  # another version of this program wrote it
        return None


def _end(keeper: int) -> None:
    """Ask a keeper to end, and wait until it has."""
    with suppress(ProcessLookupError):
        os.kill(keeper, signal.SIGTERM)
    deadline = time.monotonic() + _STOP_SECONDS
    while start_of(keeper) and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _command(settings: Settings, model: str, files: str, port: int) -> list[str]:
    serve = settings.serve
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", files, "--served-model-name", model, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--max-model-len", str(_context(files, serve.context))]
    if settings.extract.revision and not Path(files).is_dir():
        command += ["--revision", settings.extract.revision]
    if not has_gpu():  # compiling takes a minute at each start, and gives a tenth
        command += ["--dtype", "bfloat16", "--enforce-eager"]
        command += ["--kv-cache-memory-bytes", str(int(serve.cache_gib * 2**30))]
    return command + shlex.split(serve.options)


def _identity(settings: Settings, model: str) -> str:
    return digest(_command(settings, model, "", 0), revision_of(model))


def _context(files: str, wanted: int) -> int:
    """The context asked for, or less where the model's own is shorter."""
    config = read_record(Path(files) / "config.json") if files else None
    own = config.get("max_position_embeddings") if config else None
    return min(wanted, own) if isinstance(own, int) else wanted


def _environment(files: str) -> list[str]:
    """Variables of the server, as the command `env` takes them."""
    more = ["VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "PYTHONWARNINGS=ignore"]
    more += ["HF_HUB_OFFLINE=1"] if Path(files).is_dir() else []
    more += ["VLLM_CPU_NUM_OF_RESERVED_CPU=0"] if not has_gpu() and (os.cpu_count() or 1) <= _SMALL_MACHINE else []
    return more


def _free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def _answers(url: str) -> bool:
    try:
        with httpx.Client(trust_env=False, timeout=5) as client:
            return client.get(url.removesuffix("/v1") + "/health").is_success
    except httpx.HTTPError:
        return False


def _log_of(settings: Settings) -> str:
    return log_file(settings).read_bytes()[-200_000:].decode("utf-8", "replace")


def _last_error(log: str) -> str:
    """The first cause that a log names: what comes after it is what follows from it."""
    errors = re.findall(r"\b((?:\w*Error|\w*Exception): [^\n]{3,300})", log)
    return errors[0].rstrip(".") if errors else "it ended without a reason"


@contextmanager
def _locked(file: Path, report: Reporter) -> Iterator[None]:
    """Hold a lock; who has to wait for it is told that another run is starting or stopping the server."""
    with open(file, "a+b") as lock:
        begun, progress = time.monotonic(), None
        while not _try_lock(lock):
            progress = progress or report("Waiting for another run's model server", "seconds")
            progress(int(time.monotonic() - begun), None)
            time.sleep(_POLL_SECONDS)
        yield


def _try_lock(file: Any) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _stop(server: Server, record: Path) -> None:
    if start_of(server.keeper) == server.keeper_started:
        _end(server.keeper)
    _clean_up(server, record)


def _clean_up(server: Server, record: Path) -> None:
    """End what is left of a server: its keeper, every process of its group, and its record."""
    if start_of(server.keeper) == server.keeper_started:
        with suppress(ProcessLookupError):
            os.kill(server.keeper, signal.SIGKILL)
    if _is_ours(server.group, record.parent):
        with suppress(ProcessLookupError):
            os.killpg(server.group, signal.SIGKILL)
    record.unlink(missing_ok=True)


def _is_ours(group: int, folder: Path) -> bool:
    """Whether a process of this group is of the server of this folder: numbers come again."""
    name, _, value = _mark(folder).partition("=")
    for process in psutil.process_iter():
        with suppress(psutil.Error, OSError):
            if os.getpgid(process.pid) == group:
                return bool(process.environ().get(name) == value)
    return False


def _mark(folder: Path) -> str:
    """A variable that all processes of the server of a folder have."""
    return f"CGRAG_SERVER={folder}"


def as_record(server: Server) -> dict[str, Any]:
    """What server.json holds."""
    return asdict(server)
