"""What has changed since the last run, found without changing anything: for those who decide what to run."""

from dataclasses import dataclass

from pipelines.corpus.fetch import fetch
from pipelines.corpus.scan import Plan, Scan, is_scanned, load_plan, plan_of, scan
from pipelines.corpus.spec import recorded_spec
from pipelines.errors import CgragError
from pipelines.extract.ledger import Ledger
from pipelines.extract.overview import overview
from pipelines.extract.recipe import active_recipe
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.state import chunk_fingerprints, chunks_todo, facts_todo
from pipelines.tables import digest


@dataclass(frozen=True)
class CorpusChange:
    """How a corpus differs from what its home has of it; partition keys of the new plan but for `removed`, sorted."""

    files: str
    """The fingerprint of all files, and of what is left out."""
    removed: list[str]
    changed: list[str]
    """Those whose stored chunks are not of these files, new ones among them."""
    waiting: list[str]
    """Those whose chunks are, but not their facts or extractions, as after a run that was cut off."""
    unanswered: list[str]
    """Those with chunks that the model has not been asked about, or in vain; no reason for a run by itself."""
    note: str = ""
    """What people should know, such as that a remote was not reached."""

    def __bool__(self) -> bool:
        return bool(self.files or self.removed or self.changed or self.waiting)

    @property
    def fingerprint(self) -> str:
        return digest(self.files, self.removed, self.changed, self.waiting)


def check_there(layout: Layout, found: Scan, settings: Settings) -> None:
    """Refuse a scan that lacks what may only be out of reach: what was asked for by itself deletes nothing of that.

    Raises:
        CgragError: the corpus is empty and was not, or a part of it cannot be read.
    """
    before = load_plan(layout) if layout.plan.exists() else Plan({})
    if before.partitions and not plan_of(found, settings).partitions:
        raise CgragError(
            f"{found.name} is empty, and was not.", "If that is meant, empty the tables by hand:  cgrag run"
        )
    unreadable = [row for row in found.skipped if row["reason"] == "unreadable"]
    held = [row["path"] for files in before.partitions.values() for row in files] if unreadable else []
    for row in unreadable:
        if any(path == row["path"] or path.startswith(f"{row['path'].rstrip('/')}/") for path in held):
            raise CgragError(
                f"{row['path']} of {found.name} cannot be read ({row['detail']}), and could be.",
                "Mend that; or go on without it, by hand:  cgrag run",
            )


def corpus_change(settings: Settings) -> CorpusChange:
    """Return how the corpus differs from what the home has of it; false where it does not.

    Raises:
        CgragError: there is no corpus yet, it cannot be read, or is empty where it was not: nobody's run should take
            a folder that is not mounted for one that was emptied.
    """
    layout = Layout(settings.home)
    spec = recorded_spec(layout)
    if spec is None or not layout.plan.exists():
        raise CgragError(f"{settings.home} holds no corpus yet.", "Begin by hand:  cgrag run --corpus SPEC")
    found = scan(fetch(spec, settings), settings)
    check_there(layout, found, settings)
    before, plan = load_plan(layout), plan_of(found, settings)
    changed = chunks_todo(layout, settings, plan, plan)
    current = chunk_fingerprints(layout, set(plan) - set(changed))
    recipe = active_recipe(settings)
    with Ledger(layout, recipe.id, settings.extract) as ledger:
        extracted = {
            key: one
            for key, one in overview(layout, plan, settings, recipe, ledger, exact=False).items()
            if key in current
        }
    stale = {key for key, one in extracted.items() if not one.current}
    return CorpusChange(
        "" if is_scanned(layout, found, settings) else found.fingerprint,
        sorted(set(before) - set(plan)),
        sorted(changed),
        sorted(stale | set(facts_todo(layout, current))),
        sorted(key for key, one in extracted.items() if one.open),
        found.note,
    )
