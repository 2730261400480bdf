"""Walking the stored graph, compared with a walk over plain lists."""

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import CgragError
from pipelines.graph.store import open_store, read_generation, write_store
from pipelines.graph.tables import EDGES, generation
from pipelines.graph.walk import Walk

RELATIONS = ["CALLS", "REFERENCES"]
edge_sets = st.sets(
    st.tuples(st.sampled_from("abcdef"), st.sampled_from(RELATIONS), st.sampled_from("abcdef")), max_size=14
)


def edge_table(edges, origin="parse"):
    rows = [
        {"source": source, "relation": relation, "target": target, "origin": origin, "origins": [origin],
         "binding": "local", "weight": 1, "evidence": []}
        for source, relation, target in sorted(edges)
    ]  # fmt: skip
    return pa.Table.from_pylist(rows, EDGES)


def walk_over(table, **settings):
    database = duckdb.connect()
    database.register("rows", table)
    database.execute("CREATE TABLE edges AS SELECT * FROM rows")
    return Walk(database, **settings)


def distances(edges, start, direction):
    """Each node's distance from `start`, by relaxing until nothing changes."""
    found = {start: 0}
    for _ in edges:
        for source, _, target in edges:
            ways = {"out": [(source, target)], "in": [(target, source)], "both": [(source, target), (target, source)]}
            for here, there in ways[direction]:
                if here in found:
                    found[there] = min(found.get(there, 99), found[here] + 1)
    return found


@given(edge_sets, st.sampled_from(["in", "out", "both"]), st.integers(1, 4), st.sampled_from([[], ["CALLS"]]))
def test_neighbourhoods(edges, direction, hops, relations):
    walk = walk_over(edge_table(edges))
    kept = {edge for edge in edges if not relations or edge[1] in relations}
    reached = distances(kept, "a", direction)
    wanted = {}
    for edge in kept:
        ends = {"out": [edge[0]], "in": [edge[2]], "both": [edge[0], edge[2]]}[direction]
        distance = min((reached[end] + 1 for end in ends if end in reached), default=99)
        if distance <= hops:
            wanted[edge] = distance
    found = walk.edges(["a"], relations, direction, hops)
    assert {(edge.source, edge.relation, edge.target): edge.distance for edge in found} == wanted
    assert found == sorted(found, key=lambda edge: (edge.distance, edge.source, edge.relation, edge.target))


@given(edge_sets, st.sampled_from(["in", "out", "both"]))
def test_paths_are_the_shortest(edges, direction):
    paths = walk_over(edge_table(edges)).paths("a", "d", direction=direction)
    reached = distances(edges, "a", direction)
    assert {len(path) for path in paths} == ({reached["d"]} if "d" in reached else set())
    for path in paths:
        here = "a"
        for edge in path:
            assert here in (edge.source, edge.target)
            here = edge.target if here == edge.source and direction != "in" else edge.source
        assert here == "d" or direction == "both"


def test_only_the_origins_that_are_asked_for():
    table = pa.concat_tables([edge_table([("a", "CALLS", "b")]), edge_table([("a", "CALLS", "c")], "llm")])
    assert [edge.target for edge in walk_over(table).edges(["a"])] == ["b", "c"]
    assert [edge.target for edge in walk_over(table, origins=["parse", "link"]).edges(["a"])] == ["b"]


@pytest.fixture
def stored(graph, tmp_path):
    path = tmp_path / "graph.duckdb"
    write_store(path, graph.tables(), generation(graph.tables()))
    with open_store(path) as database:
        yield Walk(database)


@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("pkg/core.py::Base", ["pkg/core.py::Base"]),
        ("Base.run", ["pkg/core.py::Base.run"]),
        ("run", ["pkg/core.py::Base.run"]),
        ("BASE", ["pkg/core.py::Base"]),
        ("core.py", ["pkg/core.py"]),
        ("pkg/core.py", ["pkg/core.py"]),
        ("Deeper", ["docs/use.md::Use > Deeper"]),
        ("limit", ["pkg/core.py::LIMIT"]),
        ("nowhere", []),
    ],
)
def test_finding_by_name(name, ids, stored):
    assert [entity.id for entity in stored.find(name)] == ids


def test_near_names(stored):
    assert stored.near("helpr")[0] == "helper"


def test_evidence(stored):
    (edge,) = stored.edges(["pkg/more.py::More.go"], ["CALLS"], "out")
    assert [[place["start_line"] for place in places] for places in stored.evidence([edge])] == [[6, 7]]
    assert stored.evidence([]) == []


def test_a_new_graph_is_read_while_the_last_one_is_still_open(graph, tmp_path):
    path = tmp_path / "it's here" / "graph.duckdb"
    write_store(path, graph.tables(), "first")
    with open_store(path) as first:
        write_store(path, graph.tables(), "second")
        assert read_generation(path) == "second"
        assert first.execute("SELECT id FROM generation").fetchone() == ("first",)
        with pytest.raises(duckdb.Error, match="read-only"):
            first.execute("DELETE FROM edges")


def test_the_store_is_replaced_whole_and_a_bad_one_is_named(graph, tmp_path):
    path = tmp_path / "home" / "graph.duckdb"
    with pytest.raises(CgragError, match="cgrag run --select knowledge_graph"):
        open_store(path)
    write_store(path, graph.tables(), "first")
    write_store(path, graph.tables(), "second")
    assert read_generation(path) == "second"
    with pytest.raises(duckdb.Error):
        write_store(path, {"edges": 1}, "third")
    assert read_generation(path) == "second" and list(path.parent.iterdir()) == [path]
    path.write_bytes(b"damaged")
    with pytest.raises(CgragError, match="is damaged"):
        open_store(path)
