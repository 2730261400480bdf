"""Taking a corpus out of a database."""

from typing import Any

from pipelines.errors import CgragError
from pipelines.neo4j_store.connect import connected, values
from pipelines.neo4j_store.lock import locked
from pipelines.neo4j_store.schema import MARKER, NODES
from pipelines.settings import Settings


def remove_corpus(settings: Settings, corpus: str) -> int:
    """Delete all that the database has of a corpus, and return how many nodes that were.

    Raises:
        CgragError: Neo4j is not there, or has no such corpus.
    """
    with connected(settings) as driver, driver.session(database=settings.neo4j_database) as session:
        known = [row[0] for row in values(session, f"MATCH (m:{MARKER}) RETURN m.corpus ORDER BY m.corpus")]
        if corpus not in known:
            there = ", ".join(known) or "none"
            raise CgragError(f"Neo4j has no graph named {corpus}; it has {there}.", "See them:  cgrag neo4j status")
        with locked(driver, settings.neo4j_database, corpus):
            marker = f"MATCH (m:{MARKER} {{corpus: $corpus}})"
            values(session, f"{marker} SET m.state = 'loading', m.load = randomUUID()", corpus=corpus)
            deleted = delete_nodes(session, corpus)
            values(session, f"{marker} DELETE m", corpus=corpus)
    return deleted


def delete_nodes(session: Any, corpus: str) -> int:
    """Delete every node of a corpus with its relationships, and return how many there were; the marker stays."""
    deleted = 0
    for label in reversed(NODES):
        query = (
            f"MATCH (n:{label} {{corpus: $corpus}}) WITH n LIMIT 2000 OPTIONAL MATCH (n)-[r]-() "
            "WITH n, collect(r) AS around FOREACH (r IN around | DELETE r) DELETE n RETURN count(n)"
        )
        while found := int(values(session, query, corpus=corpus)[0][0]):
            deleted += found
    return deleted
