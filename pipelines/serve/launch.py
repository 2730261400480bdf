"""How vLLM's own server is started: its command, its port, and what its log says where it does not start."""

import os
import re
import shlex
import socket
import sys
from pathlib import Path

from pipelines.serve.models import has_gpu
from pipelines.settings import Settings
from pipelines.tables import digest, read_record

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


def command_of(settings: Settings, model: str, revision: str, files: str, port: int) -> list[str]:
    """The command that serves a model's files (a folder, or a hub's name) on loopback."""
    serve = settings.serve
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
    command += ["--model", files, "--served-model-name", model, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--max-model-len", str(_context(files, serve.context))]
    if revision and not Path(files).is_dir():
        command += ["--revision", revision]
    if not has_gpu():  # compiling takes a minute at each start, and gives a tenth
        command += ["--dtype", "bfloat16", "--enforce-eager"]
        command += ["--kv-cache-memory-bytes", str(int(serve.cache_gib * 2**30))]
    return command + shlex.split(serve.options)


def identity_of(settings: Settings, model: str, revision: str) -> str:
    """What a server is started with, but for its port and where the model's files lie."""
    serve = settings.serve
    return digest(model, revision, serve.context, serve.cache_gib, serve.options)


def _context(files: str, wanted: int) -> int:
    """The context asked for, or less where the model's own is shorter."""
    config = read_record(Path(files) / "config.json")
    own = config.get("max_position_embeddings") if config else None
    return min(wanted, own) if isinstance(own, int) else wanted


def environment_of(files: str) -> list[str]:
    """Variables of the server, as the command `env` takes them."""
    more = ["VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "PYTHONWARNINGS=ignore"]
    more += ["HF_HUB_OFFLINE=1"] if Path(files).is_dir() else []
    more += ["VLLM_CPU_NUM_OF_RESERVED_CPU=0"] if not has_gpu() and (os.cpu_count() or 1) <= _SMALL_MACHINE else []
    return more


def is_free(port: int) -> bool:
    """Whether nobody listens on a port of this machine."""
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def free_port() -> int:
    """A port that nobody listens on just now."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def why(log: str, otherwise: str) -> tuple[str, str]:
    """Return why a server did not start, by its log, and what mends it."""
    for pattern, told, remedy in _REASONS:
        if pattern.search(log):
            return told, remedy
    return last_error(log), otherwise


def last_error(log: str) -> str:
    """The first cause that a log names: what comes after it is what follows from it."""
    errors = re.findall(r"\b((?:\w*Error|\w*Exception): [^\n]{3,300})", log)
    return errors[0].rstrip(".") if errors else "it ended without a reason"


def mark_of(folder: Path) -> str:
    """A variable that all processes of the server of a folder have."""
    return f"CGRAG_SERVER={folder}"
