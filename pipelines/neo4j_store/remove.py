"""Taking a corpus out of a database."""

import uuid
from typing import Any

from pipelines.errors import CgragError
from pipelines.neo4j_store.connect import connected, values
from pipelines.neo4j_store.lock import fence, locked
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
            load = uuid.uuid4().hex
            begun = f"MATCH (m:{MARKER} {{corpus: $corpus}}) SET m.state = 'loading', m.load = $load, m.parts = '{{}}'"
            values(session, begun, corpus=corpus, load=load)
            deleted = delete_nodes(session, corpus, load)
            values(session, f"MATCH (m:{MARKER} {{corpus: $corpus, load: $load}}) DELETE m", corpus=corpus, load=load)
    return deleted


def delete_nodes(session: Any, corpus: str, load: str) -> int:
    """Delete every node of a corpus with its relationships, and return how many there were; the marker stays.

    Raises:
        LockLost: the marker does not have the token `load` any more.
    """
    deleted = 0
    for label in reversed(NODES):
        query = (
            f"MATCH (n:{label} {{corpus: $corpus}}) WITH n LIMIT 2000 OPTIONAL MATCH (n)-[r]-() "
            "WITH n, collect(r) AS around FOREACH (r IN around | DELETE r) DELETE n RETURN count(n)"
        )

        def work(transaction: Any, query: str = query) -> int:
            fence(transaction, corpus, load)
            record = transaction.run(query, {"corpus": corpus}).single()
            return int(record[0]) if record else 0

        while found := session.execute_write(work):
            deleted += found
    return deleted
