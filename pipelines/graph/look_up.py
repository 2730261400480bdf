"""Opening the current graph to be asked."""

from collections.abc import Iterable

from pipelines.graph.store import open_current
from pipelines.graph.walk import Walk
from pipelines.layout import Layout
from pipelines.settings import Settings


def open_graph(settings: Settings, origins: Iterable[str] | None = None) -> Walk:
    """Return the current graph, seen through the edges of some origins (all, where None).

    Raises:
        CgragError: there is none.
    """
    return Walk(open_current(Layout(settings.home)), origins)
