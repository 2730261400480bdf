"""The community_summaries stage: requests about the strongest triples, answers out of the ledger, one table."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.communities.stage import current_tables
from pipelines.errors import CgragError
from pipelines.extract.ask import connect
from pipelines.extract.client import ModelClient
from pipelines.extract.ledger import Ledger
from pipelines.extract.partition import Work
from pipelines.extract.run import Extraction
from pipelines.extract.stats import measure
from pipelines.layout import Layout
from pipelines.progress import Reporter, no_report
from pipelines.settings import Settings
from pipelines.summaries.known import Known
from pipelines.summaries.recipe import SummaryRecipe, summary_recipe
from pipelines.summaries.tables import SUMMARIES, summaries_file
from pipelines.summaries.task import make_tasks
from pipelines.tables import digest, read_manifest, read_table, write_json, write_table

VERSION = 1
"""Raise it when the same answers give another table."""
REMEDY = "cgrag run --select community_summaries"


@dataclass(frozen=True)
class SummaryPlan:
    """What the model would be asked, at the speed measured so far."""

    recipe: str
    communities: int
    """Those without a summary."""
    requests: int
    seconds: float | None
    """None where nothing has been measured yet."""


@dataclass(frozen=True)
class SummariesResult:
    """What was stored."""

    fingerprint: str
    rows: list[dict[str, Any]]
    asked: int
    prompt_tokens: int
    completion_tokens: int
    notes: list[str] = field(default_factory=list)

    @property
    def statuses(self) -> dict[str, int]:
        return dict(sorted(Counter(row["status"] for row in self.rows).items()))


def summaries_inputs(settings: Settings, communities: str) -> dict[str, Any]:
    """What a table of summaries is built from, beside the answers; `communities` is the hash of their rows."""
    return {
        "communities": communities,
        "recipe": summary_recipe(settings).id,
        "settings": settings.summaries.model_dump(),
        "version": VERSION,
    }


def stored_answers(settings: Settings, recipe: SummaryRecipe) -> int:
    """Return how many requests of a recipe have an answer; what the table of an older number lacks is in the ledger."""
    with Ledger(Layout(settings.home), recipe.id, settings.extract) as ledger:
        ledger.refresh()
        return ledger.answered


def plan_summaries(settings: Settings) -> SummaryPlan:
    """Return what `make_summaries` would ask.

    Raises:
        CgragError: the communities are not built, or not of the current graph.
    """
    recipe = summary_recipe(settings)
    tasks = make_tasks(settings)
    with Ledger(Layout(settings.home), recipe.id, settings.extract) as ledger:
        ledger.refresh()
        known = Known(recipe, ledger, tasks)
        first = {item.request.key for item in known.first()}
        second = sum(known.text(task) is None for task in tasks) + len({item.request.key for item in known.second()})
        rate = measure(ledger).rate
    waiting = len(first) + second
    rows = [known.row(task) for task in tasks]
    open_rows = sum(row["status"] != "ok" for row in rows)
    return SummaryPlan(recipe.id, open_rows, waiting, waiting / rate if rate and waiting else None)


def make_summaries(
    settings: Settings,
    *,
    ask: bool,
    report: Reporter = no_report,
    opened: Callable[[], ModelClient] | None = None,
) -> SummariesResult:
    """Store the summaries that there are, after asking for those that are lacking, if `ask` says so.

    What is answered is in the ledger, flushed as that of extraction is: a run that was killed goes on from there, and
    what a community's triples were answered before is never asked again, whatever it is called and wherever it lies.

    Raises:
        CgragError: the communities are not those of the current graph; there is something to ask, and no server that
            can be asked, or it went away: what was answered until then is in the table.
    """
    layout, recipe = Layout(settings.home), summary_recipe(settings)
    record, _ = current_tables(settings)
    tasks = make_tasks(settings)
    asked, problem = 0, None
    with ExitStack() as leases, Ledger(layout, recipe.id, settings.extract, deep=ask) as ledger:
        ledger.refresh()
        known = Known(recipe, ledger, tasks)
        client = opened or (lambda: connect(settings, recipe, leases, report))
        if ask:
            write_json(ledger.folder / "recipe.json", asdict(recipe))
        for name, items in (("parts", known.first), ("communities", known.second)) if ask else ():
            found = items()
            if not found or problem:
                continue
            progress = report("Asking the model", f"requests about {name}")
            with Extraction(recipe, ledger, client, [Work(name, found)], progress, len(found)) as extraction:
                extraction.start()
                problem = extraction.wait_for(name)
            asked += extraction.asked
            ledger.flush()
            known.refresh()
        rows = [known.row(task) for task in tasks]
        manifest = summaries_inputs(settings, record["generation"]) | {"answers": ledger.answered}
        write_table(summaries_file(layout), rows, SUMMARIES, manifest)
        if ask:
            ledger.compact()
        notes = [f"{moved}; it was set aside, its rows are asked again" for moved in ledger.set_aside]
        tokens = [row for row in known.rows.values() if row["status"] == "ok"]
    if problem:
        raise problem
    return SummariesResult(
        digest(rows),
        rows,
        asked,
        sum(row["prompt_tokens"] for row in tokens),
        sum(row["completion_tokens"] for row in tokens),
        notes,
    )


def stored_counts(settings: Settings) -> dict[str, int]:
    """Return how many communities are to be summarised, and how many are, failed or wait; zeros where no table is."""
    import pyarrow.parquet as pq

    file = summaries_file(Layout(settings.home))
    statuses = pq.read_table(file, columns=["status"])["status"].to_pylist() if read_manifest(file) else []
    return {"communities": len(statuses), **{name: statuses.count(name) for name in ("ok", "failed", "pending")}}


def summaries_problem(settings: Settings) -> CgragError | None:
    """Return the error that tells which communities have no summary because their requests failed, if there are any."""
    rows = read_table(summaries_file(Layout(settings.home)), SUMMARIES, f"Build it:  {REMEDY}").to_pylist()
    failed = [row for row in rows if row["status"] == "failed"]
    if not failed:
        return None
    told = "; ".join(f"{row['community'][:8]} ({row['problem']}: {row['detail'][:80]})" for row in failed[:5])
    return CgragError(f"{len(failed)} of {len(rows)} communities have no summary: {told}", f"Ask again:  {REMEDY}")
