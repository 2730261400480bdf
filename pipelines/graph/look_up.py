"""Opening the current graph to be asked."""

from collections.abc import Iterable
from typing import Any, Literal

from pipelines.graph.admission import admitted, confidence
from pipelines.graph.store import graph_record, open_current
from pipelines.graph.traversal import Edge, Traversal
from pipelines.graph.walk import Walk
from pipelines.layout import Layout
from pipelines.settings import Settings

Store = Literal["duckdb", "neo4j"]


def admitted_origins(settings: Settings) -> tuple[str, ...]:
    """Return the origins whose edges searches and answers follow, as the current graph's manifest has it."""
    return admitted(graph_record(Layout(settings.home)))


def followed_edges(settings: Settings) -> list[tuple[str, str, str, int]]:
    """Return (source, relation, target, weight) of all edges that searches and answers follow, in no order.

    Raises:
        CgragError: there is no graph.
    """
    with open_current(Layout(settings.home)) as graph:
        query = "SELECT source, relation, target, weight FROM edges WHERE list_has_any(origins, $1)"
        return graph.execute(query, [list(admitted_origins(settings))]).fetchall()


def open_graph(
    settings: Settings, origins: Iterable[str] | None = None, store: Store = "duckdb"
) -> Traversal[Any, Any]:
    """Return the current graph, seen through the edges of some origins (all, where None).

    Raises:
        CgragError: there is none in that store, or not this one.
    """
    layout = Layout(settings.home)
    graph: Traversal[Any, Any]
    if store == "neo4j":
        from pipelines.neo4j_store.walk import open_neo4j

        graph = open_neo4j(settings, origins)
    else:
        graph = Walk(open_current(layout), origins)
    graph.merged = (graph_record(layout) or {}).get("merged", {})
    return graph


def edge_row(edge: Edge, places: list[dict[str, Any]], record: dict[str, Any] | None) -> dict[str, Any]:
    """Return an edge as scripts read it, with its places and the measured precision of its kind.

    `record` is the manifest of the graph.
    """
    return {
        "source": edge.source,
        "relation": edge.relation,
        "target": edge.target,
        "origin": edge.origin,
        "binding": edge.binding,
        "confidence": confidence(record, edge.origin, edge.relation),
        "weight": edge.weight,
        "distance": edge.distance,
        "evidence": places,
    }
