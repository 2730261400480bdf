"""What the graph is in Neo4j: labels, relationship types, constraints and indexes.

    (:Chunk)-[:FROM_DOCUMENT]->(:Document)
    (:Entity:Function)-[:CALLS]->(:Entity:Class)      and the other relations
    (:Entity)-[:MENTIONED_IN]->(:Chunk)               one for each mention

Every node and relationship has a `corpus`, and nothing without it is ever written or deleted.
"""

import re
from typing import Any

VERSION = 1
"""Raise it when the same graph is stored in another way: a load then keeps a snapshot, and writes all anew."""
NODES = ("Document", "Chunk", "Entity")
MARKER = "CgragGraph"
LOCK = "CgragLock"
RESERVED_TYPES = ("FROM_DOCUMENT", "MENTIONED_IN")
FALLBACK = "RELATES_TO"
"""The type of a relation whose name can be none; its `relation` has the name itself."""
PLAIN = "[A-Za-z][A-Za-z0-9_]{0,59}"
"""What a type of the taxonomy is called; any other is a property only, and no label."""
STATEMENTS = (
    *(
        f"CREATE CONSTRAINT cgrag_{label.lower()} IF NOT EXISTS FOR (n:{label}) REQUIRE (n.corpus, n.id) IS UNIQUE"
        for label in NODES
    ),
    *(
        f"CREATE CONSTRAINT {name} IF NOT EXISTS FOR (n:{label}) REQUIRE n.corpus IS UNIQUE"
        for label, name in ((MARKER, "cgrag_graph"), (LOCK, "cgrag_lock"))
    ),
    *(
        f"CREATE INDEX cgrag_{label.lower()}_{name} IF NOT EXISTS FOR (n:{label}) ON (n.corpus, n.{name})"
        for label, name in (
            ("Document", "part"),
            ("Chunk", "part"),
            ("Entity", "part"),
            ("Entity", "name"),
            ("Entity", "key"),
        )
    ),
    "CREATE FULLTEXT INDEX cgrag_names IF NOT EXISTS FOR (n:Entity) ON EACH [n.name, n.key]",
)


def relationship_type(relation: str) -> str:
    """Return the type of the relationships of a relation.

    >>> relationship_type("CALLS"), relationship_type("has, a"), relationship_type("MENTIONED_IN")
    ('CALLS', 'RELATES_TO', 'RELATES_TO')
    """
    return relation if re.fullmatch(PLAIN, relation) and relation not in RESERVED_TYPES else FALLBACK


def create_schema(session: Any) -> None:
    """Create what is not there, and wait until all of it serves."""
    for statement in STATEMENTS:
        session.run(statement).consume()
    names = session.run(
        "SHOW INDEXES YIELD name, state WHERE name STARTS WITH 'cgrag_' AND state <> 'ONLINE' RETURN name"
    )
    for record in list(names):
        session.run("CALL db.awaitIndex($name, 300)", {"name": record["name"]}).consume()
