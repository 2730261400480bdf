"""Asking a model about many chunks: always enough requests under way, every answer kept, nothing asked twice.

Partitions are asked one after another in one stream, so that the end of one does not leave the server idle; each is
handed over as soon as its last chunk is answered.
"""

import asyncio
import logging
import signal
import threading
import time
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterable
from types import TracebackType
from typing import Any, Protocol

from pipelines.errors import CgragError
from pipelines.extract.answer import InvalidAnswer
from pipelines.extract.client import Asked, ModelClient, Reply
from pipelines.extract.ledger import Ledger
from pipelines.extract.partition import Item, Work
from pipelines.extract.recipe import Request
from pipelines.progress import Progress, silent
from pipelines.tables import digest

_GONE_AFTER = 8
"""So many answers in a row that were none, for want of a connection, mean that the server has gone."""
_POLL_SECONDS = 0.2
_LAST_SECONDS = 0.2
"""For answers that have been sent, when a signal ends the asking."""
log = logging.getLogger(__name__)
_KEPT_OF_FAILED = 2_000
_NAMES = {signal.SIGINT: "SIGINT", signal.SIGTERM: "SIGTERM"}


class Askable(Asked, Protocol):
    """What turns texts into requests, and answers into something else: a recipe of extraction or of summaries."""

    @property
    def empty(self) -> str:
        """The answer about half a text that has nothing to ask about."""

    @property
    def again(self) -> str:
        """The command that goes on where asking ended."""

    def request(self, text: str) -> Request | None: ...

    def split(self, text: str) -> int | None: ...

    def read(self, text: str, pieces: list[dict[str, Any]]) -> object: ...


class _Interrupted(Exception):
    """A signal has asked for the end."""


