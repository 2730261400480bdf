"""Asking a model: the endpoints that are set, else a leased local server; as many questions at once as they take."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from pipelines.answer.recipe import AnswerRecipe
from pipelines.errors import CgragError
from pipelines.progress import Progress, Reporter, silent
from pipelines.settings import Settings

if TYPE_CHECKING:
    from pipelines.extract.client import ModelClient, Reply


class Keyed(Protocol):
    """Something to be asked."""

    @property
    def key(self) -> str: ...


Work = TypeVar("Work", bound=Keyed)
Done = TypeVar("Done")


class Asking:
    """Holds the lease of a local server from the first question on, until it is closed."""

    def __init__(self, settings: Settings, recipe: AnswerRecipe, report: Reporter) -> None:
        self._settings, self._recipe, self._report = settings, recipe, report
        self._leases = ExitStack()
        self._urls: Sequence[str] = ()

    def close(self) -> None:
        """Let go of the server."""
        self._leases.close()
        self._urls = ()

    def ask_all(
        self,
        waiting: Sequence[Work],
        ask: "Callable[[ModelClient, Work], Coroutine[Any, Any, Done]]",
        lacking: Callable[[Work, str], Done],
    ) -> dict[str, Done]:
        """Return {key: what `ask` makes of it}; of the rest, where no model can be asked, what `lacking` makes."""
        done: dict[str, Done] = {}
        try:
            _run(self._ask_all(waiting, ask, done))
        except CgragError as error:
            why = " ".join(f"{error.problem} {error.remedy}".split())
            for one in waiting:
                if one.key not in done:
                    done[one.key] = lacking(one, why)
        return done

    async def _ask_all(
        self,
        waiting: Sequence[Work],
        ask: "Callable[[ModelClient, Work], Coroutine[Any, Any, Done]]",
        done: dict[str, Done],
    ) -> None:
        progress: Progress = self._report("Asking the model", "questions") if len(waiting) > 1 else silent
        async with self._connect() as client:
            await client.check(self._recipe)
            places = asyncio.Semaphore(client.capacity)

            async def complete(one: Work) -> None:
                async with places:
                    done[one.key] = await ask(client, one)
                progress(len(done), len(waiting))

            try:
                async with asyncio.TaskGroup() as tasks:
                    for one in waiting:
                        tasks.create_task(complete(one))
            except* CgragError as group:
                raise group.exceptions[0] from None

    def _connect(self) -> "ModelClient":
        from pipelines.extract.client import client_of
        from pipelines.serve.lease import endpoints

        recipe = self._recipe
        self._urls = self._urls or endpoints(self._settings, recipe.model, recipe.revision, self._leases, self._report)
        return client_of(self._settings, self._urls)


class Gone(CgragError):
    """The server went away: nothing more can be asked."""


def checked(reply: "Reply") -> str:
    """Return what is wrong with a reply, "" where it is an answer, whole or cut off.

    Raises:
        Gone: the server cannot be reached any more.
    """
    if reply.status == "connection":
        raise Gone(f"The model server went away: {reply.detail}.", "Start it, then go on with the same command.")
    return "" if reply.status in ("ok", "length") else f"{reply.status}: {reply.detail}"


def _run(work: Coroutine[Any, Any, None]) -> None:
    """Run to the end, also where a loop is running already, as in a notebook."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work)
    else:
        with ThreadPoolExecutor(1) as threads:
            threads.submit(asyncio.run, work).result()
