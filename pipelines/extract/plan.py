"""Which chunks a run shall ask about, and what that costs."""

import random
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpus.scan import Plan
from pipelines.extract.ledger import Ledger
from pipelines.extract.overview import overview
from pipelines.extract.recipe import CHARACTERS_PER_TOKEN, Recipe, active_recipe
from pipelines.extract.stats import measure
from pipelines.layout import Layout
from pipelines.settings import Settings
from pipelines.tables import CHUNKS, read_table

_SEED = 0


@dataclass(frozen=True)
class Order:
    """What is asked for: all that has no result, or a part of it."""

    chunks: int | None = None
    """At most so many, spread over the corpus."""
    questions: Path | None = None
    """Just the chunks that hold a part of an answer of this file …"""
    distractors: int = 0
    """… and so many others, chosen at random but the same each time."""
    partitions: tuple[str, ...] = ()
    """Of these partitions alone, if there are any."""
    listed: Mapping[str, list[str]] | None = None
    """Just these chunks of these partitions."""


@dataclass(frozen=True)
class ExtractionPlan:
    """The chunks to ask about, by partition, with their cost at the speed that was measured so far."""

    recipe: str
    wanted: dict[str, list[str]]
    prompt_tokens: int
    completion_tokens: int | None
    """None where nothing has been measured yet."""
    seconds: float | None
    note: str = ""

    @property
    def chunks(self) -> int:
        return sum(map(len, self.wanted.values()))


def plan_extraction(settings: Settings, plan: Plan, order: Order) -> ExtractionPlan:
    """Return which chunks without a result an order asks for.

    Raises:
        CgragError: a partition is not known, the question file cannot be used, or there is no such recipe.
    """
    layout = Layout(settings.home)
    plan.check(order.partitions)
    recipe = active_recipe(settings)
    with Ledger(layout, recipe.id, settings.extract) as ledger:
        partitions = overview(layout, plan, settings, recipe, ledger)
        measured = measure(ledger)
    wanted = {
        key: list(partition.open)
        for key, partition in partitions.items()
        if partition.open and (not order.partitions or key in order.partitions)
    }
    note = ""
    if order.listed is not None:
        wanted = _only(wanted, {chunk for ids in order.listed.values() for chunk in ids})
    if order.questions is not None:
        subset, note = _subset(settings, layout, plan, order)
        wanted = _only(wanted, subset)
    if order.chunks is not None:
        # a chunk's id is a hash: the lowest are a sample of the whole corpus, and the same one each time
        lowest = sorted(chunk for ids in wanted.values() for chunk in ids)[: order.chunks]
        wanted = _only(wanted, set(lowest))
    count = sum(map(len, wanted.values()))
    prompt = round(count * measured.prompt_tokens) if measured.prompt_tokens else _estimated(layout, wanted, recipe)
    return ExtractionPlan(
        recipe=recipe.id,
        wanted=wanted,
        prompt_tokens=prompt,
        completion_tokens=round(count * measured.completion_tokens) if measured.rate else None,
        seconds=count / measured.rate if measured.rate else None,
        note=note,
    )


def _only(wanted: Mapping[str, list[str]], kept: set[str]) -> dict[str, list[str]]:
    chosen = {key: [chunk for chunk in ids if chunk in kept] for key, ids in wanted.items()}
    return {key: ids for key, ids in chosen.items() if ids}


def _estimated(layout: Layout, wanted: Mapping[str, list[str]], recipe: Recipe) -> int:
    characters = 0
    for key, ids in wanted.items():
        kept, table = set(ids), read_table(layout.partition(key, "chunks"), CHUNKS)
        spans = zip(table["chunk_id"].to_pylist(), table["start"].to_pylist(), table["end"].to_pylist(), strict=True)
        characters += sum(end - start + len(recipe.system) for chunk, start, end in spans if chunk in kept)
    return characters // CHARACTERS_PER_TOKEN


def _subset(settings: Settings, layout: Layout, plan: Plan, order: Order) -> tuple[set[str], str]:
    """The chunks that share a character with an answer's span, and others at random; and what to know about them."""
    from pipelines.evaluate.places import load_places
    from pipelines.evaluate.questions import read_questions
    from pipelines.extract.partition import chunks_in_scope
    from pipelines.lexical.index import load_index

    assert order.questions is not None
    index = load_index(settings)
    asked = read_questions(order.questions, load_places(settings, index))
    spans: dict[str, list[tuple[int, int]]] = {}
    for question in asked.questions:
        for span in question.sources:
            spans.setdefault(span.path, []).append((span.start, span.end))
    columns = (index.table[name].to_pylist() for name in ("chunk_id", "path", "start", "end"))
    answers = {
        chunk
        for chunk, path, start, end in zip(*columns, strict=True)
        if any(start < last and end > first for first, last in spans.get(path, ()))
    }
    scope: set[str] = set()
    for key, files in plan.partitions.items():
        if layout.partition(key, "chunks").exists():
            scope |= {chunk["chunk_id"] for chunk in chunks_in_scope(layout, key, files, settings.extract)}
    others = sorted(scope - answers)
    distractors = random.Random(_SEED).sample(others, min(order.distractors, len(others)))
    outside = len(answers - scope)
    note = f"{outside} chunks with answers are code, which the policy leaves to the parser" if outside else ""
    return (answers & scope) | set(distractors), note
