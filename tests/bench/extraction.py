"""`python -m tests.bench.extraction`: extraction of the whole corpus against a scripted model that takes 5 ms.

The floor is what that server gives to bare sockets, in the same run: seconds drift from machine to machine, ratios do
not. It takes the chunks of the user's own home, which `cgrag run` has built, and leaves that home as it is.
"""

import asyncio
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from pipelines.corpus.scan import load_plan
from pipelines.extract import session as sessions
from pipelines.extract.client import client_of
from pipelines.extract.ledger import Ledger
from pipelines.extract.recipe import active_recipe
from pipelines.extract.segments import list_segments
from pipelines.extract.session import Session
from pipelines.layout import Layout
from pipelines.settings import Settings, load_settings
from pipelines.tables import CHUNKS, read_table
from tests.fake_model import MODEL

DELAY = 0.005
SAMPLE = 3_000


@contextmanager
def model() -> Iterator[str]:
    """The address of a scripted model in a process of its own."""
    command = [sys.executable, "-m", "tests.fake_model", "--delay", str(DELAY)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.kill()


@contextmanager
def copied(url: str) -> Iterator[Settings]:
    """Settings of a copy of the user's home with just its files and chunks."""
    own = load_settings()
    with tempfile.TemporaryDirectory() as folder:
        for part in ("corpus", "chunks", "corpus.json", "index"):
            source = own.home / part
            if source.is_dir():
                shutil.copytree(source, Path(folder) / part, ignore=shutil.ignore_patterns("extractions.parquet"))
            elif source.exists():
                shutil.copy(source, folder)
        extract = own.extract.model_copy(update={"policy": "llm", "model": MODEL, "taxonomy": None})
        yield own.model_copy(update={"home": Path(folder), "extract": extract, "llm_urls": (url,)})


def bodies(settings: Settings, most: int) -> list[dict[str, Any]]:
    """The requests of the first chunks."""
    layout, recipe = Layout(settings.home), active_recipe(settings)
    texts: list[str] = []
    for key in load_plan(layout):
        texts += read_table(layout.partition(key, "chunks"), CHUNKS)["text"].to_pylist()
        if len(texts) >= most:
            break
    return [request.body for request in map(recipe.request, texts[:most]) if request]


async def bare(url: str, sent: Sequence[bytes], connections: int) -> float:
    """Requests a second over bare sockets, prepared beforehand: the server's own limit."""
    parts = urlsplit(url)
    waiting = iter(sent)

    async def connection() -> None:
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        for data in waiting:
            writer.write(data)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0]))
        writer.close()

    started = time.perf_counter()
    await asyncio.gather(*(connection() for _ in range(connections)))
    return len(sent) / (time.perf_counter() - started)


async def client_alone(settings: Settings, asked: Sequence[dict[str, Any]]) -> float:
    """Requests a second through our client, without ledger, tables or validation."""
    waiting = iter(asked)
    async with client_of(settings, settings.llm_urls) as client:

        async def worker() -> None:
            for body in waiting:
                assert (await client.ask(body)).status == "ok"

        started = time.perf_counter()
        await asyncio.gather(*(worker() for _ in range(client.capacity)))
        return len(asked) / (time.perf_counter() - started)


def memory() -> float:
    """MiB in use now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


class Watched:
    """Progress that notes the memory in use at every two thousandth chunk."""

    def __init__(self) -> None:
        self.noted: list[tuple[int, float]] = []

    def __call__(self, done: int, total: int | None) -> None:
        if done % 2_000 == 1:
            self.noted.append((done, memory()))


def whole(settings: Settings) -> None:
    """Extract everything, and tell."""
    layout = Layout(settings.home)
    plan = load_plan(layout)
    watched = Watched()
    building: list[float] = []
    really = sessions.build_partition

    def timed(*arguments: Any) -> Any:
        started = time.perf_counter()
        result = really(*arguments)
        building.append(time.perf_counter() - started)
        return result

    sessions.build_partition = timed
    started = time.perf_counter()
    with Session(settings, plan, list(plan), report=lambda doing, unit: watched) as session:
        for key in session.todo:
            session.extract(key)
        seconds = time.perf_counter() - started
        folder = layout.ledgers / active_recipe(settings).id
        before = [file.stat().st_size for file in list_segments(folder)]
        started = time.perf_counter()
        totals = session.finish()
        compacting = time.perf_counter() - started
    sessions.build_partition = really
    after = [file.stat().st_size for file in list_segments(folder)]
    chunks = totals["ok"]
    print(
        f"extraction of {chunks:,} chunks, {session.asked:,} asked: {seconds:.1f} s, {chunks / seconds:,.0f} chunks/s"
    )
    print(f"  a partition's table ({len(building)}): {1000 * sum(building) / len(building):.0f} ms on average")
    print("  memory, MiB: " + ", ".join(f"{used:.0f} at {done:,}" for done, used in watched.noted))
    print(
        f"  segments: {len(before)} of {sum(before) / 1e6:.1f} MB, compacted in {compacting:.1f} s to "
        f"{len(after)} of {sum(after) / 1e6:.1f} MB"
    )
    started = time.perf_counter()
    with Ledger(layout, folder.name, settings.extract, deep=True) as ledger:
        ledger.refresh()
    print(f"  reading the whole ledger, checksums and all: {time.perf_counter() - started:.2f} s")


def through_dagster(settings: Settings) -> None:
    """The same by the command, as a user runs it."""
    command = [str(Path(sys.executable).parent / "cgrag"), "run", "--select", "extractions", "--yes", "--json"]
    environment = os.environ | {
        "CGRAG_HOME": str(settings.home),
        "CGRAG_LLM_URLS": settings.llm_urls[0],
        "CGRAG_EXTRACT__MODEL": MODEL,
        "CGRAG_EXTRACT__POLICY": "llm",
    }
    started = time.perf_counter()
    done = subprocess.run(command, env=environment, check=True, capture_output=True, cwd=settings.home)
    seconds = time.perf_counter() - started
    found = json.loads(done.stdout)["extraction"]
    print(f"cgrag run --select extractions: {found['ok']:,} chunks in {seconds:.1f} s, Dagster and start included")


def main() -> None:
    with model() as url:
        with copied(url) as settings:
            asked = bodies(settings, SAMPLE)
            path = urlsplit(url).path + "/chat/completions"
            head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: "
            raw = [json.dumps(body).encode() for body in asked]
            sent = [f"{head}{len(data)}\r\n\r\n".encode() + data for data in raw]
            in_flight = settings.extract.in_flight
            print(
                f"{in_flight} requests at once, {1000 * DELAY:.0f} ms each: at most {in_flight / DELAY:,.0f} a second"
            )
            print(f"the scripted server, bare sockets: {asyncio.run(bare(url, sent, in_flight)):,.0f} requests/s")
            print(f"the client alone: {asyncio.run(client_alone(settings, asked)):,.0f} requests/s")
            whole(settings)
        with copied(url) as settings:
            through_dagster(settings)


if __name__ == "__main__":
    main()
