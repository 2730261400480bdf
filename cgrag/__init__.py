"""constrained-graphrag: a source tree as a searchable, schema-constrained knowledge graph.

>>> from cgrag import Corpus
>>> corpus = Corpus()
>>> for result in corpus.search("how is a LoRA adapter loaded", k=3):     # doctest: +SKIP
...     print(f"{result.path}:{result.start_line}", result.part.name)
>>> corpus.table("edges").to_pandas()["relation"].value_counts()          # doctest: +SKIP
>>> corpus.evaluate("questions.json", modes=["lexical", "hybrid"]).rows   # doctest: +SKIP
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from pipelines.answer.answer import Answer
    from pipelines.answer.answerer import AnswerMode
    from pipelines.evaluate.evaluation import Evaluation
    from pipelines.graph.look_up import Store
    from pipelines.graph.traversal import Traversal
    from pipelines.lexical.index import LexicalIndex
    from pipelines.retrieve.graph_search import GraphSearch
    from pipelines.retrieve.search import Mode, Ranker, Result

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
            self.settings = self.settings.model_copy(update={"home": Path(home).expanduser().absolute()})
        self._index: LexicalIndex | None = None
        self._rankers: dict[Mode, Ranker] = {}
        self._graph: tuple[tuple[str, str, str, Mode], GraphSearch] | None = None

    @property
    def index(self) -> LexicalIndex:
        """The current index. Raises CgragError where there is none, or none of these settings."""
        from pipelines.lexical.index import is_current, load_index

        if self._index is None or not is_current(self._index, self.settings):
            self._index = load_index(self.settings)
        return self._index

    def search(
        self, question: str, k: int = 5, *, mode: Mode = "lexical", graph: bool = False, store: Store = "duckdb"
    ) -> list[Result]:
        """Return at most `k` chunks, best first; with `graph` a structural question is answered by the graph, too.

        `mode` is how they are ranked: lexical, dense or hybrid; the last two need `make dense`, and load its model at
        the first question. The graph is asked in `store`, with the same results.

        >>> Corpus().search("how is a LoRA adapter loaded", k=3, mode="hybrid")[0].path    # doctest: +SKIP
        'vllm/lora/worker_manager.py'

        Raises:
            CgragError: the question is blank, k is below 1, or something that is needed is not built.
        """
        from pipelines.graph.traversal import Changed
        from pipelines.retrieve.search import search

        if not graph:
            return search(self._ranker(mode), question, k)
        try:
            return self._graph_search(mode, store).search(question, k)
        except Changed:  # Neo4j was loaded anew
            self._graph = None
            return self._graph_search(mode, store).search(question, k)

    def answer(self, question: str, k: int = 5, *, mode: AnswerMode = "auto", model: bool = True) -> Answer:
        """Return what is said to a question, with its sources; without `model` only what needs none.

        >>> Corpus().answer("Who calls make_zmq_socket?").text                # doctest: +SKIP

        Raises:
            CgragError: the question is blank, or there is no index.
        """
        from pipelines.answer.answerer import Answerer

        with Answerer(self.settings, k, mode) as answerer:
            return answerer.answer(question, ask=model)

    def graph(self, *, all_origins: bool = False, store: Store = "duckdb") -> Traversal[Any, Any]:
        """Return the current graph, to be asked by `find`, `near`, `edges`, `paths`, `chunks` and `evidence`.

        `all_origins` shows also what rules, co-occurrence or a model say that is not admitted, and that no search uses.

        >>> graph = Corpus().graph()                                          # doctest: +SKIP
        >>> graph.edges([found.id for found in graph.find("LoRARequest")], ["CALLS"], "in")    # doctest: +SKIP

        Raises:
            CgragError: there is no graph in that store, or not this one.
        """
        from pipelines.graph.look_up import admitted_origins, open_graph

        return open_graph(self.settings, None if all_origins else admitted_origins(self.settings), store)

    def table(self, name: str) -> pa.Table:
        """Return all rows of a table: files, skipped, documents, outline, units, chunks, extractions, entities, edges
        or mentions.

        Raises:
            CgragError: there is no such table, or it is not built.
        """
        from pipelines.layout import Layout
        from pipelines.stored import stored_table

        return stored_table(Layout(self.settings.home), name)

    def evaluate(
        self,
        questions: Path | str,
        *,
        modes: Sequence[str] = (),
        arms: Sequence[str] = (),
        ks: Sequence[int] = (3, 5, 10),
        min_coverage: float = 0.5,
    ) -> Evaluation:
        """Return what `cgrag evaluate` prints of a question file: `rows`, `misses`, and each question's recall.

        Raises:
            CgragError: a mode or arm is not built, or the file cannot be used.
        """
        from pipelines.evaluate.evaluation import evaluate_file

        return evaluate_file(self.settings, Path(questions), modes=modes, arms=arms, ks=ks, min_coverage=min_coverage)

    def _ranker(self, mode: Mode) -> Ranker:
        from pipelines.retrieve.rankers import open_ranker

        current = self._rankers.get(mode)
        if current is None or current.index is not self.index:
            self._rankers[mode] = open_ranker(mode, self.index, self.settings)
        return self._rankers[mode]

    def _graph_search(self, mode: Mode, store: Store) -> GraphSearch:
        from pipelines.graph.admission import admitted
        from pipelines.graph.store import graph_record
        from pipelines.layout import Layout
        from pipelines.retrieve.graph_search import GraphSearch
        from pipelines.tables import digest

        record = graph_record(Layout(self.settings.home))
        ranker = self._ranker(mode)
        current = (self.index.generation, digest(record), store, mode)
        if self._graph is None or self._graph[0] != current:
            self._graph = (current, GraphSearch(self.index, self.settings, admitted(record), store, ranker))
        return self._graph[1]
