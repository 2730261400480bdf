"""Which origins' edges searches and answers follow: those that have earned it, by their measured precision.

What a parser or a link says is followed. What rules, co-occurrence or a model say is followed when its edges on docs
annotated by hand were right often enough, and more often than co-occurrence is about the same names. The measure is one
of the recipe, wherever it was made: that of the rules comes with the product, that of a model is written into the home
by `cgrag evaluate-extraction`.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.layout import Layout
from pipelines.rules import VERSION as RULES_VERSION
from pipelines.settings import Settings
from pipelines.tables import digest, read_record, write_json

KNOWN = ("parse", "link")
"""Origins that need no admission."""
MEASURED = ("rule", "cooccurrence", "llm")
"""Origins that do. The first two are recipes of their own, in a version of the rules."""
LEAST_PRECISION = 0.70
VERSION = 1
"""Raise it when precision is measured in another way."""
EVIDENCE = Path(__file__).with_name("evidence")
"""What was measured of the rules, as it comes with the product."""
_KINDS = {"rule": "rule", "extraction": "llm"}
"""Kinds of mentions that an origin brings."""


class Precision(BaseModel):
    """The share of edges that are right, with the ends of its 95 % interval (resampled by chunk)."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    right: int
    found: int
    value: float
    low: float
    high: float

    @property
    def text(self) -> str:
        """As a table shows it.

        >>> Precision(right=3, found=4, value=0.75, low=0.2, high=1).text
        '.75 [.20, 1.0] of 4'
        """
        shown = [
            f"{number:.2f}".lstrip("0") if number < 0.995 else "1.0" for number in (self.value, self.low, self.high)
        ]
        return f"{shown[0]} [{shown[1]}, {shown[2]}] of {self.found}"


class Evidence(BaseModel):
    """What was measured of a recipe's edges on annotated docs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recipe: str
    """rule, cooccurrence, or the id of a model's recipe."""
    annotations: str
    """Name and fingerprint of the annotations, and the part of them that was used."""
    edges: Precision
    labels: dict[str, Precision]
    """Of each relation: the confidence of its edges."""
    cooccurrence: Precision
    """Of the pairs of the same names that stand in one sentence."""
    version: tuple[int, int] = (VERSION, RULES_VERSION)


class Verdict(BaseModel):
    """Whether an origin's edges are followed, and why; a part of the graph's manifest."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    origin: str
    recipe: str
    admitted: bool
    why: str
    override: str = ""
    """The reason that a person gave for admitting it in spite of its measure."""
    evidence: Evidence | None = None


def judge(origin: str, recipe: str, evidence: Evidence | None, override: str = "") -> Verdict:
    """Return whether a recipe is admitted.

    >>> judge("llm", "model-1", None).why
    'it has not been measured: cgrag evaluate-extraction'
    """
    if evidence is None:
        holds, why = False, "it has not been measured: cgrag evaluate-extraction"
    elif evidence.edges.value < LEAST_PRECISION:
        holds, why = False, f"precision {evidence.edges.text}, below {LEAST_PRECISION:.2f}"
    elif origin != "cooccurrence" and evidence.edges.value <= evidence.cooccurrence.value:
        holds, why = (
            False,
            f"precision {evidence.edges.text}, no better than co-occurrence ({evidence.cooccurrence.text})",
        )
    else:
        holds, why = True, f"precision {evidence.edges.text}"
    if override and not holds:
        why = f"{why}; admitted all the same: {override}"
    return Verdict(
        origin=origin, recipe=recipe, admitted=holds or bool(override), why=why, override=override, evidence=evidence
    )


def verdicts(settings: Settings, recipe: str) -> dict[str, Verdict]:
    """Return {origin: verdict} of the rules, of co-occurrence, and of a model's recipe (its id)."""
    layout = Layout(settings.home)
    found = {}
    for origin in MEASURED:
        name = recipe if origin == "llm" else origin
        file = layout.evidence(name) if origin == "llm" else EVIDENCE / f"{name}.json"
        found[origin] = judge(origin, name, read_evidence(file, name), settings.admit.get(name, ""))
    return found


def read_evidence(file: Path, recipe: str) -> Evidence | None:
    """Return what was measured of a recipe; None where nothing was, or in another way than now."""
    try:
        evidence = Evidence.model_validate(read_record(file) or {})
    except ValidationError:
        return None
    of_rules = recipe in ("rule", "cooccurrence")
    current = (VERSION, RULES_VERSION) if of_rules else (VERSION, evidence.version[1])
    return evidence if evidence.recipe == recipe and evidence.version == current else None


def write_evidence(file: Path, evidence: Evidence) -> None:
    """Store what was measured of a recipe."""
    write_json(file, evidence.model_dump(mode="json"))


def admission_inputs(found: Mapping[str, Verdict]) -> str:
    """What a graph's manifest has of the verdicts, as a fingerprint."""
    return digest({origin: verdict.model_dump(mode="json") for origin, verdict in found.items()})


def admitted(record: Mapping[str, Any] | None) -> tuple[str, ...]:
    """Return the origins that a search follows in the graph of this manifest.

    >>> admitted({"admission": {"rule": {"admitted": True}, "llm": {"admitted": False}}})
    ('parse', 'link', 'rule')
    """
    said = (record or {}).get("admission", {})
    return (*KNOWN, *(origin for origin in MEASURED if said.get(origin, {}).get("admitted")))


def confidence(record: Mapping[str, Any] | None, origin: str, relation: str) -> float | None:
    """Return the measured precision of an edge's origin and relation, None where none was measured."""
    evidence = (record or {}).get("admission", {}).get(origin, {}).get("evidence") or {}
    measured = evidence.get("labels", {}).get(relation)
    return round(float(measured["value"]), 3) if measured else None


def hidden_kinds(origins: Iterable[str] | None) -> list[str]:
    """Return the kinds of mentions that are not seen through some origins (all of these, where None).

    >>> hidden_kinds(("parse", "link", "rule")), hidden_kinds(None)
    (['extraction'], [])
    """
    if origins is None:
        return []
    seen = set(origins)
    return [kind for kind, origin in _KINDS.items() if origin not in seen]
