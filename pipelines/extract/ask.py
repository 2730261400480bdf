"""Asking about a few texts, whatever their corpus: through the ledger, so that nothing is asked twice."""

from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any

from pipelines.extract.answer import Answer, InvalidAnswer
from pipelines.extract.client import ModelClient, connect
from pipelines.extract.ledger import Ledger
from pipelines.extract.partition import Item, Work
from pipelines.extract.recipe import Recipe, store_recipe
from pipelines.extract.run import Extraction
from pipelines.extract.stats import rate_of
from pipelines.layout import Layout
from pipelines.progress import Reporter, no_report
from pipelines.settings import Settings

_WORK = "annotated"


@dataclass(frozen=True)
class Asked:
    """What a recipe's ledger has about some texts, by the hash of the text."""

    answers: dict[str, Answer] = field(default_factory=dict)
    """Of a text without a name to ask about: an empty one."""
    pieces: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    """The model's own words (tables.LEDGER)."""
    problems: dict[str, int] = field(default_factory=dict)
    """How many texts have no answer, by the reason; "not asked" is one."""
    rate: float = 0.0
    """Chunks a second of the recipe's last answers, 0 where there are too few to tell."""
    completion_tokens: int = 0


def ask_about(
    settings: Settings,
    recipe: Recipe,
    texts: Mapping[str, str],
    *,
    ask: bool,
    report: Reporter = no_report,
    opened: Callable[[], ModelClient] | None = None,
) -> Asked:
    """Return what is known of texts ({hash: text}), after asking about those without an answer, if `ask` says so.

    Raises:
        CgragError: there is something to ask, and no server that can be asked.
    """
    layout = Layout(settings.home)
    store_recipe(layout, recipe)
    requests = {name: recipe.request(text) for name, text in texts.items()}
    with ExitStack() as leases, Ledger(layout, recipe.id, settings.extract, deep=ask) as ledger:
        ledger.refresh()
        items = [
            Item(request, texts[name], name)
            for name, request in requests.items()
            if request and not ledger.is_ok(request.key)
        ]
        if ask and items:
            progress = report("Asking the model", "chunks")
            client = opened or (lambda: connect(settings, recipe, leases, report))
            with Extraction(recipe, ledger, client, [Work(_WORK, items)], progress, len(items)) as extraction:
                extraction.start()
                problem = extraction.wait_for(_WORK)
            if problem:
                raise problem
            ledger.flush()
        rows = ledger.rows(request.key for request in requests.values() if request)
        rate = rate_of(ledger)
    found = Asked(
        rate=rate,
        completion_tokens=sum(row["completion_tokens"] for row in rows.values()),
    )
    problems: Counter[str] = Counter()
    for name, request in requests.items():
        row = rows.get(request.key) if request else None
        if request and (row is None or row["status"] != "ok"):
            problems[row["status"] if row else "not asked"] += 1
            continue
        try:
            found.answers[name] = recipe.read(texts[name], row["pieces"]) if row else Answer()
            found.pieces[name] = row["pieces"] if row else []
        except InvalidAnswer:
            problems["invalid answer"] += 1
    found.problems.update(sorted(problems.items()))
    return found
