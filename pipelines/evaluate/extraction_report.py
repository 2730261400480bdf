"""What recipes of extraction are worth: their scores on annotated docs and on code, beside rules, pairs and chance.

A recipe is asked about the annotated chunks alone, and knows nothing of the parser's results on the chunks of code.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipelines.chunking.partition import stored_fingerprint
from pipelines.corpus.scan import load_plan
from pipelines.evaluate.annotations import FOLDER, Annotated, Split, agreement, fingerprint, load_annotated
from pipelines.evaluate.code_truth import code_chunks
from pipelines.evaluate.extraction_baselines import at_random, by_rules, together
from pipelines.evaluate.extraction_scores import Said, Scores, key, score, truth_of
from pipelines.evaluate.extraction_stored import report_file, report_inputs
from pipelines.extract.answer import Answer
from pipelines.extract.ask import Asked, ask_about
from pipelines.extract.client import ModelClient
from pipelines.extract.degenerate import degenerate
from pipelines.extract.names import ranked_names
from pipelines.extract.recipe import Recipe, active_recipe, stored_recipe
from pipelines.extract.taxonomy import Taxonomy
from pipelines.graph.admission import Evidence, Verdict, judge, write_evidence
from pipelines.graph.tables import ENTITIES
from pipelines.layout import Layout
from pipelines.progress import Reporter, no_report
from pipelines.rules import VERSION as RULES_VERSION
from pipelines.rules.stored import stored_rules
from pipelines.rules.surface import read_surface
from pipelines.settings import Settings
from pipelines.tables import read_table, write_json

RULES = {"links": "link", "rules": "rule", "co-occurrence": "cooccurrence"}
"""The recipes that are compared with, and the origin of each."""


@dataclass(frozen=True)
class Measured:
    """A model's recipe: what its ledger had, and what becomes of its edges."""

    recipe: str
    model: str
    format: str
    verdict: Verdict
    problems: dict[str, int]
    """Chunks without an answer, by the reason."""
    degenerate: dict[str, int]
    answered_edges: int
    chunks_per_second: float
    tokens_per_chunk: float


@dataclass(frozen=True)
class ExtractionReport:
    """Scores of all recipes on the same chunks."""

    split: Split
    annotations: str
    agreement: dict[str, float]
    docs: list[Scores]
    code: list[Scores]
    recipes: list[Measured] = field(default_factory=list)
    evidence: dict[str, Evidence] = field(default_factory=dict)
    """By origin of the rules, or by recipe."""


def evaluate_extraction(
    settings: Settings,
    names: Sequence[str] = (),
    *,
    split: Split = "test",
    ask: bool = True,
    report: Reporter = no_report,
    opened: Callable[[], ModelClient] | None = None,
    folder: Path = FOLDER,
) -> ExtractionReport:
    """Return the scores of some recipes (by their names in the ledger), of the active one if none is named.

    `ask`: the model of each is asked about chunks without an answer; else the ledger is read. What is measured of a
    model's recipe on the split `test` is stored in the home, and admits its edges or not when the graph is built next.

    Raises:
        CgragError: the annotated chunks or the graph are not in this home, or there is no such recipe, or no server.
    """
    layout = Layout(settings.home)
    recipes = [stored_recipe(layout, name) for name in names] if names else [active_recipe(settings)]
    taxonomy = active_recipe(settings).taxonomy
    docs = load_annotated(layout, split, folder)
    truth = [truth_of(chunk) for chunk in docs]
    code, code_truth = code_chunks(layout)
    result = ExtractionReport(split, fingerprint(split, folder), agreement(split, folder), [], [])
    _add_rules(layout, result, docs, truth, taxonomy)
    chance = [at_random(c.chunk_id, t.names, len(t.edges), taxonomy) for c, t in zip(docs, truth, strict=True)]
    result.docs.append(score("any names of a sentence", [_pairs(chunk, taxonomy) for chunk in docs], truth))
    result.docs.append(score("random pairs", chance, truth))
    _add_code_baselines(result, code, code_truth, taxonomy)
    texts = {chunk.text_hash: chunk.text for chunk in (*docs, *code)}
    for recipe in recipes:
        asked = ask_about(settings, recipe, texts, ask=ask, report=report, opened=opened)
        on_docs = _scored(recipe, docs, truth, asked)
        result.docs.append(on_docs)
        result.code.append(_scored(recipe, code, code_truth, asked, is_code=True))
        evidence = _evidence(recipe.id, on_docs, result.annotations)
        lacking = sum(asked.problems.values())
        if split == "test" and not lacking:
            write_evidence(layout.evidence(recipe.id), evidence)
        result.evidence[recipe.id] = evidence
        result.recipes.append(_measured(settings, recipe, asked, None if lacking else evidence))
    return result


