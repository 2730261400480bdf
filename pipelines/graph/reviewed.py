"""The reviewed file: which names a person has said to be one, and which not.

JSON lines, sorted by pair, one decision a line, so that the file can be kept and compared in a git repository:

    {"a": "name:gpu", "b": "name:gpus", "verdict": "accepted", "into": "name:gpu"}
    {"a": "name:http", "b": "name:https", "verdict": "rejected"}

A decision outlives its names: one that the corpus has no longer is kept, and counts again when it is back.
"""

import graphlib
import json
from collections.abc import Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator

from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.tables import atomic, digest

_NAME = "name:"


class Decision(BaseModel):
    """What a person said of two entities, given by their ids, a before b.

    >>> Decision(a="name:gpu", b="name:gpus", verdict="accepted", into="name:gpu").pair
    ('name:gpu', 'name:gpus')
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    a: str
    b: str
    verdict: Literal["accepted", "rejected"]
    into: str = ""
    """Of an accepted pair: the one that stays."""

    @property
    def pair(self) -> tuple[str, str]:
        return self.a, self.b

    @model_validator(mode="after")
    def _is_possible(self) -> "Decision":
        if not self.a < self.b:
            raise ValueError("a and b are two different ids, in their order")
        if self.verdict == "rejected" and self.into:
            raise ValueError("a rejected pair goes into neither")
        if self.verdict == "accepted":
            if self.into not in self.pair:
                raise ValueError("into is neither a nor b")
            if not is_bare(self.a) and not is_bare(self.b):
                raise ValueError("both are symbols, pages or headings, which are never one")
            if is_bare(self.into) and not all(map(is_bare, self.pair)):
                raise ValueError("a symbol, page or heading does not go into a bare name")
        return self


def is_bare(id: str) -> bool:
    """Whether an entity is a name and nothing else, by its id.

    >>> is_bare("name:gpu"), is_bare("vllm/utils.py::GPU")
    (True, False)
    """
    return id.startswith(_NAME)


@dataclass(frozen=True)
class Merges:
    """Which entities are one; each group is in the order in which they go into each other, the one that stays last."""

    groups: Sequence[tuple[str, ...]]

    @property
    def fingerprint(self) -> str:
        """What a graph's manifest has of the merges; rejected pairs change no graph."""
        return digest(sorted(self.groups))

    def members(self) -> Iterator[str]:
        """Every id that is in a group."""
        return (id for group in self.groups for id in group)

    def onto(self, present: Container[str]) -> dict[str, str]:
        """Return {id: the id that it becomes} for entities that are there; what is not there takes no part.

        >>> Merges([("name:gpus", "name:gpu")]).onto({"name:gpus", "name:gpu"})
        {'name:gpus': 'name:gpu'}
        """
        there = ([id for id in group if id in present] for group in self.groups)
        return {id: group[-1] for group in there for id in group[:-1]}


def merges_of(decisions: Sequence[Decision], path: Path) -> Merges:
    """Return what follows from the accepted pairs, all together; `path` is the file to name where they contradict.

    A group has at most one symbol, page or heading, which stays; else what others go into stays, and of several such
    the last in the order of ids.

    Raises:
        CgragError: names go round in a circle, two different symbols would be one, or a pair that was rejected.
    """
    into: dict[str, set[str]] = {}
    for decision in decisions:
        if decision.verdict == "accepted":
            goes = decision.a if decision.into == decision.b else decision.b
            into.setdefault(goes, set()).add(decision.into)
            into.setdefault(decision.into, set())
    order = graphlib.TopologicalSorter[str]()
    for id in sorted(into):
        order.add(id)
    for id, targets in sorted(into.items()):
        for target in sorted(targets):
            order.add(target, id)
    try:
        ranks = {id: rank for rank, id in enumerate(order.static_order())}
    except graphlib.CycleError as error:
        circle = " -> ".join(error.args[1])
        raise CgragError(f"{path} has names that go into each other in a circle: {circle}.", _MEND) from error
    groups = [
        sorted(group, key=lambda id: (not is_bare(id), not into[id], ranks[id] if into[id] else 0, id))
        for group in _united(into)
    ]
    for group in groups:
        symbols = [id for id in group if not is_bare(id)]
        if len(symbols) > 1:
            raise CgragError(
                f"{path} makes two different symbols one, through {group[0]}: {symbols[0]} and {symbols[1]}.", _MEND
            )
    group_of = {id: group for group in groups for id in group}
    for one in decisions:
        if one.verdict == "rejected" and one.a in group_of and group_of[one.a] is group_of.get(one.b):
            chain = ", ".join(group_of[one.a])
            raise CgragError(f"{path} rejects {one.a} and {one.b}, and accepts them through others: {chain}.", _MEND)
    return Merges(sorted(map(tuple, groups)))


_MEND = "Take one of these pairs out:  cgrag entities reject A B      (or delete its line)"


def _united(into: dict[str, set[str]]) -> list[set[str]]:
    """The connected parts, whichever way the pairs lead."""
    part = {name: {name} for name in into}
    for name, targets in into.items():
        for target in targets:
            both = part[name] | part[target]
            part |= dict.fromkeys(both, both)
    return list({min(group): group for group in part.values()}.values())


def reviewed_file(settings: Settings) -> Path:
    """Return where the decisions are: in the home, unless a setting says where."""
    return settings.reviewed or Layout(settings.home).reviewed


def read_decisions(path: Path) -> list[Decision]:
    """Return the decisions of a file, by pair; none where there is no file.

    Raises:
        CgragError: a line is no decision, or two are of one pair.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return []
    except (OSError, UnicodeDecodeError) as error:
        raise CgragError(f"{path} cannot be read: {error}", "Mend it, or set CGRAG_REVIEWED.") from error
    found: dict[tuple[str, str], Decision] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            decision = Decision.model_validate_json(line)
        except ValidationError as error:
            said = error.errors()[0]["msg"].removeprefix("Value error, ")
            raise CgragError(f"{path}:{number} is no decision about two names: {said}", "Mend that line.") from error
        if decision.pair in found:
            raise CgragError(
                f"{path}:{number} is about a pair that an earlier line is about: {decision.a} and {decision.b}.",
                "Delete one of the two lines.",
            )
        found[decision.pair] = decision
    return [found[pair] for pair in sorted(found)]


def write_decisions(path: Path, decisions: Iterable[Decision]) -> None:
    """Write decisions, sorted, in place of those of a file, or not at all."""
    rows = [decision.model_dump(exclude_defaults=True) for decision in sorted(decisions, key=lambda one: one.pair)]
    with atomic(path) as temporary:
        temporary.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")


def current_merges(settings: Settings) -> Merges:
    """Return what the reviewed file of the settings says.

    Raises:
        CgragError: the file cannot be read, or contradicts itself.
    """
    path = reviewed_file(settings)
    return merges_of(read_decisions(path), path)
