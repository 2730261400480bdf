"""The node that says what a database holds of a corpus, and whether it is whole."""

import json
from dataclasses import dataclass, fields
from typing import Any, Literal

from pipelines.errors import CgragError
from pipelines.neo4j_store.connect import values
from pipelines.neo4j_store.lock import fence
from pipelines.neo4j_store.schema import MARKER, VERSION

State = Literal["ready", "loading"]


@dataclass(frozen=True)
class Marker:
    """What the last load said; `parts` has the hash of each part of each table, "" of those it was changing."""

    corpus: str
    source: str
    """The corpus's spec: two homes with another corpus of the same name are told apart by it."""
    version: int
    state: State
    load: str
    """Another one with every load: who reads sees by it that the graph was changed meanwhile."""
    generation: str
    chunks: str
    """The fingerprint of the chunks, which have no part in the generation."""
    parts: dict[str, dict[str, str]]
    counts: dict[str, int]
    relations: list[tuple[str, str]]
    """(relation, origin) of the edges."""


def read_marker(session: Any, corpus: str) -> Marker | None:
    """Return what is said of a corpus, None where nothing is.

    Raises:
        CgragError: a newer version of this program wrote it.
    """
    rows = values(session, f"MATCH (m:{MARKER} {{corpus: $corpus}}) RETURN properties(m)", corpus=corpus)
    return marker_of(rows[0][0]) if rows else None


def read_markers(session: Any) -> dict[str, Marker | CgragError]:
    """Return the marker of every corpus in the database, by name, or why it cannot be read."""
    found: dict[str, Marker | CgragError] = {}
    for corpus, stored in values(session, f"MATCH (m:{MARKER}) RETURN m.corpus, properties(m) ORDER BY m.corpus"):
        try:
            found[corpus] = marker_of(stored)
        except CgragError as error:
            found[corpus] = error
    return found


def marker_of(stored: dict[str, Any]) -> Marker:
    """Return the marker of a node's properties; raises as `read_marker` does."""
    corpus = stored.get("corpus")
    if stored.get("version", 0) > VERSION:
        raise CgragError(
            f"The graph {corpus} in Neo4j was loaded by a newer version of cgrag.",
            f"Upgrade cgrag, or remove that graph:  cgrag neo4j remove {corpus}",
        )
    try:
        known: dict[str, Any] = {field.name: stored[field.name] for field in fields(Marker)}
        known |= {name: json.loads(known[name]) for name in ("parts", "counts", "relations")}
        known["relations"] = [(relation, origin) for relation, origin in known["relations"]]
        return Marker(**known)
    except (KeyError, TypeError, ValueError) as error:
        raise CgragError(
            f"The node {MARKER} of {corpus} in Neo4j is damaged: {error}",
            f"Remove that graph and load it again:  cgrag neo4j remove {corpus}",
        ) from error


def write_marker(session: Any, marker: Marker) -> None:
    """Store a marker in place of the last one of its corpus."""
    session.run(f"MERGE (m:{MARKER} {{corpus: $corpus}}) SET m = $properties", properties_of(marker)).consume()


def end_load(transaction: Any, marker: Marker) -> None:
    """Store a marker in place of that of the same load.

    Raises:
        LockLost: another loader's is there by now.
    """
    fence(transaction, marker.corpus, marker.load)
    query = f"MATCH (m:{MARKER} {{corpus: $corpus}}) SET m = $properties"
    transaction.run(query, properties_of(marker)).consume()


def properties_of(marker: Marker) -> dict[str, Any]:
    """The parameters with which `write_marker` stores it."""
    stored = {
        **vars(marker),
        "parts": json.dumps(marker.parts, sort_keys=True),
        "counts": json.dumps(marker.counts, sort_keys=True),
        "relations": json.dumps(marker.relations),
    }
    return {"corpus": marker.corpus, "properties": stored}
