"""constrained-graphrag: a source tree as a searchable, schema-constrained knowledge graph.

>>> from cgrag import Corpus
>>> for result in Corpus().search("how is a LoRA adapter loaded", k=3):     # doctest: +SKIP
...     print(f"{result.path}:{result.start_line}", result.part.name)
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pipelines.graph.look_up import Store
    from pipelines.lexical.index import LexicalIndex
    from pipelines.retrieve.graph_search import GraphSearch
    from pipelines.retrieve.search import Result

__version__ = "0.1.0"
__all__ = ["Corpus"]


class Corpus:
    """A home that `cgrag run` has filled; opens its index once, and again when it has been rebuilt.

    Args:
        home: the folder, if not the one that CGRAG_HOME or cgrag.toml names.
    """

    def __init__(self, home: Path | str | None = None) -> None:
        from pipelines.settings import load_settings

        self.settings = load_settings()
        if home is not None:
            self.settings = self.settings.model_copy(update={"home": Path(home).absolute()})
        self._index: LexicalIndex | None = None
        self._graph: tuple[tuple[str, str, str], GraphSearch] | None = None

    @property
    def index(self) -> LexicalIndex:
        """The current index. Raises CgragError where there is none, or none of these settings."""
        from pipelines.lexical.index import current_generation, load_index

        if self._index is None or self._index.generation != current_generation(self.settings):
            self._index = load_index(self.settings)
        return self._index

    def search(self, question: str, k: int = 5, *, graph: bool = False, store: Store = "duckdb") -> list[Result]:
        """Return at most `k` chunks, best first; with `graph` a structural question is answered by the graph, too.

        The graph is asked in `store`, with the same results. See `pipelines.retrieve.search.search` and
        `pipelines.retrieve.graph_search.GraphSearch`.
        """
        from pipelines.graph.traversal import Changed
        from pipelines.retrieve.search import search

        if not graph:
            return search(self.index, question, k)
        try:
            return self._graph_search(store).search(question, k)
        except Changed:  # Neo4j was loaded anew
            self._graph = None
            return self._graph_search(store).search(question, k)

    def _graph_search(self, store: Store) -> GraphSearch:
        from pipelines.graph.store import graph_record
        from pipelines.layout import Layout
        from pipelines.retrieve.graph_search import GraphSearch

        record = graph_record(Layout(self.settings.home))
        current = (self.index.generation, record["generation"] if record else "", store)
        if self._graph is None or self._graph[0] != current:
            self._graph = (current, GraphSearch(self.index, self.settings, store=store))
        return self._graph[1]
