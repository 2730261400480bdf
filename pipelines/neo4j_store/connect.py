"""Reaching a Neo4j, and its errors in words that name what mends them."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from neo4j import Driver, GraphDatabase
from neo4j.exceptions import (
    AuthError,
    ConfigurationError,
    ConstraintError,
    DriverError,
    Neo4jError,
    ServiceUnavailable,
    SessionExpired,
)

from pipelines.errors import CgragError, Transient
from pipelines.settings import Settings

OLDEST = (5, 26)
"""The first with labels and types as parameters."""
_CONNECT_SECONDS = 5.0


@contextmanager
def told(settings: Settings) -> Iterator[None]:
    """Make of whatever goes wrong with the database a CgragError."""
    try:
        yield
    except (Neo4jError, DriverError) as error:
        raise explained(error, settings) from error


def explained(error: Neo4jError | DriverError, settings: Settings) -> CgragError:
    """Return what went wrong with the database, with the setting that mends it and without any secret."""
    where = f"Neo4j at {settings.neo4j_uri}"
    known = isinstance(error, Neo4jError) and "UnknownError" not in (error.code or "UnknownError")
    code, said = (error.code, error.message) if isinstance(error, Neo4jError) and known else (type(error).__name__, "")
    code, said = str(code), " ".join((said or str(error)).split())
    if isinstance(error, AuthError) or "CredentialsExpired" in code:
        return CgragError(
            f"{where} refuses the user {settings.neo4j_user}: {said}", "Set NEO4J_USER and NEO4J_PASSWORD."
        )
    if isinstance(error, ServiceUnavailable | SessionExpired):
        reason = re.search(r"reason \[[^]]*\] ([^)]*)", said)  # the rest says it once for each address
        said = reason[1] if reason else said
        return Transient(f"{where} cannot be reached: {said}", "Start it, or unset NEO4J_URI.")
    if isinstance(error, ConfigurationError):
        return CgragError(f"{where} cannot be asked: {said}", "Set NEO4J_URI, such as bolt://127.0.0.1:7687.")
    if code.endswith("DatabaseNotFound"):
        return CgragError(f"{where} has no such database: {said}", "Set NEO4J_DATABASE to one it has, or unset it.")
    if isinstance(error, ConstraintError):
        return CgragError(
            f"{where} has a constraint of somebody else's that the graph breaks: {said}",
            "Give the graph a database of its own: NEO4J_DATABASE, or another server.",
        )
    return CgragError(f"{where} refused: {said.rstrip('.')}{f' ({code})' if known else ''}.", "Run again:  cgrag run")


def configured(settings: Settings) -> str:
    """Return the address of the Neo4j.

    Raises:
        CgragError: there is none in the settings.
    """
    if settings.neo4j_uri is None:
        raise CgragError(
            "No Neo4j is configured.", "Set NEO4J_URI, such as bolt://127.0.0.1:7687, and NEO4J_USER, NEO4J_PASSWORD."
        )
    return settings.neo4j_uri


def open_driver(settings: Settings) -> Driver:
    """Return a driver of a server that answers, takes the login, and is new enough; to be closed.

    Raises:
        CgragError: none is configured, or it is not so.
    """
    uri = configured(settings)
    password = settings.neo4j_password
    with told(settings):
        driver = GraphDatabase.driver(
            uri,
            auth=(settings.neo4j_user, password.get_secret_value()) if password else None,
            connection_timeout=_CONNECT_SECONDS,
            max_transaction_retry_time=0,  # loads retry by themselves
            notifications_min_severity="OFF",
            telemetry_disabled=True,
        )
        try:
            check_version(_version(driver, settings), uri)
        except BaseException:
            driver.close()
            raise
    return driver


@contextmanager
def connected(settings: Settings) -> Iterator[Driver]:
    """Yield what `open_driver` returns, and close it; raises as it does."""
    driver = open_driver(settings)
    with driver, told(settings):
        yield driver


def _version(driver: Driver, settings: Settings) -> str:
    with driver.session(database=settings.neo4j_database) as session:
        found = values(session, "CALL dbms.components() YIELD name, versions RETURN name, versions[0]")
    return str(dict(map(tuple, found)).get("Neo4j Kernel", ""))


def check_version(version: str, uri: str) -> None:
    """Refuse a server that is too old; versions are 5.26.1 or, of later years, 2025.01.0.

    Raises:
        CgragError: it is too old, or no Neo4j.
    """
    found = tuple(int(part) for part in re.findall(r"\d+", version)[:2])
    if found < OLDEST:
        raise CgragError(
            f"Neo4j at {uri} is version {version or 'unknown'}; at least {OLDEST[0]}.{OLDEST[1]} is needed.",
            "Upgrade it, or unset NEO4J_URI: DuckDB does without.",
        )


def values(session: Any, query: str, **parameters: Any) -> list[list[Any]]:
    """Return the rows of a query."""
    return [list(record.values()) for record in session.run(query, parameters)]
