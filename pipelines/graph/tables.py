"""The schemas of the graph's tables, and its generation."""

from collections.abc import Mapping

import pyarrow as pa

from pipelines.tables import digest

RELATIONS = ("CALLS", "DEFINED_IN", "IMPORTS", "INHERITS_FROM", "REFERENCES", "RELATES_TO")
"""What a graph may always be asked for, whether it has such edges or not."""
ENTITIES = pa.schema(
    [
        pa.field("id", pa.string()),
        pa.field("type", pa.string()),  # Function, Class, Module, Variable, Concept; of a name one of its taxonomy
        pa.field("types", pa.list_(pa.string())),  # of a name all that were given it, the most usual first
        pa.field("name", pa.string()),  # Class.method, a heading's title, a path
        pa.field("key", pa.string()),  # what a search by bare name compares
        pa.field("path", pa.string()),  # "" of a name that is bound to nothing
        pa.field("start", pa.int64()),  # characters of the decoded text, half open
        pa.field("end", pa.int64()),
        pa.field("start_line", pa.int64()),  # 1-based, both inclusive
        pa.field("end_line", pa.int64()),
    ]
)
EVIDENCE = pa.struct(
    [pa.field("path", pa.string()), pa.field("start_line", pa.int64()), pa.field("chunk_id", pa.string())]
)
EDGES = pa.schema(
    [
        pa.field("source", pa.string()),
        pa.field("relation", pa.string()),
        pa.field("target", pa.string()),
        pa.field("origin", pa.string()),  # the strongest: parse, link, rule, cooccurrence, llm
        pa.field("origins", pa.list_(pa.string())),
        pa.field("binding", pa.string()),  # how its first site was resolved
        pa.field("weight", pa.int64()),  # places in the source
        pa.field("evidence", pa.list_(EVIDENCE)),  # the first of these places
    ]
)
MENTIONS = pa.schema(
    [
        pa.field("entity", pa.string()),
        pa.field("chunk_id", pa.string()),
        pa.field("kind", pa.string()),  # definition, reference, rule, or extraction (by a model)
        pa.field("start", pa.int64()),
        pa.field("end", pa.int64()),
        pa.field("line", pa.int64()),
        pa.field("text", pa.string()),
    ]
)
GRAPH = {"entities": ENTITIES, "edges": EDGES, "mentions": MENTIONS}


def generation(tables: Mapping[str, pa.Table]) -> str:
    """Return the id of a graph: a hash of its rows, which are sorted, whatever made them.

    >>> empty = {name: schema.empty_table() for name, schema in GRAPH.items()}
    >>> generation(empty) == generation(dict(reversed(empty.items())))
    True
    """
    hashes = []
    for name in sorted(tables):
        columns = [column.to_pylist() for column in tables[name].columns]
        hashes.append([name, tables[name].schema.names, digest(*columns)])
    return digest(hashes)
