"""Two evaluations of the same questions: what became worse, by more than chance explains."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pipelines.evaluate.bootstrap import intervals


@dataclass(frozen=True)
class Change:
    """Mean change of recall over the questions that both have, with the ends of its 95 % interval."""

    name: str
    questions: int
    change: float
    low: float
    high: float

    @property
    def is_fall(self) -> bool:
        """Whether the whole interval lies below zero."""
        return self.high < 0


def changes(now: Mapping[str, Any], before: Mapping[str, Any]) -> list[Change]:
    """Return the change of every question set, mode, arm and k that two reports (`report.json`) have in common.

    Only questions with the same id and wording are compared, each with itself.
    """
    found = []
    for name, recalls in sorted(now["recalls"].items()):
        then = before.get("recalls", {}).get(name, {})
        common = sorted(set(recalls) & set(then))
        if common:
            differences = np.array([[recalls[key] - then[key]] for key in common])
            low, high = intervals(differences)
            found.append(Change(name, len(common), float(differences.mean()), float(low[0]), float(high[0])))
    return found
