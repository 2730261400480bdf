"""`python -m pipelines.serve.keeper SPEC`: keeps one model server, and ends it when it has been idle for long enough.

The server and all its processes are a group of their own, which gets no signal of a terminal, ends with the keeper
(the kernel sees to that), and leaves no process behind.
"""

import ctypes
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import IO, Any

from pipelines.locks import is_held, try_lock
from pipelines.serve.lease import Server
from pipelines.tables import read_record, write_json

_POLL_SECONDS = 0.5
_END_SECONDS = 10.0
_PR_SET_PDEATHSIG = 1


def main(spec: dict[str, Any]) -> None:
    """Serve until idle, told to stop, or the server ends by itself."""
    folder = Path(spec["folder"])
    record = folder / "server.json"
    signal.signal(signal.SIGTERM, _leave)
    with open(folder / "vllm.log", "ab") as log:
        child = subprocess.Popen(
            spec["command"],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
        try:
            server = Server(os.getpid(), child.pid, **spec["server"])
            write_json(record, asdict(server))
            _keep(child, folder, spec["idle"])
        finally:
            _end(child)
            if (read_record(record) or {}).get("keeper") == os.getpid():
                record.unlink(missing_ok=True)


def _keep(child: "subprocess.Popen[bytes]", folder: Path, idle: float) -> None:
    used, users = time.monotonic(), folder / "users.lock"
    while child.poll() is None:
        time.sleep(_POLL_SECONDS)
        if is_held(users):
            used = time.monotonic()
        elif time.monotonic() - used > idle:
            with open(folder / "start.lock", "a+b") as starting:
                if try_lock(starting) and not is_held(users):
                    _end(child)  # whoever comes now waits for this, and starts another
                    return
            used = time.monotonic()


def _end(child: "subprocess.Popen[bytes]") -> None:
    if child.poll() is None:
        child.terminate()
        with suppress(subprocess.TimeoutExpired):
            child.wait(_END_SECONDS)
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()


def _end_with_parent() -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def _leave(number: int, frame: FrameType | None) -> None:
    sys.exit(0)


def _detach(folder: Path) -> IO[bytes]:
    """Go on in a process that nobody waits for; whoever started this one reads its number.

    The lock that says that a keeper lives is held from before until it ends, and goes on to no child but this one.
    """
    lock = open(folder / "keeper.lock", "a+b")  # noqa: SIM115
    fcntl.flock(lock, fcntl.LOCK_EX)
    child = os.fork()
    if child:
        print(child, flush=True)
        os._exit(0)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nothing, stream)
    return lock


if __name__ == "__main__":
    told = json.loads(sys.argv[1])
    with _detach(Path(told["folder"])):
        main(told)
