"""Accepting and rejecting: what a person says of two entities, written into the reviewed file."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from pipelines.errors import CgragError
from pipelines.graph.look_up import open_graph
from pipelines.graph.names import name_id
from pipelines.graph.reviewed import Decision, is_bare, merges_of, read_decisions, reviewed_file, write_decisions
from pipelines.graph.store import open_current
from pipelines.graph.traversal import Traversal
from pipelines.layout import Layout
from pipelines.locks import locked
from pipelines.settings import Settings


@dataclass(frozen=True)
class Decided:
    """What was written, and what the file had of the pair before."""

    decision: Decision
    before: Decision | None


def accept(settings: Settings, a: str, b: str, into: str = "") -> Decided:
    """Record that two entities are one: a symbol, page or heading stays, else `into`, else what is mentioned more.

    Each is given by its id or its name, also one that the graph has no longer, if the file has it. The next build of
    the graph merges them.

    Raises:
        CgragError: one is not known, they are one already, or the file's pairs would contradict each other.
    """
    with _opened(settings) as (graph, decisions):
        known = {id for pair in decisions for id in pair}
        first, second = (_resolved(graph, name, known) for name in (a, b))
        stays = _resolved(graph, into, known) if into else _stays(settings, first, second)
        return _record(settings, decisions, first, second, "accepted", stays)


def reject(settings: Settings, a: str, b: str) -> Decided:
    """Record that two entities are not one: they are not suggested again, and a merge of them is undone.

    Raises:
        CgragError: as `accept`.
    """
    with _opened(settings) as (graph, decisions):
        known = {id for pair in decisions for id in pair}
        first, second = (_resolved(graph, name, known) for name in (a, b))
        return _record(settings, decisions, first, second, "rejected")


Decisions = dict[tuple[str, str], Decision]


@contextmanager
def _opened(settings: Settings) -> Iterator[tuple[Traversal[Any, Any], Decisions]]:
    """The graph, and the file's decisions by pair, which nobody else changes meanwhile."""
    layout = Layout(settings.home)
    graph = open_graph(settings)
    try:
        with locked(layout.graph / "reviewed.lock"):
            yield graph, {one.pair: one for one in read_decisions(reviewed_file(settings))}
    finally:
        graph.close()


def _record(
    settings: Settings,
    decisions: Decisions,
    first: str,
    second: str,
    verdict: Literal["accepted", "rejected"],
    into: str = "",
) -> Decided:
    a, b = sorted((first, second))
    placed = [id for id in (a, b) if not is_bare(id)]
    if a == b:
        raise CgragError(f"Both names mean {a}.", "Give two entities, by name or by id:  cgrag entities suggest --json")
    if verdict == "accepted" and len(placed) == 2:
        raise CgragError(f"{a} and {b} are two different symbols, pages or headings.", "Such are never merged.")
    if into and into not in (placed or (a, b)):
        raise CgragError(f"{a} and {b} do not go into {into}.", f"Name what stays:  --into '{(placed or [a])[0]}'")
    decision = Decision(a=a, b=b, verdict=verdict, into=into)
    path = reviewed_file(settings)
    after = list((decisions | {decision.pair: decision}).values())
    merges_of(after, path)
    write_decisions(path, after)
    return Decided(decision, decisions.get(decision.pair))


def _resolved(graph: Traversal[Any, Any], name: str, known: Iterable[str]) -> str:
    """The id of an entity that is given by its id or name."""
    found = graph.find(name)
    ids = {entity.id for entity in found} | set(known)
    for id in (name, name_id(name)):
        if id in ids:
            return id
    if len(found) == 1:
        return found[0].id
    if found:
        shown = "".join(f"\n  {entity.id}" for entity in found[:8])
        raise CgragError(f"{name!r} may mean {len(found)} entities:{shown}", "Give one of their ids.")
    near = ", ".join(graph.near(name))
    raise CgragError(f"The graph has no {name!r}. Near names: {near}", "See what is alike:  cgrag entities suggest")


def _stays(settings: Settings, a: str, b: str) -> str:
    """Which of two stays where nobody says."""
    for id in (a, b):
        if not is_bare(id):
            return id
    with open_current(Layout(settings.home)) as database:
        query = "SELECT entity, count(*) FROM mentions WHERE entity IN ($1, $2) GROUP BY entity"
        times = dict(database.execute(query, [a, b]).fetchall())
    return min((a, b), key=lambda id: (-times.get(id, 0), id))
