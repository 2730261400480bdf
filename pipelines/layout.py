"""Where every file of a home lies."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Layout:
    """Paths below one `CGRAG_HOME`; makes none of them."""

    home: Path

    @property
    def corpus_record(self) -> Path:
        return self.home / "corpus.json"

    @property
    def sources(self) -> Path:
        return self.home / "sources"

    @property
    def files(self) -> Path:
        return self.home / "corpus" / "files.parquet"

    @property
    def skipped(self) -> Path:
        return self.home / "corpus" / "skipped.parquet"

    @property
    def plan(self) -> Path:
        return self.home / "corpus" / "plan.json"

    @property
    def partitions(self) -> Path:
        return self.home / "chunks"

    @property
    def failures(self) -> Path:
        return self.home / "failures"

    @property
    def bm25(self) -> Path:
        return self.home / "index" / "bm25.json"

    @property
    def dense(self) -> Path:
        """A folder for each embedding model."""
        return self.home / "index" / "dense"

    @property
    def graph(self) -> Path:
        """The folder of the linker's and the graph's tables."""
        return self.home / "graph"

    @property
    def graph_store(self) -> Path:
        return self.graph / "graph.duckdb"

    @property
    def graph_record(self) -> Path:
        return self.graph / "graph.json"

    @property
    def communities(self) -> Path:
        """The folder of the communities' tables."""
        return self.home / "communities"

    @property
    def communities_record(self) -> Path:
        return self.communities / "communities.json"

    @property
    def reviewed(self) -> Path:
        """What people have said of names that may be one."""
        return self.home / "entities.jsonl"

    @property
    def neo4j_snapshots(self) -> Path:
        return self.home / "neo4j"

    @property
    def questions(self) -> Path:
        return self.home / "questions"

    @property
    def reports(self) -> Path:
        return self.home / "reports"

    @property
    def ledgers(self) -> Path:
        """A folder for each recipe, with what models have answered."""
        return self.home / "ledger"

    def evidence(self, recipe: str) -> Path:
        """What was measured of a model's recipe."""
        return self.home / "evidence" / f"{recipe}.json"

    @property
    def answers(self) -> Path:
        """The cache of answers, which may be removed at any time."""
        return self.home / "answers.sqlite"

    @property
    def dagster(self) -> Path:
        return self.home / "dagster"

    def partition(self, key: str, table: str) -> Path:
        """The Parquet file of one partition's `table` (documents, outline, units, chunks or extractions)."""
        return self.partitions / file_name(key) / f"{table}.parquet"

    def failure(self, asset: str, key: str) -> Path:
        return self.failures / asset / f"{file_name(key)}.json"


def file_name(key: str) -> str:
    """A file name for a partition key of any length: its readable end and a hash of all of it.

    >>> file_name("vllm/lora")
    'vllm-lora-4388264f'
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", key)[-60:].strip("-") or "root"
    return f"{readable}-{hashlib.sha256(key.encode()).hexdigest()[:8]}"
