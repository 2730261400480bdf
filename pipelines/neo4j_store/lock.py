"""One writer of a corpus at a time, by a lock that the server lets go of when its holder dies."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from neo4j import Driver
from neo4j.exceptions import DriverError, Neo4jError

from pipelines.neo4j_store.schema import LOCK


class LockLost(DriverError):
    """The server ended the transaction that holds the lock, as it may after a time; what was written stays."""

    def is_retryable(self) -> bool:
        return True


@contextmanager
def locked(driver: Driver, database: str | None, corpus: str) -> Iterator[Callable[[], None]]:
    """Hold the lock of a corpus, waiting for it; yields a function that raises LockLost once it is lost.

    The lock is a write that is never committed: the server undoes it, and lets the next one in, when this process or
    its connection ends.
    """
    with driver.session(database=database) as session:
        transaction = session.begin_transaction()

        def check() -> None:
            try:
                transaction.run("RETURN 1").consume()
            except Neo4jError as error:
                raise LockLost(f"the lock on {corpus} was lost: {error.message}") from error

        try:
            transaction.run(f"MERGE (l:{LOCK} {{corpus: $corpus}}) SET l.held = true", {"corpus": corpus}).consume()
            yield check
        finally:
            with suppress(Neo4jError, DriverError):  # it is gone with its connection
                transaction.rollback()