class Extraction:
    """A run over the work of some partitions; use it in `with`, inside that of its ledger.

    `start` finds out whether there is anything to ask, connects, and makes sure that the server can be asked;
    `wait_for` then goes on until a partition is done. All runs in this thread, and stands still between the calls.
    """

    def __init__(
        self,
        recipe: Askable,
        ledger: Ledger,
        connect: Callable[[], ModelClient],
        work: Iterable[Work],
        progress: Progress = silent,
        total: int | None = None,
    ) -> None:
        self._recipe, self._ledger, self._connect = recipe, ledger, connect
        self._work = iter(work)
        self._progress, self._total = progress, total
        self._runner = asyncio.Runner()
        self._queue: deque[Item] = deque()
        self._claimed_elsewhere: deque[Item] = deque()
        self._waiting: dict[str, list[str]] = {}
        """Of each key that is not settled: the partitions that need it."""
        self._left: dict[str, int] = {}
        self.settled: set[str] = set()
        """Keys that were answered, or failed, since the start: here, or by another worker."""
        self._finished: set[str] = set()
        self._lost = 0
        self._client: ModelClient | None = None
        self._results: AsyncGenerator[str, None] | None = None
        self._problem: CgragError | None = None
        self._signal: signal.Signals | None = None
        self._handlers: dict[signal.Signals, Any] = {}
        self.asked = 0

    def __enter__(self) -> "Extraction":
        self._runner.__enter__()
        self._stop = asyncio.Event()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._runner.run(self._close())  # this also lets a signal come in that the last table held up
        finally:
            self._restore_signals()
            self._runner.close()
        if self._signal and error is None:
            self._pass_on()

    def start(self) -> list[str]:
        """Find the first work and check the servers; return what is wrong with some of several.

        Raises:
            CgragError: there is work, and no server that can be asked.
        """
        self._results = self._stream()
        self._next_work()
        client = (
            self._connect() if self._queue else None
        )  # may take minutes, in which a signal does what it always does
        self._catch_signals()
        try:
            return self._runner.run(self._open(client)) if client else []
        except _Interrupted:
            self._pass_on()
            raise

    def wait_for(self, partition: str) -> CgragError | None:
        """Ask until all of a partition is answered; return why that could not be, None if it was."""
        while partition not in self._finished and self._problem is None:
            try:
                if not self._runner.run(self._advance()):
                    break
            except CgragError as error:
                self._problem = error
            except _Interrupted:
                self._pass_on()
            except Exception as error:  # it ends the asking for all partitions, so all have to say so
                log.exception("asking the model ended")
                self._problem = CgragError(f"Asking the model ended: {type(error).__name__}: {error}", self._again)
        if partition in self._finished:
            return None
        return self._problem or CgragError("Asking the model ended before all was answered.", self._again)

    @property
    def _again(self) -> str:
        return f"What was answered is stored. Run again:  {self._recipe.again}"

    @property
    def _asker(self) -> ModelClient:
        assert self._client is not None
        return self._client

    async def _open(self, client: ModelClient) -> list[str]:
        self._client = await client.__aenter__()
        check, stop = asyncio.ensure_future(client.check(self._recipe)), asyncio.ensure_future(self._stop.wait())
        try:
            await asyncio.wait({check, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not check.done():
                raise _Interrupted
            return check.result()
        finally:
            check.cancel()
            stop.cancel()
            await asyncio.gather(check, stop, return_exceptions=True)

    async def _close(self) -> None:
        if self._results is not None:
            await self._results.aclose()
        if self._client is not None:
            await self._client.__aexit__(None, None, None)

    async def _advance(self) -> bool:
        assert self._results is not None
        partition = await anext(self._results, None)
        if partition is not None:
            self._finished.add(partition)
        return partition is not None

    async def _stream(self) -> AsyncGenerator[str, None]:
        """Yield the partitions in the order in which their last answers come in, each on disk by then."""
        asking: dict[asyncio.Task[dict[str, Any]], Item] = {}
        stop = asyncio.ensure_future(self._stop.wait())
        try:
            while True:
                self._fill(asking)
                ready = [partition for partition, left in self._left.items() if left == 0]
                if ready:
                    self._ledger.flush()
                for partition in ready:
                    del self._left[partition]
                    yield partition
                if not asking and not self._claimed_elsewhere:
                    if not self._left:
                        return
                    continue
                if not asking:
                    self._ledger.flush()  # another worker may be waiting for it, as this one is for others
                timeout = self._ledger.flush_due if asking else _POLL_SECONDS
                done, _ = await asyncio.wait({*asking, stop}, timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
                if stop in done and asking:
                    await asyncio.wait(asking, timeout=_LAST_SECONDS)  # what has been answered is not thrown away
                problem: CgragError | None = None
                for task in [task for task in asking if task.done()]:
                    item = asking.pop(task)
                    try:
                        row = task.result()
                        if problem is None or row["status"] == "ok":  # the others would all say that the server is gone
                            self._take(item, row)
                            continue
                    except CgragError as error:
                        problem = problem or error
                    self._ledger.release(item.request.key)
                if stop in done:
                    raise _Interrupted
                if problem:
                    raise problem
                if not self._ledger.flush_due:
                    self._ledger.flush()
        finally:
            for item in asking.values():
                self._ledger.release(item.request.key)
            for each in (*asking, stop):
                each.cancel()
            await asyncio.gather(*asking, stop, return_exceptions=True)

    def _fill(self, asking: dict[asyncio.Task[dict[str, Any]], Item]) -> None:
        """Put requests under way as far as there is room, of keys that no other process is asking for."""
        if self._claimed_elsewhere and not self._queue:
            self._queue, self._claimed_elsewhere = self._claimed_elsewhere, self._queue
            self._ledger.refresh()
        while (self._queue or self._next_work()) and len(asking) < self._asker.capacity:
            item = self._queue.popleft()
            key = item.request.key
            if self._ledger.claim(key):
                asking[asyncio.ensure_future(self._ask(item))] = item
                self.asked += 1
            elif self._ledger.is_ok(key):
                self._settle(key)
            else:
                self._claimed_elsewhere.append(item)

    def _next_work(self) -> bool:
        """Take in partitions until one brings something to ask; whether one did. One after the other, when needed."""
        for work in self._work:
            self._left[work.partition] = 0
            for item in work.items:
                key = item.request.key
                if key in self.settled:
                    continue
                if key not in self._waiting:
                    self._waiting[key] = []
                    self._queue.append(item)
                if work.partition not in self._waiting[key]:
                    self._waiting[key].append(work.partition)
                    self._left[work.partition] += 1
            if self._queue:
                return True
        return False

    def _settle(self, key: str) -> None:
        self.settled.add(key)
        for partition in self._waiting.pop(key):
            self._left[partition] -= 1
        self._progress(len(self.settled), self._total)

    def _take(self, item: Item, row: dict[str, Any]) -> None:
        self._settle(item.request.key)
        self._ledger.add(row)
        self._lost = self._lost + 1 if row["status"] == "connection" else 0
        if self._lost >= _GONE_AFTER:
            raise CgragError(
                f"The model server has gone: {row['detail']}. What was answered until then is kept.",
                f"Go on, with a new one if it was started here:  {self._recipe.again}",
            )

    async def _ask(self, item: Item) -> dict[str, Any]:
        """Ask about a text and return the ledger's row; an answer that was cut off is asked for in two halves, once."""
        reply = await self._asker.ask(item.request.body)
        pieces, replies = [_piece(0, len(item.text), reply)], [reply]
        at = self._recipe.split(item.text) if reply.status == "length" else None
        if at is not None:
            pieces = []
            for start, end in ((0, at), (at, len(item.text))):
                request = self._recipe.request(item.text[start:end])
                half = (
                    await self._asker.ask(request.body) if request else Reply("ok", content=self._recipe.empty, tries=0)
                )
                pieces.append(_piece(start, end, half))
                replies.append(half)
                if half.status != "ok":
                    break
        last = replies[-1]
        status, detail = last.status, last.detail
        if status == "ok":
            try:
                self._recipe.read(item.text, pieces)
            except InvalidAnswer as error:
                status, detail = "invalid answer", str(error)
        if status != "ok":
            pieces = [piece | {"content": piece["content"][:_KEPT_OF_FAILED]} for piece in pieces if piece["content"]]
        return {
            "key": item.request.key,
            "text_hash": item.text_hash,
            "status": status,
            "detail": detail,
            "finish_reason": last.finish_reason,
            "pieces": pieces,
            "result_hash": digest(pieces) if status == "ok" else digest(status, detail, pieces),
            "prompt_tokens": sum(reply.prompt_tokens for reply in replies),
            "completion_tokens": sum(reply.completion_tokens for reply in replies),
            "seconds": sum(reply.seconds for reply in replies),
            "requests": sum(reply.tries for reply in replies),
            "answered_at": time.time(),
        }

    def _catch_signals(self) -> None:
        if threading.current_thread() is threading.main_thread():
            loop = self._runner.get_loop()
            for number in (signal.SIGINT, signal.SIGTERM):
                self._handlers[number] = signal.getsignal(number)
                loop.add_signal_handler(number, self._interrupt, number)

    def _interrupt(self, number: signal.Signals) -> None:
        self._signal = number
        self._stop.set()

    def _pass_on(self) -> None:
        """Store what is there, then let the signal do what it would have done."""
        assert self._signal is not None
        self._restore_signals()
        self._ledger.flush()
        signal.raise_signal(self._signal)
        raise KeyboardInterrupt(_NAMES[self._signal])

    def _restore_signals(self) -> None:
        for number, handler in self._handlers.items():
            self._runner.get_loop().remove_signal_handler(number)
            signal.signal(number, handler)
        self._handlers = {}


def _piece(start: int, end: int, reply: Reply) -> dict[str, Any]:
    return {"start": start, "end": end, "content": reply.content}
