"""Graphs written by hand into a home, for tests of the stores that they lie in."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from pipelines.corpus.spec import CorpusSpec, claim_home
from pipelines.graph.names import search_key
from pipelines.graph.store import write_store
from pipelines.graph.tables import EDGES, ENTITIES, GRAPH, MENTIONS, generation
from pipelines.layout import Layout
from pipelines.tables import CHUNKS, DOCUMENTS, digest, write_json, write_table

Rows = list[dict[str, Any]]
KEY = "all"


def entity(id: str, name: str = "", kind: str = "Function", path: str = "a.py") -> dict[str, Any]:
    """A row of `entities`."""
    span = {"start": 0, "end": 9, "start_line": 1, "end_line": 2}
    shown = name or id
    return {"id": id, "type": kind, "types": [kind], "name": shown, "key": search_key(shown), "path": path, **span}


def edge(source: str, relation: str, target: str, *origins: str, weight: int = 1) -> dict[str, Any]:
    """A row of `edges`, with a place in a.py."""
    found = list(origins) or ["parse"]
    places = [{"path": "a.py", "start_line": line, "chunk_id": "c0"} for line in range(1, min(weight, 3) + 1)]
    return {
        "source": source, "relation": relation, "target": target, "origin": found[0], "origins": found,
        "binding": "local", "weight": weight, "evidence": places,
    }  # fmt: skip


def mention(entity: str, chunk: str, start: int = 0, kind: str = "reference") -> dict[str, Any]:
    """A row of `mentions`."""
    return {"entity": entity, "chunk_id": chunk, "kind": kind, "start": start, "end": start + 1, "line": 1, "text": "x"}


def chunk(id: str, path: str = "a.py", text: str = "x") -> dict[str, Any]:
    """A row of `chunks`."""
    span = {"start": 0, "end": len(text), "start_line": 1, "end_line": 1}
    return {"chunk_id": id, "path": path, **span, "trail": ["T"], "text_hash": digest(text), "text": text}


class WrittenHome:
    """A home whose graph is what a test says."""

    def __init__(self, folder: Path, corpus: str = "written") -> None:
        self.layout = Layout(folder)
        claim_home(self.layout, CorpusSpec("folder", f"/nowhere/{corpus}", ""))
        self.chunked: dict[str, str] = {}

    def write(self, entities: Rows, edges: Rows = (), mentions: Rows = (), chunks: Rows = ()) -> str:  # type: ignore[assignment]
        """Make this the current graph, and return its generation; every path of a chunk is a document."""
        self.chunked = {KEY: digest(list(chunks))}
        manifest = {"fingerprint": self.chunked[KEY]}
        paths = sorted({row["path"] for row in chunks})
        documents = [
            {"path": path, "sha256": digest(path), "characters": 9, "lines": 2, "parser": "python", "problem": "",
             "chunks": sum(row["path"] == path for row in chunks)}
            for path in paths
        ]  # fmt: skip
        for name, rows, schema in (("documents", documents, DOCUMENTS), ("chunks", chunks, CHUNKS)):
            write_table(self.layout.partition(KEY, name), rows, schema, manifest)
        tables = {
            "entities": _table(entities, ENTITIES, "id"),
            "edges": _table(edges, EDGES, "source", "relation", "target"),
            "mentions": _table(mentions, MENTIONS, "entity", "chunk_id", "start"),
        }
        current = generation(tables)
        write_store(self.layout.graph_store, tables, current)
        for name, table in tables.items():
            assert table.schema == GRAPH[name]
        write_json(self.layout.graph_record, {"generation": current, "chunks": digest(self.chunked)})
        return current


def write_ring(home: WrittenHome, size: int, weight: int = 1, per_file: int = 10) -> list[str]:
    """A ring of functions that call each other, `per_file` of them in a file; returns their ids."""
    paths = [f"m{number // per_file}.py" for number in range(size)]
    ids = [f"{path}::f{number}" for number, path in enumerate(paths)]
    home.write(
        [entity(id, f"f{number}", path=path) for number, (id, path) in enumerate(zip(ids, paths, strict=True))],
        [edge(id, "CALLS", ids[(number + 1) % size], weight=weight) for number, id in enumerate(ids)],
        [mention(id, f"c{path}") for id, path in zip(ids, paths, strict=True)],
        [chunk(f"c{path}", path) for path in sorted(set(paths))],
    )
    return ids


def of_case(data: Mapping[str, Rows]) -> tuple[Rows, Rows]:
    """The entities and edges of a case's graph.json."""
    entities = [entity(row["id"], row["name"], row["type"]) for row in data["entities"]]
    return entities, [edge(row["source"], row["type"], row["target"]) for row in data["relations"]]


def _table(rows: Iterable[Mapping[str, Any]], schema: pa.Schema, *keys: str) -> pa.Table:
    return pa.Table.from_pylist(sorted(rows, key=lambda row: [row[key] for key in keys]), schema)
