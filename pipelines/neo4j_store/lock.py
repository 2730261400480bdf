"""One writer of a corpus at a time: a lock that no dead one keeps, and a token without which nothing is written."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from neo4j import Driver
from neo4j.exceptions import DriverError, Neo4jError

from pipelines.neo4j_store.schema import LOCK, MARKER


class LockLost(DriverError):
    """Another writer has the corpus now; what this one wrote, that one has seen."""

    def is_retryable(self) -> bool:
        return True


@contextmanager
def locked(driver: Driver, database: str | None, corpus: str) -> Iterator[None]:
    """Hold the lock of a corpus, waiting for it.

    The lock is a write that is never committed: the server undoes it, and lets the next one in, when this process or
    its connection ends. It may also end it by itself, after its own time; hence `fence`.
    """
    with driver.session(database=database) as session:
        transaction = session.begin_transaction()
        try:
            transaction.run(f"MERGE (l:{LOCK} {{corpus: $corpus}}) SET l.held = true", {"corpus": corpus}).consume()
            yield
        finally:
            with suppress(Neo4jError, DriverError):  # it is gone with its connection
                transaction.rollback()


def fence(transaction: Any, corpus: str, load: str) -> None:
    """Let a transaction write only while the corpus's marker has this writer's token; holds the marker until it ends.

    Raises:
        LockLost: it has another, or is gone.
    """
    query = (
        f"MATCH (m:{MARKER} {{corpus: $corpus}}) SET m.held = true "  # waits for whoever is changing the marker …
        "WITH m WHERE m.load = $load REMOVE m.held RETURN m.load"  # … and reads what that left
    )
    record = transaction.run(query, {"corpus": corpus, "load": load}).single()
    if record is None:
        raise LockLost(f"the graph {corpus} is being changed by another loader")
