"""What answers are made from, opened with the first question that needs it, and again when it has been built anew."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from pipelines.answer.sources import Source
from pipelines.corpus.spec import recorded_spec
from pipelines.dense.encoder import model_of
from pipelines.dense.place import place_of
from pipelines.extract.taxonomy import load_taxonomy
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.tables import digest, read_record

if TYPE_CHECKING:
    from pipelines.communities.stored import Communities
    from pipelines.lexical.index import LexicalIndex
    from pipelines.retrieve.graph_search import GraphSearch
    from pipelines.retrieve.search import Mode, Ranker, Result, Scored


class Opened:
    """The index, the graph and the best ranker of a home; nothing heavy is imported before it is used."""

    def __init__(self, settings: Settings, with_communities: bool = False) -> None:
        self.settings, self.layout = settings, Layout(settings.home)
        self._with_communities = with_communities
        self.generation = generation_of(settings, with_communities)

    def refresh(self) -> None:
        """Let go of what was opened, if it has been built anew since."""
        generation = generation_of(self.settings, self._with_communities)
        if generation != self.generation:
            self.generation = generation
            for opened in ("index", "ranker", "graph", "communities", "places", "edges"):
                self.__dict__.pop(opened, None)

    @cached_property
    def index(self) -> "LexicalIndex":
        from pipelines.lexical.index import load_index

        return load_index(self.settings)

    @cached_property
    def ranker(self) -> "Ranker":
        return _Late(self.index, self.settings)

    @cached_property
    def graph(self) -> "GraphSearch | None":
        """None where there is none of the indexed chunks."""
        from pipelines.graph.look_up import admitted_origins
        from pipelines.retrieve.graph_search import GraphSearch

        if self.no_graph:
            return None
        return GraphSearch(self.index, self.settings, admitted_origins(self.settings), ranker=self.ranker)

    @cached_property
    def communities(self) -> "Communities":
        """Raises CgragError where there are none of the current graph."""
        from pipelines.communities.stored import load_communities

        return load_communities(self.settings)

    @property
    def has_summaries(self) -> bool:
        """Whether a community has a summary."""
        from pipelines.summaries.stored import stored_counts

        return stored_counts(self.settings)["ok"] > 0

    @cached_property
    def places(self) -> dict[str, tuple[str, int]]:
        """{entity: (path, line)} of those that have a place."""
        from pipelines.stored import stored_table

        entities = stored_table(self.layout, "entities").select(["id", "path", "start_line"]).to_pylist()
        return {row["id"]: (row["path"], row["start_line"]) for row in entities if row["path"]}

    @cached_property
    def edges(self) -> list[tuple[str, str, str, int]]:
        """Source, relation, target and weight of all that searches follow."""
        from pipelines.graph.look_up import followed_edges

        return followed_edges(self.settings)

    @cached_property
    def type_names(self) -> tuple[str, ...]:
        """The types of the corpus's taxonomy."""
        return load_taxonomy(self.settings.extract.taxonomy).type_names

    @property
    def no_graph(self) -> str:
        """Why the graph is not asked."""
        graph, index = read_record(self.layout.graph_record), read_record(self.layout.bm25)
        if graph is None:
            return "there is no knowledge graph"
        return "" if index and graph.get("chunks") == index.get("chunks") else "the graph is of other chunks"

    def results(self, text: str, k: int, with_graph: bool) -> "list[Result]":
        """Return the best chunks for a text."""
        from pipelines.retrieve.search import search

        graph = self.graph if with_graph else None
        return graph.search(text, k) if graph else search(self.ranker, text, k)

    def is_known(self, name: str) -> bool:
        """Whether the graph has something of this name."""
        return self.graph is not None and bool(self.graph.graph.find(name))

    @cached_property
    def own_words(self) -> list[str]:
        """Words of the corpus's name."""
        spec = recorded_spec(self.layout)
        return re.findall(r"[a-z]+", spec.name.lower()) if spec else []

    def gone(self, sources: Sequence[Source]) -> list[str]:
        """Return the files of sources that are no longer there, where the corpus is a folder."""
        spec = recorded_spec(self.layout)
        if spec is None or spec.kind != "folder":
            return []
        paths = dict.fromkeys(source.path for source in sources)
        return [path for path in paths if not (Path(spec.location) / path).is_file()]


@dataclass(frozen=True)
class _Late:
    """The best ranker built, opened with the first question that is ranked: the graph's answers need none."""

    index: "LexicalIndex"
    settings: Settings

    @cached_property
    def _ranker(self) -> "Ranker":
        from pipelines.dense.index import can_ask_vectors
        from pipelines.retrieve.rankers import open_ranker

        return open_ranker("hybrid" if can_ask_vectors(self.settings) else "lexical", self.index, self.settings)

    @property
    def mode(self) -> "Mode":
        return self._ranker.mode

    def score(self, questions: Sequence[str]) -> "Iterator[Scored]":
        return self._ranker.score(questions)


def generation_of(settings: Settings, with_communities: bool = False) -> str:
    """Return a hash that changes with the search index, the graph and the vectors, whichever there are.

    With communities, it changes with these and their summaries, too.
    """
    layout = Layout(settings.home)
    index = read_record(layout.bm25) or {}
    graph = read_record(layout.graph_record) or {}
    vectors = place_of(layout, model_of(settings)).record() or {}
    found = [index.get("generation"), index.get("chunks"), graph, vectors.get("generation")]
    if with_communities:
        from pipelines.summaries.tables import summaries_file

        file = summaries_file(layout)
        found += [read_record(layout.communities_record), file.read_bytes().hex() if file.exists() else ""]
    return digest(*found)
