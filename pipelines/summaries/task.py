"""What is to be summarised: the largest communities, each with the parts of its strongest triples."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from pipelines.communities.stage import current_tables
from pipelines.graph.admission import admitted
from pipelines.graph.store import graph_record, open_current
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.summaries.said import written
from pipelines.summaries.triples import Triple, strongest

PART = 30
"""Triples of one request."""


@dataclass(frozen=True)
class Task:
    """A community to be summarised."""

    community: str
    triples: list[list[Triple]]
    """By part."""
    parts: list[str]
    """The written facts of each."""


def make_tasks(settings: Settings) -> list[Task]:
    """Return the largest communities of the upper levels that have anything to tell, the largest first.

    Raises:
        CgragError: the communities are not built, or not of the current graph.
    """
    layout, wanted = Layout(settings.home), settings.summaries
    _, tables = current_tables(settings)
    chosen = [row for row in tables["communities"].to_pylist() if row["level"] < wanted.levels]
    chosen = sorted(chosen, key=lambda row: (-row["size"], row["level"], row["id"]))[: wanted.most]
    community_of: dict[int, dict[str, str]] = defaultdict(dict)
    ids = {row["id"] for row in chosen}
    for row in tables["memberships"].to_pylist():
        if row["community"] in ids:
            community_of[row["level"]][row["entity"]] = row["community"]
    with open_current(layout) as graph:
        entities = {row["id"]: row for row in _rows(graph, "SELECT id, name, path, start_line FROM entities")}
        edges = _rows(graph, "SELECT source, relation, target, origin, weight, evidence FROM edges")
    origins = admitted(graph_record(layout))
    inside: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for edge in edges:
        if edge["origin"] in origins:
            for of in community_of.values():
                if (community := of.get(edge["source"])) and community == of.get(edge["target"]):
                    inside[community].append(edge)
    tasks = []
    for row in chosen:
        found = strongest(inside[row["id"]], entities, wanted.triples)
        parts = [found[at : at + PART] for at in range(0, len(found), PART)]
        if parts:
            texts = [written(triple.fact for triple in part) for part in parts]
            tasks.append(Task(row["id"], parts, texts))
    return tasks


def _rows(graph: Any, query: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = graph.sql(query).to_arrow_table().to_pylist()
    return rows