def _add_rules(
    layout: Layout, result: ExtractionReport, docs: Sequence[Annotated], truth: Sequence[Said], taxonomy: Taxonomy
) -> None:
    ruled = stored_rules(layout, taxonomy)
    entities = read_table(layout.graph / "entities.parquet", ENTITIES)
    types = dict(zip(entities["id"].to_pylist(), entities["type"].to_pylist(), strict=True))
    types |= {id: kind for id, (_, kind) in ruled.terms.items()}
    pairs = by_rules(docs, ruled, types, "cooccurrence")
    for name, origin in RULES.items():
        scores = score(name, by_rules(docs, ruled, types, origin), truth, pairs)
        result.docs.append(scores)
        if origin != "link":
            result.evidence[origin] = _evidence(origin, scores, result.annotations)


def _add_code_baselines(
    result: ExtractionReport, code: Sequence[Annotated], truth: Sequence[Said], taxonomy: Taxonomy
) -> None:
    chance = []
    for chunk, true in zip(code, truth, strict=True):
        chance.append(at_random(chunk.chunk_id, true.names, len(true.edges), taxonomy))
    shown = [read_surface(chunk.text) for chunk in code]
    told = [
        Said(
            {key(name): kind for name, kind in one.types.items()},
            frozenset((key(source), relation, key(target)) for source, relation, target in one.edges),
        )
        for one in shown
    ]
    result.code.append(score("rules on the surface", told, truth))
    pairs = [_pairs(chunk, taxonomy, is_code=True) for chunk in code]
    result.code.append(score("any names of a line", pairs, truth))
    result.code.append(score("random pairs", chance, truth))


def _pairs(chunk: Annotated, taxonomy: Taxonomy, is_code: bool = False) -> Said:
    """Pairs of what a text names in one sentence or line, whatever it is."""
    names = [name for _, name in ranked_names(chunk.text)]
    return together(chunk.text, Said({key(name): "" for name in names}), names, taxonomy, is_code=is_code)


def _scored(
    recipe: Recipe, chunks: Sequence[Annotated], truth: Sequence[Said], asked: Asked, is_code: bool = False
) -> Scores:
    said, pairs = [], []
    for chunk in chunks:
        answer = asked.answers.get(chunk.text_hash, Answer())
        names = {key(entity.name): entity.type for entity in answer.entities}
        edges = {(key(r.source), r.type, key(r.target)) for r in answer.relations}
        titles = (
            frozenset() if is_code else frozenset(key(part) for trail in chunk.trail for part in trail.split(" > "))
        )
        one = Said(names, frozenset(edge for edge in edges if edge[0] != edge[2]), titles)
        said.append(one)
        spelt = [entity.name for entity in answer.entities]
        pairs.append(together(chunk.text, one, spelt, recipe.taxonomy, is_code=is_code))
    return score(recipe.id, said, truth, pairs)


def _evidence(recipe: str, scores: Scores, annotations: str) -> Evidence:
    labels = {relation: precision for relation, precision in scores.labels.items() if precision.found}
    assert scores.cooccurrence is not None
    return Evidence(
        recipe=recipe, annotations=annotations, edges=scores.edges, labels=labels, cooccurrence=scores.cooccurrence
    )


def _measured(settings: Settings, recipe: Recipe, asked: Asked, evidence: Evidence | None) -> Measured:
    contents = [piece["content"] for pieces in asked.pieces.values() for piece in pieces]
    kinds, edges = degenerate(contents, recipe.taxonomy, recipe.format)
    answered = max(len(asked.answers), 1)
    return Measured(
        recipe.id,
        recipe.model,
        recipe.format,
        judge("llm", recipe.id, evidence, settings.admit.get(recipe.id, "")),
        asked.problems,
        dict(sorted(kinds.items())),
        edges,
        round(asked.rate, 2),
        round(asked.completion_tokens / answered, 1),
    )


def document(found: ExtractionReport) -> dict[str, Any]:
    """Return the report as JSON: what `cgrag evaluate-extraction --json` prints."""
    return {
        "split": found.split,
        "annotations": found.annotations,
        "agreement": found.agreement,
        "rules": RULES_VERSION,
        "docs": [_row(scores) for scores in found.docs],
        "code": [_row(scores) for scores in found.code],
        "recipes": [
            vars(measured) | {"verdict": measured.verdict.model_dump(mode="json")} for measured in found.recipes
        ],
    }


def _row(scores: Scores) -> dict[str, Any]:
    def shown(value: Any) -> Any:
        if isinstance(value, Mapping):
            return {name: shown(part) for name, part in value.items()}
        return value.model_dump() if hasattr(value, "model_dump") else value

    return {name: shown(value) for name, value in vars(scores).items()}


def store_report(settings: Settings, found: ExtractionReport) -> Path:
    """Write reports/extraction.json and return its path."""
    layout = Layout(settings.home)
    file = report_file(layout)
    plan = load_plan(layout)
    chunks = {key: print for key in plan if (print := stored_fingerprint(layout, key))}
    write_json(file, document(found) | {"inputs": report_inputs(settings, chunks)})
    return file
