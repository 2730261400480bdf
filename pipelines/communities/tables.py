"""The schemas of the communities' tables."""

import pyarrow as pa

COMMUNITIES = pa.schema(
    [
        pa.field("id", pa.string()),  # hash of the members' ids, sorted
        pa.field("level", pa.int64()),  # 0: the whole graph divided; n: communities of level n - 1 divided
        pa.field("parent", pa.string()),  # of level 0 ""
        pa.field("size", pa.int64()),  # members
        pa.field("name", pa.string()),
        pa.field("central", pa.list_(pa.string())),  # entities that the others lead to, the first most
        pa.field("words", pa.list_(pa.string())),  # those that tell it from the rest, the first best
    ]
)
MEMBERSHIPS = pa.schema(
    [pa.field("entity", pa.string()), pa.field("level", pa.int64()), pa.field("community", pa.string())]
)
TABLES = {"communities": COMMUNITIES, "memberships": MEMBERSHIPS}
