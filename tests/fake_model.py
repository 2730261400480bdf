"""A scripted OpenAI-compatible server for the tests: quick, deterministic, and it counts what it is asked.

In this process it runs in a thread (`FakeModel`); for tests that kill things it is a process of its own:
`python -m tests.fake_model [--delay SECONDS]` prints its address, answers by the chunk's own words, and writes
nothing: `GET /asked` returns {hash of the chunk's text: times}, `POST /act` changes what it does.
"""

import argparse
import asyncio
import itertools
import json
import re
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

from pipelines.answer.recipe import CANARY as ANSWER_CANARY
from pipelines.extract.grammar import written
from pipelines.extract.recipe import CANARY
from pipelines.summaries.recipe import CANARY as SUMMARY_CANARY
from pipelines.tables import digest

MODEL = "fake-model"
SAID = "The first source says so. [1]"
"""The usual answer to a question."""
POINT = "(7) The first part does it well. [1]"
"""The usual point of some summaries."""
Act = dict[str, Any]
SUMMARY = "On such things\nHere {} is what it is about. [1]"
"""The usual answer about numbered facts; in the braces stands their first name."""
Answer = list[list[Any]]
_LITERAL = re.compile(r'"(?:[^"\\]|\\.)*"')
"""What to do: content (text, or what is dumped as JSON), finish_reason, status, headers, raw, close, hang, endless."""


def answer(names: list[str], kind: str) -> Answer:
    """The deterministic answer: the first names, each related to the one before."""
    entities: Answer = [[name, kind] for name in names[:4]]
    for first, second in itertools.pairwise(entities):
        first.append(["RELATES_TO", second[0]])
    return entities


def said(content: Any) -> Any:
    """An answer in the words of the case bank (entities, relations) as the product has it; others as they are."""
    if not isinstance(content, dict) or not isinstance(content.get("entities"), list):
        return content
    try:
        entities = [[entity["name"], entity["type"]] for entity in content["entities"]]
        for relation in content["relations"]:
            first = next(entity for entity in entities if entity[0] == relation["source"])
            first.append([relation["type"], relation["target"]])
    except (TypeError, KeyError, StopIteration):
        return content
    return entities


def offered(body: dict[str, Any]) -> tuple[list[str], str]:
    """The names that a request's grammar lets through, and the first type."""
    rules = dict(line.split(" ::= ", 1) for line in body["structured_outputs"]["grammar"].splitlines())
    opened = (_LITERAL.findall(rule)[0] for name, rule in rules.items() if re.fullmatch(r"e\d+", name))
    names = [json.loads(json.loads(literal)[1:-1]) for literal in opened]
    return names, json.loads(json.loads(_LITERAL.findall(rules["t0"])[0]))


class FakeModel:
    """Use it in `with`; `act` maps a chunk's text to what is done, or to None for the usual answer."""

    def __init__(self, act: Callable[[str], Act | None] = lambda text: None, delay: float = 0.0, port: int = 0) -> None:
        self.act = act
        self.canary: Callable[[], Act | None] = lambda: None
        """What is done instead of answering a canary."""
        self._wanted_port = port
        self.delay = delay
        self.model = MODEL
        self.context: int | None = None
        self.asked: Counter[str] = Counter()
        """Of each chunk's text, or question, how many times it was asked about; canaries are not counted."""
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[str] = []
        self.binds = True
        """Whether the canary is answered as the grammar demands."""
        self.at_once = 0
        self._now = 0
        self.gate: Callable[[int], None] = lambda n: None
        """Called with the number of each request before it is answered."""
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> int:
        return self.asked.total()

    def __enter__(self) -> "FakeModel":
        self._thread.start()
        self._ready.wait()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """Be gone: nothing listens any more."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    def _run(self) -> None:
        asyncio.run(self._serve(self._wanted_port))

    async def _serve(self, port: int = 0) -> None:
        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        self._writers: set[asyncio.StreamWriter] = set()
        server = await asyncio.start_server(self._connection, "127.0.0.1", port, backlog=512)
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        await self._end.wait()
        server.close()
        for writer in list(self._writers):
            writer.transport.abort()
        await asyncio.sleep(0)

    async def _connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            while await self._request(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _request(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        length = re.search(r"content-length: *(\d+)", head, re.IGNORECASE)
        raw = await reader.readexactly(int(length[1])) if length else b""
        path = head.split(" ", 2)[1]
        if path.endswith("/models"):
            return self._send(writer, {"data": [{"id": self.model, "max_model_len": self.context}]})
        if path == "/asked":
            return self._send(writer, {digest(text): times for text, times in self.asked.items()})
        body = json.loads(raw)
        self.headers.append(head)
        text = body["messages"][-1]["content"]
        if text in (CANARY, ANSWER_CANARY, SUMMARY_CANARY):
            if instead := self.canary():
                return await self._do(writer, instead)
            (demanded,) = _LITERAL.findall(body["structured_outputs"]["grammar"])
            return self._reply(writer, json.loads(demanded) if self.binds else "The sea!")
        if "\ncited ::= " in body["structured_outputs"]["grammar"]:  # a question: it is counted by its own words
            text, usual = text.rpartition("\nQuestion: ")[2], {"content": SAID}
        elif "\npoint ::= " in body["structured_outputs"]["grammar"]:
            text, usual = text.rpartition("\nQuestion: ")[2], {"content": POINT}
        elif "\nsentence ::= " in body["structured_outputs"]["grammar"]:
            usual = {"content": SUMMARY.format(re.findall("`[^`]+`", text)[0])}
        else:
            usual = {"content": answer(*offered(body))}
        self.asked[text] += 1
        self.bodies.append(body)
        self._now += 1
        self.at_once = max(self.at_once, self._now)
        try:
            self.gate(self.requests)
            if self.delay:
                await asyncio.sleep(self.delay)
            return await self._do(writer, self.act(text) or usual)
        finally:
            self._now -= 1

    async def _do(self, writer: asyncio.StreamWriter, act: Act) -> bool:
        if act.get("close"):
            return False
        if act.get("hang"):
            await self._end.wait()
            return False
        if act.get("endless"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                writer.write(b"10000\r\n" + b" " * 0x10000 + b"\r\n")
                await writer.drain()
        if "raw" in act:
            return self._send(writer, act["raw"], act.get("status", 200))
        if act.get("status", 200) != 200:
            return self._send(writer, {"error": {"message": "scripted"}}, act["status"], act.get("headers"))
        return self._reply(writer, act.get("content"), act.get("finish_reason", "stop"), act.get("no_choices", False))

    def _reply(
        self, writer: asyncio.StreamWriter, content: Any, reason: str = "stop", no_choices: bool = False
    ) -> bool:
        text = content if content is None or isinstance(content, str) else written(said(content))
        choice = {"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        choices = [] if no_choices else [choice]
        return self._send(writer, {"object": "chat.completion", "choices": choices, "usage": usage})

    def _send(
        self, writer: asyncio.StreamWriter, body: Any, status: int = 200, headers: dict[str, str] | None = None
    ) -> bool:
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        more = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
        head = f"HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n{more}\r\n"
        writer.write(head.encode() + data)
        return True


def main() -> None:
    """Serve until killed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--delay", type=float, default=0.0)
    fake = FakeModel(delay=parser.parse_args().delay)
    threading.Thread(target=lambda: (fake._ready.wait(), print(fake.url, flush=True)), daemon=True).start()
    asyncio.run(fake._serve())


if __name__ == "__main__":
    main()
