"""Whether Neo4j is up to date, asked of the database itself."""

from collections.abc import Mapping
from typing import Any

from pipelines.errors import CgragError
from pipelines.neo4j_store.connect import connected
from pipelines.neo4j_store.load import corpus_name, is_current, stored_counts
from pipelines.neo4j_store.marker import read_marker
from pipelines.settings import Settings


def neo4j_problem(settings: Settings, record: Mapping[str, Any]) -> str:
    """Return why Neo4j does not hold the graph of a record (`graph.json`), "" where it does."""
    try:
        with connected(settings) as driver, driver.session(database=settings.neo4j_database) as session:
            marker = read_marker(session, corpus_name(settings))
    except CgragError as error:
        return error.problem
    if marker is None:
        return "never loaded"
    if marker.state == "loading":
        return "being loaded, or its load was cut off"
    return "" if is_current(marker, record["generation"], record["chunks"]) else "the graph has changed"


def neo4j_counts(settings: Settings) -> tuple[dict[str, int], dict[str, int]]:
    """Return {table: rows} as the marker says and as they are.

    Raises:
        CgragError: Neo4j is not there.
    """
    with connected(settings) as driver, driver.session(database=settings.neo4j_database) as session:
        marker = read_marker(session, corpus_name(settings))
        return marker.counts if marker else {}, stored_counts(session, corpus_name(settings))
