"""One run over some partitions: what is to be asked is asked, and each partition's table written as it is done."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import Any, Literal

from pipelines.corpus.scan import Plan
from pipelines.errors import CgragError
from pipelines.extract.client import ModelClient, connect
from pipelines.extract.ledger import Ledger
from pipelines.extract.overview import PartitionOverview, overview, totals
from pipelines.extract.partition import PartitionResult, Work, build_partition, work_of
from pipelines.extract.recipe import active_recipe, store_recipe
from pipelines.extract.run import Extraction
from pipelines.extract.stats import degenerate_answers
from pipelines.layout import Layout
from pipelines.progress import Progress, Reporter, no_report
from pipelines.settings import Settings

Ask = Literal["pending", "listed", "none"]


class _Shown:
    """Progress in chunks, begun with the first one: it takes the place of the progress in partitions."""

    def __init__(self, report: Reporter) -> None:
        self._report = report
        self._progress: Progress | None = None

    def __call__(self, done: int, total: int | None) -> None:
        if self._progress is None:
            self._progress = self._report("Asking the model", "chunks")
        self._progress(done, total)


class Session:
    """Extracts partitions by the active recipe; use it in `with`.

    `ask` says about which of their chunks without a result the model is asked: all (pending), those `listed`, or none:
    then the tables are brought up to what the ledger has. Partitions that `failed` before are looked at again, unless
    nothing is asked. `todo` are the partitions that need it, of those planned and
    chunked; `notes` is what the operator should know.

    Raises:
        CgragError: on entering, where there is something to ask and no server that can be asked.
    """

    def __init__(
        self,
        settings: Settings,
        plan: Plan,
        keys: Sequence[str],
        ask: Ask = "pending",
        listed: Sequence[str] = (),
        failed: Collection[str] = (),
        report: Reporter = no_report,
        client: ModelClient | None = None,
    ) -> None:
        self._settings, self._plan, self._ask = settings, plan, ask
        self._listed, self._failed = set(listed), set(failed)
        self._layout = Layout(settings.home)
        self._recipe = active_recipe(settings)
        store_recipe(self._layout, self._recipe)
        self._ledger = Ledger(self._layout, self._recipe.id, settings.extract, deep=True)
        self._found = self._overview()
        self.chunked = [key for key in keys if key in self._found]
        self.todo = [key for key in self.chunked if self._has_work(key, self._found[key])]
        self._extraction: Extraction | None = None
        self._leases = ExitStack()
        self._report, self._client = report, client
        if ask != "none" and self.todo:
            shown = _Shown(report)
            self._extraction = Extraction(self._recipe, self._ledger, self._connect, self._work(), shown, self._total())
        self.notes: list[str] = []

    def __enter__(self) -> "Session":
        if self._extraction:
            self._extraction.__enter__()
            try:
                self.notes += self._extraction.start()
            except BaseException as error:
                self.__exit__(type(error), error, error.__traceback__)
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._extraction:
                self._extraction.__exit__(kind, error, trace)
        finally:
            self._leases.close()
            self._ledger.__exit__(kind, error, trace)

    def _connect(self) -> ModelClient:
        """The client of the endpoints that are set, else of a server on this machine, leased until the end."""
        return self._client or connect(self._settings, self._recipe, self._leases, self._report)

    @property
    def asked(self) -> int:
        """How many chunks the model has been asked about."""
        return self._extraction.asked if self._extraction else 0

    def extract(self, key: str) -> tuple[PartitionResult, int]:
        """Ask what is to be asked of a partition and write its table; return it, and how many results it had before.

        Raises:
            ChunksFailed: some of its chunks have no result that were to have one; those that have are in the table.
        """
        problem: CgragError | None = None
        if self._extraction:
            problem = self._extraction.wait_for(key)
        settings = self._settings.extract
        result = build_partition(self._layout, key, self._plan.partitions[key], settings, self._recipe, self._ledger)
        result.raise_failed(self._listed if self._ask == "listed" else None, problem.problem if problem else "")
        new = self._extraction.settled if self._extraction else set()
        return result, sum(row["key"] not in new for row in result.having("ok"))

    def finish(self) -> dict[str, Any]:
        """Compact the ledger and return the totals over the whole corpus, as `cgrag status` tells them.

        Beside these `degenerate`, edges of the recipe's answers by kind, and `answered_edges`, how many there are.
        """
        self._ledger.flush()
        found = totals(self._overview(), self._ledger)
        kinds, edges = degenerate_answers(self._ledger, self._recipe)
        found |= {"degenerate": dict(sorted(kinds.items())), "answered_edges": edges}
        try:
            self._ledger.compact()
        except OSError as error:  # a full disk: the segments stay as they are
            self.notes.append(f"The ledger could not be compacted: {error.strerror or error}.")
        self.notes += [f"{moved}; it was set aside, its rows are asked again" for moved in self._ledger.set_aside]
        return found

    def _overview(self) -> dict[str, PartitionOverview]:
        return overview(self._layout, self._plan, self._settings, self._recipe, self._ledger, exact=False)

    def _wanted(self, found: PartitionOverview) -> list[str]:
        if self._ask == "none":
            return []
        return [chunk for chunk in found.open if self._ask == "pending" or chunk in self._listed]

    def _has_work(self, key: str, found: PartitionOverview) -> bool:
        again = self._ask != "none" and key in self._failed
        return not found.current or again or bool(self._wanted(found))

    def _total(self) -> int | None:
        if self._ask == "listed":
            return len(self._listed)
        found = [self._found[key] for key in self.todo]
        return sum(len(self._wanted(one)) for one in found) if all(one.current for one in found) else None

    def _work(self) -> Iterator[Work]:
        wanted = self._listed if self._ask == "listed" else None
        for key in self.todo:
            files = self._plan.partitions[key]
            yield work_of(self._layout, key, files, self._settings.extract, self._recipe, self._ledger, wanted)
