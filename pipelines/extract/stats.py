"""What ledgers hold: counts and speeds by recipe, two recipes side by side, and collecting what nothing needs."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.corpus.scan import Plan, load_plan
from pipelines.errors import CgragError
from pipelines.extract.answer import Answer, InvalidAnswer
from pipelines.extract.degenerate import degenerate
from pipelines.extract.ledger import Ledger, in_memory, merge, rewrite
from pipelines.extract.recipe import Recipe, recipe_names, stored_recipe
from pipelines.extract.segments import SET_ASIDE, list_segments
from pipelines.layout import Layout
from pipelines.settings import ExtractSettings
from pipelines.tables import CHUNKS, read_record, read_table

_RECENT = 2_000


@dataclass(frozen=True)
class Measured:
    """Means of one recipe's answers that were ok; 0 where there are none."""

    rate: float
    """Chunks a second, while work was going on."""
    prompt_tokens: float
    completion_tokens: float


def measure(ledger: Ledger) -> Measured:
    """Return how fast the recipe's last chunks were answered, by however many endpoints and workers there were."""
    # between two answers the model worked no longer than the later one took: the rest was a pause
    query = f"""
        WITH recent AS (
            SELECT *, answered_at - lag(answered_at) OVER (ORDER BY answered_at) AS gap FROM segments
            WHERE status = 'ok' ORDER BY answered_at DESC LIMIT {_RECENT}
        )
        SELECT count(*), sum(least(coalesce(gap, seconds), seconds)), avg(prompt_tokens), avg(completion_tokens)
        FROM recent
    """
    columns = ["status", "answered_at", "seconds", "prompt_tokens", "completion_tokens"]
    with in_memory().cursor() as connection:
        connection.register("segments", ledger.table(columns))
        answers, seconds, prompt, completion = connection.sql(query).fetchall()[0]
    return Measured(answers / seconds if seconds else 0.0, prompt or 0.0, completion or 0.0)


def rate_of(ledger: Ledger) -> float:
    """Chunks a second of the recipe's last answers, 0 where there are too few to tell."""
    return measure(ledger).rate


def degenerate_answers(ledger: Ledger, recipe: Recipe) -> tuple[Counter[str], int]:
    """Return how many edges of the answers that were ok are degenerate, by kind, and how many edges there are."""
    table = ledger.table(["status", "pieces"])
    rows = table.filter(pc.equal(table["status"], "ok"))["pieces"].to_pylist()
    contents = (piece["content"] for pieces in rows for piece in pieces)
    return degenerate(contents, recipe.taxonomy, recipe.format)


def ledger_stats(layout: Layout, settings: ExtractSettings) -> list[dict[str, Any]]:
    """Return one row a recipe: what its ledger holds, on how many segments, and what was set aside."""
    found = []
    for name in recipe_names(layout):
        recipe = read_record(layout.ledgers / name / "recipe.json") or {}  # of whatever version
        with Ledger(layout, name, settings) as ledger:
            table = ledger.table()
            merged = merge(table)
            measured = measure(ledger)
            said = _degenerate(layout, ledger, name)
        problems = Counter(status for status in merged["status"].to_pylist() if status != "ok")
        files = list_segments(ledger.folder)
        found.append(
            {
                "recipe": name,
                "model": recipe.get("model", ""),
                "revision": recipe.get("revision", ""),
                "taxonomy": recipe.get("taxonomy", {}).get("version", ""),
                "ok": merged.num_rows - problems.total(),
                "failed": problems.total(),
                "problems": dict(sorted(problems.items())),
                "rows": table.num_rows,
                "requests": pc.sum(table["requests"]).as_py() or 0,
                "prompt_tokens": pc.sum(table["prompt_tokens"]).as_py() or 0,
                "completion_tokens": pc.sum(table["completion_tokens"]).as_py() or 0,
                "rate": measured.rate,
                **said,
                "segments": len(files),
                "bytes": sum(file.stat().st_size for file in files),
                "set_aside": sorted(file.name for file in (ledger.folder / SET_ASIDE).glob("*")),
            }
        )
    return found


def _degenerate(layout: Layout, ledger: Ledger, name: str) -> dict[str, Any]:
    try:
        kinds, edges = degenerate_answers(ledger, stored_recipe(layout, name))
    except CgragError:  # a recipe of another version, whose answers cannot be read
        return {"degenerate": {}, "answered_edges": 0}
    return {"degenerate": dict(sorted(kinds.items())), "answered_edges": edges}


