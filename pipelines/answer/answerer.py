"""Questions become answers: from the cache, from the graph, or from a model that is shown retrieved sources.

What needs no model is told at once; a server is leased, or an endpoint asked, for the first question that does.
"""

import asyncio
import time
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from pipelines.answer.answer import Answer
from pipelines.answer.cache import AnswerCache
from pipelines.answer.conversation import MOST_TURNS, in_full, to_search
from pipelines.answer.recipe import LONGEST_QUESTION, Turn, answer_recipe
from pipelines.answer.said import NOT_IN_SOURCES, Unreadable, read
from pipelines.answer.sources import Source
from pipelines.corpus.spec import recorded_spec
from pipelines.dense.encoder import model_of
from pipelines.dense.place import place_of
from pipelines.errors import CgragError
from pipelines.layout import Layout
from pipelines.progress import Progress, Reporter, no_report, silent
from pipelines.settings import Settings
from pipelines.tables import digest, read_record

if TYPE_CHECKING:
    from pipelines.extract.client import ModelClient
    from pipelines.lexical.index import LexicalIndex
    from pipelines.retrieve.graph_search import GraphSearch
    from pipelines.retrieve.search import Mode, Ranker, Result, Scored

AnswerMode = Literal["auto", "naive"]
"""auto: the best retriever built, the router and the graph; naive: the retriever alone."""


@dataclass(frozen=True)
class Prepared:
    """A question that a model is to answer."""

    key: str
    answer: Answer
    """So far: sources and evidence."""
    asked: str
    """The question with what it refers to."""
    results: "list[Result]"
    turns: tuple[Turn, ...]


