"""The community_summaries stage: requests about the strongest triples, answers out of the ledger, one table."""

from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from typing import Any

from pipelines.communities.stage import current_tables
from pipelines.extract.client import ModelClient, connect
from pipelines.extract.ledger import Ledger
from pipelines.extract.partition import Work
from pipelines.extract.run import Extraction
from pipelines.extract.stats import measure
from pipelines.layout import Layout
from pipelines.progress import Reporter, no_report
from pipelines.settings import Settings
from pipelines.summaries.known import Known
from pipelines.summaries.recipe import summary_recipe
from pipelines.summaries.stored import summaries_inputs
from pipelines.summaries.tables import SUMMARIES, summaries_file
from pipelines.summaries.task import make_tasks
from pipelines.tables import digest, write_json, write_table


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