def all_live_texts(layout: Layout) -> dict[str, str]:
    """Return {text hash: text} of every chunk of the corpus, whose chunks are all there.

    Raises:
        CgragError: some partition has no stored chunks, so that nobody knows which texts are live.
    """
    plan = load_plan(layout)
    lacking = [key for key in plan if not layout.partition(key, "chunks").exists()]
    if lacking or not layout.plan.exists():
        what = f"{len(lacking)} partitions have no chunks" if lacking else "there is no plan of partitions"
        raise CgragError(f"It is not known which texts the corpus has: {what}.", "Build them first:  cgrag run")
    return live_texts(layout, plan)


def live_texts(layout: Layout, plan: Plan) -> dict[str, str]:
    """Return {text hash: text} of every stored chunk of the plan."""
    texts: dict[str, str] = {}
    for key in plan:
        if layout.partition(key, "chunks").exists():
            table = read_table(layout.partition(key, "chunks"), CHUNKS)
            texts.update(zip(table["text_hash"].to_pylist(), table["text"].to_pylist(), strict=True))
    return texts


def collect(layout: Layout, live: Iterable[str], before: float) -> dict[str, int]:
    """Delete the rows of every ledger whose chunk text is not among the `live` hashes; return {recipe: rows deleted}.

    What was answered after `before` (seconds since 1970), when the live texts were looked up, stays in any case.

    Raises:
        CgragError: a ledger is being read or compacted just now.
    """
    kept = pa.array(sorted(live), pa.string())
    deleted = {}
    for name in recipe_names(layout):
        counts: list[int] = []

        def keep(table: pa.Table, counts: list[int] = counts) -> pa.Table:
            merged = merge(table)
            wanted = merged.filter(
                pc.or_(pc.is_in(merged["text_hash"], kept), pc.greater_equal(merged["answered_at"], before))
            )
            counts.append(merged.num_rows - wanted.num_rows)
            return wanted

        rewrite(layout.ledgers / name, keep)
        if not counts:
            raise CgragError(f"The ledger of {name} is in use, so nothing was deleted from it.", "Run it again later.")
        deleted[name] = counts[0]
    return deleted


def compare_recipes(layout: Layout, plan: Plan, settings: ExtractSettings, names: tuple[str, str]) -> dict[str, Any]:
    """Return two recipes' results on the chunks of the corpus side by side.

    Raises:
        CgragError: there is no such recipe.
    """
    recipes = [stored_recipe(layout, name) for name in names]
    texts = live_texts(layout, plan)
    answers: list[dict[str, Answer]] = []
    sides = []
    for name, recipe in zip(names, recipes, strict=True):
        with Ledger(layout, name, settings) as ledger:
            rows = [row for row in merge(ledger.table()).to_pylist() if row["text_hash"] in texts]
        read: dict[str, Answer] = {}
        problems = Counter(row["status"] for row in rows if row["status"] != "ok")
        for row in rows:
            if row["status"] == "ok":
                try:
                    read[row["text_hash"]] = recipe.read(texts[row["text_hash"]], row["pieces"])
                except InvalidAnswer:
                    problems["invalid answer"] += 1
        answers.append(read)
        sides.append({"recipe": name, "problems": dict(sorted(problems.items())), **_contents(read.values(), recipe)})
    both = answers[0].keys() & answers[1].keys()
    shared = union = 0
    for text_hash in both:
        first, second = ({entity.name for entity in side[text_hash].entities} for side in answers)
        shared, union = shared + len(first & second), union + len(first | second)
    return {"sides": sides, "both_ok": len(both), "names_in_common": shared / union if union else 1.0}


def _contents(answers: Iterable[Answer], recipe: Any) -> dict[str, Any]:
    read = list(answers)
    types = Counter(entity.type for answer in read for entity in answer.entities)
    relations = Counter(relation.type for answer in read for relation in answer.relations)
    last = {kind.name for kind in (*recipe.taxonomy.types, *recipe.taxonomy.relations) if kind.last_resort}
    every = types + relations
    return {
        "ok": len(read),
        "entities": types.total(),
        "relations": relations.total(),
        "types": dict(sorted(types.items())),
        "relation_types": dict(sorted(relations.items())),
        "last_resort_share": sum(every[name] for name in last) / every.total() if every else 0.0,
        "ungrounded": sum(answer.ungrounded for answer in read),
        "refused": sum(answer.refused for answer in read),
    }
