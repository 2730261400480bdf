"""Materializing through Dagster's own instance, in this process, so that the UI shows the same runs."""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote, unquote

from pipelines.corpus.scan import Scan, load_plan
from pipelines.errors import CgragError
from pipelines.extract.plan import ExtractionPlan, Order, plan_extraction
from pipelines.layout import Layout
from pipelines.progress import Reporter
from pipelines.settings import Settings
from pipelines.state import EVERY, OPTIONAL, PARTITIONED_ASSETS, AssetState, asset_states, failures
from pipelines.summaries.stage import SummaryPlan, plan_summaries
from pipelines.summaries.stored import summaries_problem

SUMMARIES = "community_summaries"


def point_dagster_at(settings: Settings) -> None:
    """Set what dagster.yaml and Dagster itself read from the environment, for this process and its children."""
    directory = Layout(settings.home).dagster
    directory.mkdir(parents=True, exist_ok=True)
    os.environ["CGRAG_HOME"] = str(settings.home)
    os.environ["CGRAG_DAGSTER_DIR"] = str(directory)
    os.environ["DAGSTER_HOME"] = str(settings.dagster_home)
    if settings.postgres_url:
        os.environ["CGRAG_POSTGRES_URL"] = _postgres(settings.postgres_url.get_secret_value())


def _postgres(url: str) -> str:
    """An address as SQLAlchemy reads it rightly: with the driver that Dagster brings, and the password escaped.

    >>> _postgres("postgresql://me:p@ss/word@host/runs")
    'postgresql+psycopg2://me:p%40ss%2Fword@host/runs'
    """
    url = re.sub(r"^postgres(ql)?://", "postgresql+psycopg2://", url)
    parts = re.fullmatch(r"([\w+]+://[^:/@]*:)(.*)@([^@]*)", url, re.DOTALL)
    return f"{parts[1]}{quote(unquote(parts[2]), safe='')}@{parts[3]}" if parts else url


def stale_assets(states: Sequence[AssetState], select: Sequence[str]) -> list[AssetState]:
    """Return the states of the assets to build, of those selected (if none is named, all but those on request).

    Raises:
        CgragError: a name is no asset's.
    """
    unknown = sorted(set(select) - set(EVERY))
    if unknown:
        raise CgragError(f"There is no asset {unknown[0]!r}.", f"The assets are: {', '.join(EVERY)}")
    wanted = (state for state in states if (state.name in select if select else not state.on_request))
    return [state for state in wanted if state.state not in ("fresh", "skipped")]


