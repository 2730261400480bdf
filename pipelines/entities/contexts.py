"""What a graph knows around some entities: where they are mentioned, in what words, and what they have edges with."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.layout import Layout
from pipelines.stored import stored_table

_AROUND = 120
"""Characters of a text on either side of a name that say what it means there."""
Place = dict[str, Any]


@dataclass
class Context:
    """One entity's."""

    name: str
    types: list[str]
    place: Place | None
    """Its first: path and start_line."""
    described: str = ""
    """Its name, and the words around its first mention."""
    mentions: int = 0
    chunks: dict[str, Place] = field(default_factory=dict)
    """{chunk id: the first place in it}"""
    neighbours: set[str] = field(default_factory=set)

    def row(self, id: str) -> dict[str, Any]:
        """As scripts read it."""
        return {"id": id, "name": self.name, "types": self.types, "mentions": self.mentions, "place": self.place}


Contexts = dict[str, Context]


def load_contexts(graph: duckdb.DuckDBPyConnection, layout: Layout, ids: Sequence[str]) -> Contexts:
    """Return what the graph and the chunks have of some entities, by id."""
    graph.execute("CREATE OR REPLACE TEMP TABLE asked AS SELECT unnest($1::VARCHAR[]) AS id", [list(ids)])
    found = {}
    query = "SELECT id, name, types, path, start_line FROM entities SEMI JOIN asked USING (id)"
    for id, name, types, path, line in graph.execute(query).fetchall():
        found[id] = Context(name, types, _place(path, line) if path else None, name)
    query = "SELECT entity, chunk_id, start, line FROM mentions JOIN asked ON entity = id"
    mentions = graph.execute(query).fetchall()
    texts = _texts(layout, {chunk for _, chunk, _, _ in mentions})
    for id, chunk, start, line in sorted(mentions, key=lambda row: (row[0], texts[row[1]]["path"], row[2])):
        context, row = found[id], texts[chunk]
        context.mentions += 1
        here = context.chunks.setdefault(chunk, _place(row["path"], line))
        if context.mentions == 1:
            context.place = context.place or here
            at = start - row["start"]
            words = row["text"][max(at - _AROUND, 0) : at + len(context.name) + _AROUND]
            context.described = f"{context.name}: {' '.join(words.split())}"
    query = "SELECT source, target FROM edges WHERE source IN (FROM asked) OR target IN (FROM asked)"
    for source, target in graph.execute(query).fetchall():
        for id, other in ((source, target), (target, source)):
            if id in found:
                found[id].neighbours.add(other)
    return found


def _place(path: str, line: int) -> Place:
    return {"path": path, "start_line": line}


def _texts(layout: Layout, chunks: set[str]) -> dict[str, dict[str, Any]]:
    table = stored_table(layout, "chunks").select(["chunk_id", "path", "start", "text"])
    wanted = table.filter(pc.is_in(table["chunk_id"], pa.array(sorted(chunks), pa.string())))
    return {row["chunk_id"]: row for row in wanted.to_pylist()}