class Answerer:
    """Answers questions about the corpus of a home; use it in `with`.

    Raises:
        CgragError: the prompt cannot be used; from `answer`, where the question is blank or there is no index.
    """

    def __init__(
        self,
        settings: Settings,
        k: int = 5,
        mode: AnswerMode = "auto",
        report: Reporter = no_report,
        client: "Callable[[], ModelClient] | None" = None,
    ) -> None:
        self._settings, self._k, self._mode, self._report = settings, k, mode, report
        self._layout = Layout(settings.home)
        self._recipe = answer_recipe(settings)
        self._generation = generation_of(settings)
        self._cache = AnswerCache(self._layout.answers, self._generation)
        self._client, self._leases = client, ExitStack()
        self._urls: Sequence[str] = settings.llm_urls

    def __enter__(self) -> "Answerer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leases.close()

    def answer(self, question: str, turns: Sequence[Turn] = (), ask: bool = True) -> Answer:
        """Return the answer to a question that may go on from earlier `turns`.

        Where no model can be asked, or none is to be (`ask` false), it has the sources, and says what is missing.
        """
        prepared = self.prepare(question, turns, ask)
        if isinstance(prepared, Answer):
            return prepared
        try:
            (answer,) = asyncio.run(self._complete([prepared]))
        except CgragError as error:
            return prepared.answer.model_copy(update={"missing": f"{error.problem} {error.remedy}"})
        return answer

    def answer_all(self, questions: Sequence[str], ask: bool = True) -> list[Answer]:
        """Return the answers to many questions, in their order; each is kept as soon as it is there.

        A question that the model fails at has no answer, and says why; it is asked again the next time.

        Raises:
            CgragError: no model can be asked, or the server went away; what was answered until then is kept.
        """
        progress = self._report("Retrieving", "questions")
        found: list[Answer | Prepared] = []
        for question in questions:
            one = self.prepare(question, ask=ask)
            if isinstance(one, Answer) and one.by == "graph":
                one = one.model_copy(update={"retrieved": _spans(self._results(question))})
            found.append(one)
            progress(len(found), len(questions))
        waiting = [one for one in found if isinstance(one, Prepared)]
        answers = iter(asyncio.run(self._complete(waiting)) if waiting else ())
        return [one if isinstance(one, Answer) else next(answers) for one in found]

    def prepare(self, question: str, turns: Sequence[Turn] = (), ask: bool = True) -> Answer | Prepared:
        """Return the answer where no model is needed for it, else what one is to be asked."""
        if not question.strip():
            raise CgragError("The question is empty.", 'Ask something:  cgrag answer "How do I enable LoRA?"')
        self._refresh()
        started = time.perf_counter()
        turns = tuple(turns)[-MOST_TURNS:]
        key = self._key(question, turns)
        if ask and (kept := self._kept(key, started)):
            return self._with_notes(kept)
        asked = in_full(question, turns)
        if (exact := self._exact(asked)) is not None:
            seconds = {"retrieve": 0.0, "expand": time.perf_counter() - started, "generate": 0.0}
            return self._with_notes(Answer(question=question, seconds=seconds).model_copy(update=exact))
        expanded = time.perf_counter()
        text = to_search(question, asked, turns)
        results = self._results(text)
        seconds = {"retrieve": time.perf_counter() - expanded, "expand": expanded - started, "generate": 0.0}
        answer = Answer(question=question, retrieved=_spans(results), seconds=seconds)
        answer = answer.model_copy(update=self._nearest(text, results))
        if not ask:
            return self._with_notes(answer)
        if answer.evidence < self._settings.answer.evidence or not results:
            return self._with_notes(answer.model_copy(update=self._not_found(answer)))
        return Prepared(key, answer, asked, results, turns)

    def _refresh(self) -> None:
        """Let go of what was opened, if it has been built anew since."""
        generation = generation_of(self._settings)
        if generation != self._generation:
            self._generation, self._cache = generation, AnswerCache(self._layout.answers, generation)
            for opened in ("_index", "_ranker", "_graph"):
                self.__dict__.pop(opened, None)

    def _exact(self, asked: str) -> dict[str, object] | None:
        from pipelines.answer.structure import from_graph

        exact = from_graph(self._graph, asked) if self._graph else None
        if exact is None:
            return None
        rows = [asdict(edge) | {"evidence": places} for edge, places in exact.edges]
        return {"text": exact.text, "found": exact.found, "by": "graph", "sources": exact.sources, "edges": rows}

    def _results(self, text: str) -> "list[Result]":
        from pipelines.retrieve.search import search

        return self._graph.search(text, self._k) if self._graph else search(self._ranker, text, self._k)

    def _nearest(self, text: str, results: "list[Result]") -> dict[str, object]:
        from pipelines.answer.evidence import evidence
        from pipelines.answer.sources import fitted

        score = evidence(self._index, text, results)
        return {"sources": fitted(results, self._settings.answer.tokens), "evidence": round(score, 4)}

    def _not_found(self, answer: Answer) -> dict[str, object]:
        least = self._settings.answer.evidence
        note = (
            f"The nearest source has {answer.evidence:.0%} of the question's words, by weight; a model is asked from "
            f"{least:.0%} on (CGRAG_ANSWER__EVIDENCE)."
        )
        return {"text": NOT_IN_SOURCES, "notes": [note]}

    async def _complete(self, waiting: Sequence[Prepared]) -> list[Answer]:
        """Ask the model about some questions, as many at once as the endpoints take."""
        answers: list[Answer | None] = [None] * len(waiting)
        client = self._client() if self._client else self._connect()
        progress: Progress = self._report("Asking the model", "questions") if len(waiting) > 1 else silent
        done = 0
        async with client:
            await client.check(self._recipe)
            places = asyncio.Semaphore(client.capacity)

            async def complete(at: int) -> None:
                nonlocal done
                async with places:
                    answers[at] = await self._ask(client, waiting[at])
                done += 1
                progress(done, len(waiting))

            try:
                async with asyncio.TaskGroup() as tasks:
                    for at in range(len(waiting)):
                        tasks.create_task(complete(at))
            except* CgragError as group:
                problem = group.exceptions[0]
                assert isinstance(problem, CgragError)
                kept = f" {done} of {len(waiting)} are answered, and kept." if len(waiting) > 1 else ""
                raise CgragError(f"{problem.problem}{kept}", problem.remedy) from None
        return [answer for answer in answers if answer is not None]

    async def _ask(self, client: "ModelClient", prepared: Prepared) -> Answer:
        from pipelines.answer.names import unsupported
        from pipelines.answer.sources import fitted

        started = time.perf_counter()
        recipe, turns = self._recipe, prepared.turns
        room = recipe.room(client.context, self._settings.answer.tokens, prepared.asked, turns)
        sources = fitted(prepared.results, room)
        if not sources:
            return self._failed(prepared, f"no source fits into the {client.context:,} tokens of the server")
        reply = await client.ask(recipe.request(prepared.asked, sources, turns).body)
        if reply.status == "connection":
            raise CgragError(
                f"The model server went away: {reply.detail}.", "Start it, then go on with the same command."
            )
        if reply.status not in ("ok", "length"):
            return self._failed(prepared, f"{reply.status}: {reply.detail}")
        try:
            said = read(reply.content, len(sources), cut=reply.status == "length")
        except Unreadable as error:
            return self._failed(prepared, f"the answer cannot be used: {error}")
        cited = [source for source in sources if source.n in said.cites]
        seconds = prepared.answer.seconds | {"generate": time.perf_counter() - started}
        answer = prepared.answer.model_copy(
            update={
                "text": said.text,
                "found": bool(said.cites),
                "by": "model",
                "sources": [replace(source, cited=source.n in said.cites) for source in sources],
                "unsupported": unsupported(said.text, [f"{source.path}\n{source.text}" for source in cited]),
                "seconds": seconds,
            }
        )
        self._cache.put(prepared.key, answer.stored())
        return self._with_notes(answer)

    def _failed(self, prepared: Prepared, why: str) -> Answer:
        return self._with_notes(prepared.answer.model_copy(update={"missing": f"The model did not answer: {why}."}))

    def _kept(self, key: str, started: float) -> Answer | None:
        found = self._cache.get(key)
        try:
            answer = Answer.model_validate(found) if found else None
        except ValidationError:  # another version of this program wrote it
            return None
        seconds = {"retrieve": time.perf_counter() - started, "expand": 0.0, "generate": 0.0}
        return answer.model_copy(update={"cached": True, "seconds": seconds}) if answer else None

    def _key(self, question: str, turns: Sequence[Turn]) -> str:
        settings = self._settings
        normal = " ".join(unicodedata.normalize("NFKC", question).split())
        models = [part.model_dump(mode="json") for part in (settings.lexical, settings.embed)]
        answer = settings.answer.model_dump(mode="json", exclude={"prompt"})
        return digest(normal, turns, self._recipe.key, self._k, self._mode, models, answer, self._generation)

    def _with_notes(self, answer: Answer) -> Answer:
        """What the user should know about an answer: sources that are gone, a question that was cut."""
        notes = list(answer.notes)
        if len(answer.question) > LONGEST_QUESTION and answer.by == "model":
            notes.append(f"The model was shown the first {LONGEST_QUESTION:,} characters of the question.")
        if gone := self._gone(answer.sources):
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            notes.append(f"{gone[0]}{more} is gone since it was indexed; bring the index up to date:  cgrag run")
        if self._mode == "auto" and answer.by != "graph" and (why := self._no_graph):
            notes.append(f"Structure is not looked up: {why}; build it:  cgrag run")
        return answer.model_copy(update={"notes": list(dict.fromkeys(notes))})

    def _gone(self, sources: Sequence[Source]) -> list[str]:
        """Files of a folder's corpus that are no longer there."""
        spec = recorded_spec(self._layout)
        if spec is None or spec.kind != "folder":
            return []
        paths = dict.fromkeys(source.path for source in sources)
        return [path for path in paths if not (Path(spec.location) / path).is_file()]

    def _connect(self) -> "ModelClient":
        from pipelines.extract.client import client_of
        from pipelines.serve.lease import lease

        if not self._urls:
            recipe = self._recipe
            leased = lease(self._settings, recipe.model, recipe.revision, self._report)
            self._urls = [self._leases.enter_context(leased)]
        return client_of(self._settings, self._urls)

    @cached_property
    def _index(self) -> "LexicalIndex":
        from pipelines.lexical.index import load_index

        return load_index(self._settings)

    @cached_property
    def _ranker(self) -> "Ranker":
        return _Late(self._index, self._settings)

    @cached_property
    def _graph(self) -> "GraphSearch | None":
        from pipelines.graph.look_up import admitted_origins
        from pipelines.retrieve.graph_search import GraphSearch

        if self._mode == "naive" or self._no_graph:
            return None
        return GraphSearch(self._index, self._settings, admitted_origins(self._settings), ranker=self._ranker)

    @property
    def _no_graph(self) -> str:
        """Why the graph is not asked."""
        graph, index = read_record(self._layout.graph_record), read_record(self._layout.bm25)
        if graph is None:
            return "there is no knowledge graph"
        return "" if index and graph.get("chunks") == index.get("chunks") else "the graph is of other chunks"


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


def _spans(results: "Sequence[Result]") -> list[tuple[str, int, int]]:
    return [(result.path, result.start, result.end) for result in results]


def generation_of(settings: Settings) -> str:
    """Return a hash that changes with the search index, the graph and the vectors, whichever there are."""
    layout = Layout(settings.home)
    index = read_record(layout.bm25) or {}
    graph = read_record(layout.graph_record) or {}
    vectors = place_of(layout, model_of(settings)).record() or {}
    return digest(index.get("generation"), index.get("chunks"), graph, vectors.get("generation"))