class Materializer:
    """Runs assets one group at a time, in the order of the graph."""

    def __init__(self, settings: Settings, reporter: Reporter, tell: Callable[[str], None] = lambda text: None) -> None:
        self._settings = settings
        self._layout = Layout(settings.home)
        self._reporter = reporter
        self._tell = tell

    def run(
        self,
        found: Scan,
        select: Sequence[str] = (),
        partitions: Sequence[str] = (),
        order: Order | None = None,
        confirm: Callable[[ExtractionPlan], bool] = lambda plan: True,
        confirm_summaries: Callable[[SummaryPlan], bool] = lambda plan: True,
    ) -> list[str]:
        """Build what is missing or stale; return the names of the assets that were.

        A model is asked about what `order` says, once its plan is confirmed, and without one about nothing. Failed
        partitions do not stop what needs only the others; they are raised at the end.

        Raises:
            CgragError: partitions failed, or a name is not known.
        """
        built = []
        stopped: CgragError | None = None
        todo = stale_assets(asset_states(self._settings, found), select)
        if not todo and order is None and SUMMARIES not in select:
            return []
        with self._dagster() as (job, instance):
            if any(state.name == "corpus_files" for state in todo):
                self._execute(job, instance, "corpus_files")
                built.append("corpus_files")
            for name in EVERY[1:]:
                if name in ("chunks", "code_facts"):
                    state = self._state(name, select)
                    keys = self._wanted(state.todo, partitions) if state else []
                    for first, last in self._ranges(instance, keys):
                        self._execute(job, instance, name, first, last)
                    built += [name] if keys else []
                elif name == "extractions":
                    built += [name] * self._extract(job, instance, select, partitions, order, confirm)
                elif self._state(name, select) or (name == SUMMARIES and name in select):
                    try:
                        config = self._summarise(select, confirm_summaries) if name == SUMMARIES else None
                        self._execute(job, instance, name, config=config)
                        built.append(name)
                    except CgragError as error:  # what does not need it goes on
                        if name in OPTIONAL and not select:
                            self._tell(f"Left as it was: {name}. {error}")
                        else:  # told at the end, with what failed
                            stopped = stopped or error
        plan = load_plan(self._layout)
        for name in PARTITIONED_ASSETS:
            failed = failures(self._layout, name, plan) if name != "extractions" or name in built else {}
            if failed:
                reasons = "".join(f"\n  {key}: {reason}" for key, reason in sorted(failed.items()))
                problem = f"{len(failed)} partitions of {name} failed:{reasons}"
                problem += f"\n{stopped.problem}" if stopped else ""
                raise CgragError(problem, "Redo them:  cgrag resume --failed")
        if stopped:
            raise stopped
        if SUMMARIES in select and (unsummarised := summaries_problem(self._settings)):
            raise unsummarised
        return built

    def _extract(  # type: ignore[no-untyped-def]
        self,
        job,
        instance,
        select: Sequence[str],
        partitions: Sequence[str],
        order: Order | None,
        confirm: Callable[[ExtractionPlan], bool],
    ) -> bool:
        """Bring the tables up to the ledger, and ask what is ordered; whether there was anything to do."""
        state = self._state("extractions", select)
        keys = set(self._wanted(state.todo, partitions)) if state else set()
        config: dict[str, Any] = {"ask": "none"}
        if order is not None:
            planned = load_plan(self._layout)
            plan = plan_extraction(self._settings, planned, order)
            if confirm(plan):
                keys |= plan.wanted.keys() | (set(order.listed or ()) & set(planned))
                config = {"ask": "pending"}
                if order != Order():
                    config = {"ask": "listed", "chunks": [chunk for ids in plan.wanted.values() for chunk in ids]}
        for first, last in self._ranges(instance, sorted(keys)):
            self._execute(job, instance, "extractions", first, last, config)
        left = self._state("extractions", select) if keys else None
        again = [key for key in self._wanted(left.todo, partitions) if key not in left.failed] if left else []
        for first, last in self._ranges(instance, again):  # they have chunks of the same text as others
            self._execute(job, instance, "extractions", first, last, {"ask": "none"})
        return bool(keys)

    def _summarise(self, select: Sequence[str], confirm: Callable[[SummaryPlan], bool]) -> dict[str, str]:
        """The model is asked only where summaries are selected by name, once the plan is confirmed."""
        asks = SUMMARIES in select and confirm(plan_summaries(self._settings))
        return {"ask": "pending" if asks else "none"}

    def _state(self, name: str, select: Sequence[str]) -> AssetState | None:
        if select and name not in select:
            return None
        (state,) = asset_states(self._settings, names=[name])
        return state if state.state not in ("fresh", "skipped") and (select or not state.on_request) else None

    def _wanted(self, todo: list[str], partitions: Sequence[str]) -> list[str]:
        load_plan(self._layout).check(partitions)
        return [key for key in todo if not partitions or key in partitions]

    @contextmanager
    def _dagster(self):  # type: ignore[no-untyped-def]
        point_dagster_at(self._settings)
        import dagster as dg

        from cgrag.definitions import defs
        from resources import workspace

        workspace.reporters.append(self._reporter)
        workspace.tellers.append(self._tell)
        try:
            with _storage(self._settings), dg.DagsterInstance.get() as instance:
                yield defs.resolve_implicit_global_asset_job_def(), instance
        finally:
            workspace.reporters.pop()
            workspace.tellers.pop()

    def _ranges(self, instance, keys: Iterable[str]) -> list[tuple[str, str]]:  # type: ignore[no-untyped-def]
        """Ranges of partition keys as Dagster orders them, after making these those of the plan."""
        from assets.partitions import directories, ranges, sync_keys

        sync_keys(instance, load_plan(self._layout))
        return list(ranges(instance.get_dynamic_partitions(directories.name), keys))

    def _execute(self, job, instance, asset: str, first: str = "", last: str = "", config: Any = None) -> None:  # type: ignore[no-untyped-def]
        import dagster as dg

        tags = (
            {"dagster/asset_partition_range_start": first, "dagster/asset_partition_range_end": last} if first else {}
        )
        with suppress(dg.Failure), _interruptible():  # each failed partition has left its reason, told at the end
            job.execute_in_process(
                instance=instance,
                asset_selection=[dg.AssetKey(asset)],
                tags=tags,
                run_config={
                    "loggers": {"console": {"config": {"log_level": "CRITICAL"}}},
                    "ops": {asset: {"config": config}} if config else {},
                },
            )


def end_lost_runs(settings: Settings) -> None:
    """Record as failed the runs whose process is gone, after `point_dagster_at`; raises CgragError as runs do."""
    import dagster as dg

    from resources.runs import runs_under_way

    with _storage(settings), dg.DagsterInstance.get() as instance:
        runs_under_way(instance)


@contextmanager
def _storage(settings: Settings) -> Iterator[None]:
    """Tell in words what goes wrong with Dagster's storage, without the address, which holds a password."""
    from dagster_postgres.utils import DagsterPostgresException
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except (SQLAlchemyError, DagsterPostgresException) as error:
        cause = error.__cause__ or error
        reason = str(getattr(cause, "orig", cause)).strip().splitlines()[0]
        where = "Postgres (CGRAG_POSTGRES_URL)" if settings.postgres_url else f"{Layout(settings.home).dagster}"
        raise CgragError(
            f"Dagster's storage in {where} fails: {reason}", "Start it or mend it, and run again:  cgrag run"
        ) from error


@contextmanager
def _interruptible() -> Iterator[None]:
    """Make of Dagster's word for Ctrl-C and SIGTERM the usual one."""
    import dagster as dg

    try:
        yield
    except dg.DagsterExecutionInterruptedError as error:
        raise KeyboardInterrupt from error
