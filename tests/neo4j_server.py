"""A real Neo4j for tests and measurements: the one that NEO4J_URI names, else one of their own from NEO4J_HOME."""

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from neo4j import Driver, GraphDatabase
from neo4j.exceptions import AuthError, ServiceUnavailable

from pipelines.graph.store import open_store
from pipelines.graph.tables import GRAPH
from pipelines.layout import Layout
from pipelines.serve.launch import free_port
from pipelines.settings import Settings
from pipelines.tables import CHUNKS, DOCUMENTS, read_table

URI = os.environ.get("NEO4J_URI")
HOME = os.environ.get("NEO4J_HOME")
LOGIN = {name: os.environ[name] for name in ("NEO4J_USER", "NEO4J_PASSWORD", "NEO4J_DATABASE") if name in os.environ}
"""Read when this is imported, before the tests' environment is emptied."""
ABSENT = "no Neo4j: neither NEO4J_URI nor NEO4J_HOME (a folder with bin/neo4j) is set"
_STOP_SECONDS = 30
_START_SECONDS = 90


@dataclass
class Server:
    """A Neo4j, and the variables that make it the product's."""

    environment: dict[str, str]
    folder: Path | None = None
    """Of a server of our own."""
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def uri(self) -> str:
        return self.environment["NEO4J_URI"]

    def settings(self, **values: Any) -> Settings:
        """Settings of a home that uses this server."""
        named = {name.lower(): value for name, value in self.environment.items()}
        return Settings(**named, **values)

    def driver(self) -> Driver:
        password = self.environment.get("NEO4J_PASSWORD")
        auth = (self.environment.get("NEO4J_USER", "neo4j"), password) if password else None
        return GraphDatabase.driver(self.uri, auth=auth)

    def values(self, query: str, **parameters: Any) -> list[list[Any]]:
        """The rows of a query."""
        with self.driver() as driver, driver.session(database=self.environment.get("NEO4J_DATABASE")) as session:
            return [list(record.values()) for record in session.run(query, parameters)]

    def start(self) -> None:
        """Start a server of our own, with the data that it has, and wait until it answers."""
        assert self.folder is not None and HOME is not None
        command = [str(Path(HOME) / "bin" / "neo4j"), "console"]
        with (self.folder / "console.log").open("ab") as log:
            self.process = subprocess.Popen(
                command,
                env=os.environ | {"NEO4J_CONF": str(self.folder)},
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        deadline = time.monotonic() + _START_SECONDS
        while not self._answers():
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(0.2)
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"Neo4j does not start: {self.folder / 'console.log'}")

    def _answers(self) -> bool:
        """Whether it takes the login; a new server's first one has to be changed."""
        first = ("neo4j", "neo4j")
        try:
            with self.driver() as driver:
                driver.verify_connectivity()
            return True
        except ServiceUnavailable:
            return False
        except AuthError:
            with GraphDatabase.driver(self.uri, auth=first) as driver, driver.session(database="system") as session:
                changed = "ALTER CURRENT USER SET PASSWORD FROM 'neo4j' TO $password"
                session.run(changed, {"password": self.environment["NEO4J_PASSWORD"]}).consume()
            return True

    def kill(self) -> None:
        """End a server of our own as a power cut would."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self.process is not None:
            os.killpg(self.process.pid, how)
            try:
                self.process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:  # it may wait for ever for a transaction that nobody will end
                os.killpg(self.process.pid, signal.SIGKILL)
                self.process.wait()
            self.process = None


def own_server(folder: Path) -> Server:
    """A server of our own, not started yet, whose data lie in `folder`."""
    assert HOME is not None
    port = free_port()
    conf = re.sub(r":7687\b", f":{port}", (Path(HOME) / "conf" / "neo4j.conf").read_text())
    conf = re.sub(r"^(server\.directories|dbms\.security\.auth_enabled).*\n", "", conf, flags=re.M)
    names = ("data", "logs", "run", "import", "plugins")
    conf += "".join(f"\nserver.directories.{name}={folder / name}" for name in names)
    for name in names:
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "neo4j.conf").write_text(f"{conf}\n")
    return Server({"NEO4J_URI": f"bolt://127.0.0.1:{port}", "NEO4J_PASSWORD": "a-secret-of-the-tests"}, folder)


def given_server() -> Server | None:
    """The server that NEO4J_URI names."""
    return Server({"NEO4J_URI": URI, **LOGIN}) if URI else None


def can_start() -> bool:
    """Whether a server of our own can be started."""
    return HOME is not None and shutil.which("java") is not None


_OURS = ("corpus", "part", "hash", "loose")
Tables = dict[str, list[dict[str, Any]]]


def database_rows(server: Server, corpus: str) -> Tables:
    """What the database has of a corpus, as rows of the home's tables, sorted."""
    nodes = {
        table: [
            row[0]
            for row in server.values(f"MATCH (n:{label} {{corpus: $corpus}}) RETURN properties(n)", corpus=corpus)
        ]
        for table, label in (("documents", "Document"), ("chunks", "Chunk"), ("entities", "Entity"))
    }
    query = "MATCH (a:Entity {corpus: $corpus})-[r {corpus: $corpus}]->(b:%s) RETURN a.id, b.id, properties(r), type(r)"
    edges, mentions = (server.values(query % label, corpus=corpus) for label in ("Entity", "Chunk"))
    of_documents = server.values(
        "MATCH (c:Chunk {corpus: $corpus})-[:FROM_DOCUMENT {corpus: $corpus}]->(d:Document) RETURN c.id, d.id",
        corpus=corpus,
    )
    assert sorted(map(tuple, of_documents)) == sorted((row["id"], row["path"]) for row in nodes["chunks"])
    return _sorted(
        {
            "documents": [_without(row, "id") for row in nodes["documents"]],
            "chunks": [{**_without(row, "id"), "chunk_id": row["id"]} for row in nodes["chunks"]],
            "entities": [_without(row) for row in nodes["entities"]],
            "edges": [{"source": a, "target": b, **_with_evidence(row)} for a, b, row, _ in edges],
            "mentions": [{"entity": a, "chunk_id": b, **_without(row)} for a, b, row, kind in mentions],
        }
    )


def home_rows(layout: Layout, chunked: Iterable[str]) -> Tables:
    """The same of a home; `chunked` are its partitions."""
    with open_store(layout.graph_store) as database:
        rows = {name: database.sql(f"SELECT * FROM {name}").to_arrow_table().to_pylist() for name in GRAPH}
    for name, schema in (("documents", DOCUMENTS), ("chunks", CHUNKS)):
        rows[name] = [row for key in chunked for row in read_table(layout.partition(key, name), schema).to_pylist()]
    return _sorted(rows)


def _without(row: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in (*_OURS, *names)}


def _with_evidence(row: dict[str, Any]) -> dict[str, Any]:
    columns = [row[f"evidence_{name}"] for name in ("path", "line", "chunk")]
    names = ("path", "start_line", "chunk_id")
    places = [dict(zip(names, place, strict=True)) for place in zip(*columns, strict=True)]
    return {**_without(row, "evidence_path", "evidence_line", "evidence_chunk"), "evidence": places}


def _sorted(tables: Tables) -> Tables:
    return {
        name: sorted(rows, key=lambda row: [repr(row[column]) for column in sorted(row)])
        for name, rows in sorted(tables.items())
    }
