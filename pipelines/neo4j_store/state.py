"""Whether Neo4j is up to date, asked of the database itself."""

from collections.abc import Mapping
from typing import Any

from pipelines.errors import CgragError
from pipelines.neo4j_store.connect import connected
from pipelines.neo4j_store.load import corpus_name, is_current, stored_counts
from pipelines.neo4j_store.marker import read_marker
from pipelines.settings import Settings

NEVER = "never loaded"


def neo4j_problem(settings: Settings, record: Mapping[str, Any] | None) -> str:
    """Return why Neo4j does not hold the graph of a record (`graph.json`), "" where it does."""
    if record is None:
        return "there is no graph to load"
    corpus = corpus_name(settings)
    try:
        with connected(settings) as driver, driver.session(database=settings.neo4j_database) as session:
            marker = read_marker(session, corpus)
            if marker is None:
                return NEVER
            if marker.state == "loading":
                return "being loaded, or its load was cut off"
            if not is_current(marker, record["generation"], record["chunks"]):
                return "the graph has changed"
            there = stored_counts(session, corpus)
            differing = [
                f"{there[name]:,} {name} rows of {count:,}"
                for name, count in marker.counts.items()
                if there[name] != count
            ]
            return f"somebody else has changed it: {', '.join(differing)}" if differing else ""
    except CgragError as error:
        return error.problem
