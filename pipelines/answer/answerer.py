"""Questions become answers: from the cache, from the graph, or from a model that is shown retrieved sources.

What needs no model is told at once; a server is leased, or an endpoint asked, for the first question that does.
"""

import asyncio
import time
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import TracebackType
from typing import TYPE_CHECKING, Literal

from pydantic import ValidationError

from pipelines.answer.answer import Answer
from pipelines.answer.asking import Asking, checked
from pipelines.answer.cache import AnswerCache
from pipelines.answer.conversation import MOST_TURNS, in_full, to_search
from pipelines.answer.opened import Opened
from pipelines.answer.recipe import LONGEST_QUESTION, Turn, answer_recipe
from pipelines.answer.said import Unreadable, read
from pipelines.answer.sources import Source
from pipelines.dense.encoder import is_installed
from pipelines.errors import CgragError
from pipelines.progress import Reporter, no_report
from pipelines.settings import Settings
from pipelines.tables import digest

if TYPE_CHECKING:
    from pipelines.communities.stored import Communities, Community
    from pipelines.extract.client import ModelClient
    from pipelines.retrieve.search import Result

NOT_FOUND = "Not found: no source has enough of what the question says."
"""What is said where no model is asked."""
_BROAD = "What is asked of the corpus as a whole is answered from the summaries of its communities:  --mode global"
AnswerMode = Literal["auto", "local", "global", "naive"]
"""auto: the best retriever built, the router and the graph; local: with what the graph has around the question's
entities; global: the summaries of the whole corpus's communities; naive: the retriever alone."""


@dataclass(frozen=True)
class Prepared:
    """A question that a model is to answer."""

    key: str
    answer: Answer
    """So far: sources and evidence."""
    offered: tuple[Source, ...]
    """The sources whole, as many as there are."""
    turns: tuple[Turn, ...]
    communities: "tuple[Community, ...]" = ()
    """Whose summaries are mapped to points first: in global mode."""


