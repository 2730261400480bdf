"""Opening the current graph to be asked."""

from collections.abc import Iterable

from pipelines.errors import CgragError
from pipelines.graph.store import graph_record, open_store
from pipelines.graph.walk import Walk
from pipelines.layout import Layout
from pipelines.settings import Settings


def open_graph(settings: Settings, origins: Iterable[str] | None = None) -> Walk:
    """Return the current graph, seen through the edges of some origins (all, where None).

    Raises:
        CgragError: there is none.
    """
    layout = Layout(settings.home)
    if graph_record(layout) is None:
        raise CgragError(f"{settings.home} has no knowledge graph yet.", "Build it:  cgrag run")
    return Walk(open_store(layout.graph_store), origins)
