"""A corpus that is extracted without Dagster, for tests of all kinds."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from pipelines.corpus.scan import Plan, load_plan
from pipelines.extract.client import ModelClient, client_of
from pipelines.extract.ledger import Ledger
from pipelines.extract.partition import ChunksFailed, stored_rows
from pipelines.extract.recipe import Recipe, active_recipe
from pipelines.extract.session import Ask, Session
from pipelines.tables import digest
from tests.fake_model import MODEL
from tests.support import Home, write_tree


def docs(directory: str, count: int) -> dict[str, str]:
    """Files of one small chunk each, with names of their own."""
    return {
        f"{directory}/d{n:03}.md": f"# Doc{n}{directory}\n\nThe Thing{n}{directory} needs Shared.\n"
        for n in range(count)
    }


def ledger_row(
    name: object, status: str = "ok", result_hash: str = "r", answered_at: float = 1.0, **more: Any
) -> dict[str, Any]:
    """A row of a ledger, as in tables.LEDGER."""
    return {
        "key": digest(name),
        "text_hash": digest("text", name),
        "status": status,
        "detail": "",
        "finish_reason": "stop",
        "pieces": [{"start": 0, "end": 3, "content": "{}"}],
        "result_hash": result_hash,
        "prompt_tokens": 1,
        "completion_tokens": 1,
        "seconds": 0.1,
        "requests": 1,
        "answered_at": answered_at,
    } | more


class Extracted:
    """One corpus in one home, every directory a partition."""

    def __init__(self, place: Path, files: Mapping[str, str], url: str, **settings: Any) -> None:
        self.root = write_tree(place / "tree", files)
        self.root.mkdir(parents=True, exist_ok=True)
        self.options: dict[str, Any] = {"llm_urls": [url], "partition_chunks": 0}
        extract = {"model": MODEL, "policy": "llm", "backoff": 0, **settings}
        self.home = Home(place / "home", extract=extract, **self.options)
        self.home.build(self.root)

    def change(self, **settings: Any) -> None:
        """Take other extract settings from now on."""
        extract = self.home.settings.extract.model_dump() | settings
        self.home = Home(self.home.settings.home, extract=extract, **self.options)

    def rebuild(self) -> None:
        """Chunk what has changed in the tree."""
        self.home.build(self.root)

    @property
    def plan(self) -> Plan:
        return load_plan(self.home.layout)

    @property
    def recipe(self) -> Recipe:
        return active_recipe(self.home.settings)

    @property
    def folder(self) -> Path:
        return self.home.layout.ledgers / self.recipe.id

    def ledger(self, deep: bool = False) -> Ledger:
        found = Ledger(self.home.layout, self.recipe.id, self.home.settings.extract, deep=deep)
        found.refresh()
        return found

    def session(self, ask: Ask = "pending", listed: Iterable[str] = (), client: ModelClient | None = None) -> Session:
        plan = self.plan
        return Session(self.home.settings, plan, list(plan), ask, list(listed), client=client)

    def run(self, ask: Ask = "pending", listed: Iterable[str] = ()) -> dict[str, str]:
        """Extract every partition that needs it; return {partition: why it failed}."""
        failed = {}
        with self.session(ask, listed) as session:
            for key in session.todo:
                try:
                    session.extract(key)
                except ChunksFailed as error:
                    failed[key] = str(error)
            self.totals = session.finish()
            self.notes = session.notes
        return failed

    def rows(self) -> list[dict[str, Any]]:
        """All stored rows, sorted by path."""
        rows = [row for key in self.plan for row in stored_rows(self.home.layout, key)]
        return sorted(rows, key=lambda row: (row["path"], row["chunk_id"]))

    def by_path(self) -> dict[str, dict[str, Any]]:
        """{path: row} where every file is one chunk."""
        return {row["path"]: row for row in self.rows()}

    def client(self) -> ModelClient:
        return client_of(self.home.settings, self.home.settings.llm_urls)
