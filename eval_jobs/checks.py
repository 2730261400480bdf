"""Asset checks of the eval group."""

import dagster as dg

from eval_jobs.extraction_report import extraction_report
from eval_jobs.retrieval_report import retrieval_report
from pipelines.evaluate.extraction_stored import stored_extraction_report
from pipelines.evaluate.sets import changes_of_report
from resources.workspace import Workspace


@dg.asset_check(asset=extraction_report)
def recipe_is_admitted(workspace: Workspace) -> dg.AssetCheckResult:
    """The recipe of the settings is measured, and right often enough for searches to follow its edges."""
    found = stored_extraction_report(workspace.layout()) or {"recipes": []}
    verdicts = {recipe["recipe"]: recipe["verdict"] for recipe in found["recipes"]}
    return dg.AssetCheckResult(
        passed=all(verdict["admitted"] for verdict in verdicts.values()),
        severity=dg.AssetCheckSeverity.WARN,
        metadata={name: verdict["why"] for name, verdict in verdicts.items()},
    )


@dg.asset_check(asset=retrieval_report)
def recall_has_not_fallen(workspace: Workspace) -> dg.AssetCheckResult:
    """Nothing finds less than in the last report; it is a fall when the whole paired interval lies below zero."""
    changes = changes_of_report(workspace.layout())
    falls = [change for change in changes if change.is_fall]
    told = [f"{fall.name}: {fall.change:+.3f} [{fall.low:+.3f}, {fall.high:+.3f}]" for fall in falls]
    return dg.AssetCheckResult(
        passed=not falls,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"compared": len(changes), "falls": told[:50]},
    )
