"""Chunks of Python with what the parser knows of them, by the names that stand in them: the truth for extractions."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.code.link import Site
from pipelines.code.stage import read_sites
from pipelines.code.tables import sites_of
from pipelines.corpus.scan import load_plan
from pipelines.evaluate.annotations import Annotated
from pipelines.evaluate.extraction_scores import Said, key
from pipelines.extract.names import find_name
from pipelines.graph.tables import ENTITIES
from pipelines.layout import Layout
from pipelines.tables import CHUNKS, read_table, read_tables

CHUNKS_OF_CODE = 60
_LEAST_EDGES = 3
_RELATIONS = ("CALLS", "DEFINED_IN", "INHERITS_FROM", "REFERENCES")
"""Imports have the file itself as their source, which no text of the file names."""


def code_chunks(layout: Layout, most: int = CHUNKS_OF_CODE) -> tuple[list[Annotated], list[Said]]:
    """Return `most` chunks of Python, the same ones each time, and the truth of each.

    A relation counts if both its ends are named in the chunk, by the last parts of their names; a name's type is that
    of its symbol. That one refers to what it calls or inherits goes without saying.
    Chunks with fewer than three relations show little, and are passed over.
    """
    entities = read_table(layout.graph / "entities.parquet", ENTITIES).to_pylist()
    types = {row["id"]: row["type"] for row in entities if row["path"].endswith(".py")}
    sites: dict[str, list[Site]] = defaultdict(list)
    for site in sites_of(read_sites(layout)["parse"]):
        if site.relation in _RELATIONS:
            sites[site.path].append(site)
    paths = (layout.partition(partition, "chunks") for partition in load_plan(layout))
    columns = ["chunk_id", "path", "start", "trail", "text", "text_hash"]
    rows = read_tables(paths, CHUNKS).select(columns).to_pylist()
    chunks, truths = [], []
    for row in sorted((row for row in rows if row["path"] in sites), key=lambda row: str(row["chunk_id"])):
        truth = _truth(row, sites[row["path"]], types)
        if len(truth.edges) >= _LEAST_EDGES:
            id, path, start, trail, text, text_hash = (row[name] for name in columns)
            chunks.append(Annotated(id, path, start, tuple(trail), text, text_hash))
            truths.append(truth)
        if len(chunks) == most:
            break
    return chunks, truths


def _truth(chunk: Mapping[str, Any], sites: Sequence[Site], types: Mapping[str, str]) -> Said:
    text, start = chunk["text"], chunk["start"]
    names: dict[str, str] = {}
    edges = set()
    for site in sites:
        if not start <= site.start < start + len(text):
            continue
        ends = [_last(site.source), _last(site.target)]
        if all(ends) and ends[0] != ends[1] and all(find_name(text, name) for name in ends):
            source, target = map(key, ends)
            edges.add((source, site.relation, target))
            names[source], names[target] = types.get(site.source, ""), types.get(site.target, "")
    said = {(source, target) for source, relation, target in edges if relation != "REFERENCES"}
    return Said(names, frozenset(edge for edge in edges if edge[1] != "REFERENCES" or (edge[0], edge[2]) not in said))


def _last(id: str) -> str:
    """The last part of a symbol's name; "" of a module."""
    return id.partition("::")[2].rpartition(".")[2]