class Answerer:
    """Answers questions about the corpus of a home; use it in `with`.

    Raises:
        CgragError: the prompt cannot be used; from `answer`, where the question is blank or there is no index.
    """

    def __init__(self, settings: Settings, k: int = 5, mode: AnswerMode = "auto", report: Reporter = no_report) -> None:
        self._settings, self._k, self._mode, self._report = settings, k, mode, report
        self._recipe = answer_recipe(settings)
        self._opened = Opened(settings, with_communities=mode in ("local", "global"))
        self._cache = AnswerCache(self._opened.layout.answers)
        self._asking = Asking(settings, self._recipe, report)

    def __enter__(self) -> "Answerer":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._asking.close()

    def answer(self, question: str, turns: Sequence[Turn] = (), ask: bool = True) -> Answer:
        """Return the answer to a question that may go on from earlier `turns`.

        Where no model can be asked, or none is to be (`ask` false), it has the sources, and says what is missing.
        """
        prepared = self._prepare(question, turns, ask)
        return prepared if isinstance(prepared, Answer) else self._asked([prepared])[prepared.key]

    def answer_all(self, questions: Sequence[str], ask: bool = True) -> list[Answer]:
        """Return the answers to many questions, in their order; each is kept as soon as it is there.

        A question that the model fails at, or is not asked because the server went away, has no answer, and says why;
        the next time it alone is asked again.
        """
        progress = self._report("Retrieving", "questions")
        found: list[Answer | Prepared] = []
        for question in questions:
            one = self._prepare(question, (), ask)
            if isinstance(one, Answer) and one.by == "graph":
                one = one.model_copy(update={"retrieved": _spans(self._results(question))})
            found.append(one)
            progress(len(found), len(questions))
        waiting = {one.key: one for one in found if isinstance(one, Prepared)}
        answers = self._asked(list(waiting.values())) if waiting else {}
        return [one if isinstance(one, Answer) else answers[one.key] for one in found]

    def _prepare(self, question: str, turns: Sequence[Turn], ask: bool) -> Answer | Prepared:
        """Return the answer where no model is needed for it, else what one is to be asked."""
        if not question.strip():
            raise CgragError("The question is empty.", 'Ask something:  cgrag answer "How do I enable LoRA?"')
        self._opened.refresh()
        question = question.encode("utf-8", "replace").decode()  # a lone surrogate is no text
        started = time.perf_counter()
        turns = tuple(turns)[-MOST_TURNS:]
        key = self._key(question, turns)
        if ask and (kept := self._kept(key, question, started)):
            return self._with_notes(kept)
        if self._mode == "global":
            return self._prepared_overview(key, question, turns, ask)
        asked = in_full(question, turns, self._opened.is_known)
        if (exact := self._exact(asked)) is not None:
            seconds = {"retrieve": 0.0, "expand": time.perf_counter() - started, "generate": 0.0}
            return self._with_notes(Answer(question=question, seconds=seconds).model_copy(update=exact))
        expanded = time.perf_counter()
        text = to_search(question, asked, turns)
        results = self._results(text)
        seconds = {"retrieve": time.perf_counter() - expanded, "expand": expanded - started, "generate": 0.0}
        answer = Answer(question=question, retrieved=_spans(results), seconds=seconds)
        return self._with_sources(key, answer, text, results, turns, ask)

    def _with_sources(
        self, key: str, answer: Answer, text: str, results: "list[Result]", turns: tuple[Turn, ...], ask: bool
    ) -> Answer | Prepared:
        from pipelines.answer.evidence import evidence
        from pipelines.answer.sources import fitted, sources_of

        offered, score = sources_of(results), evidence(self._opened.index, text, results)
        graph = self._opened.graph if self._mode == "local" else None
        if graph is not None:
            from pipelines.answer.local import local_sources, named_entities

            named = named_entities(graph.graph, text)
            offered = local_sources(graph.graph, self._communities(), text, named, results)
            score = 1.0 if named else score
        update = {"sources": fitted(offered, self._settings.answer.tokens), "evidence": round(score, 4)}
        answer = answer.model_copy(update=update)
        least = self._settings.answer.evidence
        if ask and offered and answer.evidence >= least:
            return Prepared(key, answer, tuple(offered), turns)
        if ask:
            note = (
                f"No model was asked: by words or meaning the best source has {answer.evidence:.0%} of the question; "
                f"from {least:.0%} on one is (CGRAG_ANSWER__EVIDENCE)."
            )
            notes = [note, *([_BROAD] if self._opened.has_summaries else [])]
            answer = answer.model_copy(update={"text": NOT_FOUND, "notes": notes})
        return self._with_notes(answer)

    def _communities(self) -> "Communities | None":
        """Those there are: local mode goes without."""
        try:
            return self._opened.communities
        except CgragError:
            return None

    def _prepared_overview(self, key: str, question: str, turns: tuple[Turn, ...], ask: bool) -> Answer | Prepared:
        """Return the communities that a question about the whole corpus is answered from.

        Raises:
            CgragError: there are none of the current graph, or none has a summary.
        """
        from pipelines.answer.overview import chosen, dependencies_of, overview_sources
        from pipelines.summaries.tables import REMEDY

        started = time.perf_counter()
        rows = chosen(self._opened.communities, question)
        if not rows:
            raise CgragError("No community has a summary yet.", f"Have them written:  {REMEDY}")
        depend = dependencies_of(rows, self._opened.edges, self._opened.places)
        seconds = {"retrieve": time.perf_counter() - started, "expand": 0.0, "generate": 0.0}
        answer = Answer(question=question, sources=overview_sources([], rows, depend), evidence=1.0, seconds=seconds)
        return Prepared(key, answer, tuple(depend), turns, tuple(rows)) if ask else self._with_notes(answer)

    def _exact(self, asked: str) -> dict[str, object] | None:
        from pipelines.answer.structure import from_graph, from_taxonomy
        from pipelines.graph.look_up import edge_row
        from pipelines.graph.store import graph_record

        graph = None if self._mode == "naive" else self._opened.graph
        if graph is None:
            return None
        exact = from_graph(graph, asked, self._opened.own_words) or from_taxonomy(graph, asked, self._opened.type_names)
        if exact is None:
            return None
        record = graph_record(self._opened.layout)
        rows = [edge_row(edge, places, record) for edge, places in exact.edges]
        return {"text": exact.text, "found": exact.found, "by": "graph", "sources": exact.sources, "edges": rows}

    def _results(self, text: str) -> "list[Result]":
        return self._opened.results(text, self._k, with_graph=self._mode != "naive")

    def _asked(self, waiting: Sequence[Prepared]) -> dict[str, Answer]:
        return self._asking.ask_all(waiting, self._ask, self._lacking)

    async def _ask(self, client: "ModelClient", prepared: Prepared) -> Answer:
        from pipelines.answer.names import unsupported
        from pipelines.answer.sources import fitted

        started = time.perf_counter()
        recipe, turns, question = self._recipe, prepared.turns, prepared.answer.question
        room = recipe.room(client.context, self._settings.answer.tokens, question, turns)
        offered, maps = prepared.offered, 0
        if prepared.communities:
            offered, maps = await self._mapped(client, prepared, room)
        sources = fitted(offered, room)
        if not sources:
            return self._failed(prepared, f"no source fits into the {client.context:,} tokens of the server")
        reply = await client.ask(recipe.request(question, sources, turns).body)
        if wrong := checked(reply):
            return self._failed(prepared, wrong)
        try:
            said = read(reply.content, len(sources), cut=reply.status == "length")
        except Unreadable as error:
            return self._failed(prepared, f"the answer cannot be used: {error}")
        cited = [source for source in sources if source.n in said.cites]
        answer = prepared.answer.model_copy(
            update={
                "text": said.text,
                "found": bool(said.cites),
                "by": "model",
                "calls": maps + 1,
                "sources": [replace(source, cited=source.n in said.cites) for source in sources],
                "unsupported": unsupported(said.text, [f"{source.path}\n{source.text}" for source in cited]),
                "seconds": prepared.answer.seconds | {"generate": time.perf_counter() - started},
            }
        )
        self._cache.put(prepared.key, answer.stored())
        return self._with_notes(answer)

    async def _mapped(self, client: "ModelClient", prepared: Prepared, room: int) -> tuple[tuple[Source, ...], int]:
        """The best points of the communities' summaries as sources, and how many calls they took.

        A call that gives nothing, or fails, gives no point.
        """
        from pipelines.answer.overview import batches, map_request, overview_sources, points_of

        parts = batches(prepared.communities, room)
        question = prepared.answer.question
        requests = [map_request(self._recipe, question, rows).body for rows in parts]
        replies = await asyncio.gather(*(client.ask(body) for body in requests))
        points = [
            point
            for reply, rows in zip(replies, parts, strict=True)
            if not checked(reply)
            for point in points_of(reply.content, rows)
        ]
        return tuple(overview_sources(points, prepared.communities, prepared.offered)), len(parts)

    def _failed(self, prepared: Prepared, why: str) -> Answer:
        return self._lacking(prepared, f"The model did not answer: {why}.")

    def _lacking(self, prepared: Prepared, missing: str) -> Answer:
        return self._with_notes(prepared.answer.model_copy(update={"missing": missing}))

    def _kept(self, key: str, question: str, started: float) -> Answer | None:
        found = self._cache.get(key)
        try:
            answer = Answer.model_validate(found) if found else None
        except ValidationError:  # another version of this program wrote it
            return None
        seconds = {"retrieve": time.perf_counter() - started, "expand": 0.0, "generate": 0.0}
        update = {"question": question, "cached": True, "seconds": seconds}
        return answer.model_copy(update=update) if answer else None

    def _key(self, question: str, turns: Sequence[Turn]) -> str:
        settings = self._settings
        normal = " ".join(unicodedata.normalize("NFKC", question).split())
        models = [part.model_dump(mode="json") for part in (settings.lexical, settings.embed)]
        answer = settings.answer.model_dump(mode="json", exclude={"prompt"})
        served = () if self._recipe.revision else settings.llm_urls  # a name alone is not the same model everywhere
        asked = (normal, turns, self._recipe.key, served, self._k, self._mode)
        return digest(*asked, models, answer, is_installed(), self._opened.generation)

    def _with_notes(self, answer: Answer) -> Answer:
        """What the user should know about an answer: sources that are gone, a question that was cut."""
        notes = list(answer.notes)
        if len(answer.question) > LONGEST_QUESTION and answer.by == "model":
            notes.append(f"The model was shown the first {LONGEST_QUESTION:,} characters of the question.")
        if gone := self._opened.gone(answer.sources):
            more = f" and {len(gone) - 1} more" if len(gone) > 1 else ""
            notes.append(f"{gone[0]}{more} is gone since it was indexed; bring the index up to date:  cgrag run")
        if self._mode != "naive" and answer.by != "graph" and (why := self._opened.no_graph):
            notes.append(f"Structure is not looked up: {why}; build it:  cgrag run")
        return answer.model_copy(update={"notes": list(dict.fromkeys(notes))})


def _spans(results: "Sequence[Result]") -> list[tuple[str, int, int]]:
    return [(result.path, result.start, result.end) for result in results]
