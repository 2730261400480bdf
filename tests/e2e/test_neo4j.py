"""The graph in a real Neo4j: the rows and walks of DuckDB's, whatever was loaded before or broken by others."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from pipelines.errors import CgragError
from pipelines.graph.look_up import open_graph
from pipelines.neo4j_store import load, marker, schema
from pipelines.neo4j_store.load import load_graph
from pipelines.neo4j_store.remove import remove_corpus
from pipelines.neo4j_store.snapshot import restore_snapshot, take_snapshot
from pipelines.neo4j_store.state import neo4j_problem
from pipelines.progress import no_report
from tests.graphs import chunk, edge, entity, mention, write_ring
from tests.neo4j_server import database_rows, home_rows

NAMES = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=6)
RELATIONS = ["CALLS", "REFERENCES", "has, a `thing`", "MENTIONED_IN"]


@st.composite
def graphs(draw):
    """Entities of odd names, edges between them, chunks, and mentions in these."""
    names = draw(st.lists(NAMES, min_size=1, max_size=6, unique=True))
    ids = [f"a.py::{name}" if draw(st.booleans()) else f"name:{name}" for name in names]
    entities = [
        entity(
            id,
            name,
            draw(st.sampled_from(["Function", "Chunk", "Odd type", "Concept"])),
            "a.py" if "::" in id[:6] else "",
        )
        for id, name in zip(ids, names, strict=True)
    ]
    triples = draw(
        st.sets(st.tuples(st.sampled_from(ids), st.sampled_from(RELATIONS), st.sampled_from(ids)), max_size=12)
    )
    edges = [
        edge(
            *triple,
            *draw(st.sampled_from([("parse",), ("link", "llm"), ("rule",), ("llm",)])),
            weight=draw(st.integers(1, 3)),
        )
        for triple in sorted(triples)
    ]
    chunks = [chunk(f"c{number}", f"{number % 2}.py", draw(NAMES)) for number in range(draw(st.integers(0, 4)))]
    places = st.tuples(
        st.sampled_from(ids), st.sampled_from([row["chunk_id"] for row in chunks] or ["-"]), st.integers(0, 2)
    )
    kinds = st.sampled_from(["reference", "rule", "extraction"])
    mentions = [mention(*place, draw(kinds)) for place in sorted(draw(st.sets(places, max_size=8 * bool(chunks))))]
    return entities, edges, mentions, chunks


@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(
    graphs(),
    st.sampled_from([None, ["parse", "link"], ["parse", "rule"]]),
    st.sampled_from(["in", "out", "both"]),
    st.integers(0, 3),
)
def test_any_graph_after_any_other_has_the_same_rows_and_walks(graph, written, origins, direction, hops):
    graph.home.write(*written)
    graph.load()
    graph.assert_equal()
    here, there = (open_graph(graph.settings, origins, store) for store in ("duckdb", "neo4j"))
    try:
        assert here.relations == there.relations
        assert here.symbols() == there.symbols()
        ids = sorted(row["id"] for row in written[0])
        for relations in ([], ["CALLS", "has, a `thing`"]):
            found = here.edges(ids[:2], relations, direction, hops)
            assert found == there.edges(ids[:2], relations, direction, hops)
            assert here.evidence(found) == there.evidence(found)
            assert here.chunks(ids[:2], relations, direction, hops) == there.chunks(ids[:2], relations, direction, hops)
            assert here.paths(ids[0], ids[-1], relations, direction) == there.paths(
                ids[0], ids[-1], relations, direction
            )
        for row in written[0]:
            for name in (row["id"], row["name"], row["name"].swapcase(), f" {row['name']}"):
                assert here.find(name) == there.find(name)
            assert here.near(row["name"]) == there.near(row["name"])
    finally:
        here.close()
        there.close()


def test_a_load_of_nothing_new_writes_nothing_at_all(graph, neo4j):
    write_ring(graph.home, 30)
    first = graph.load()
    assert first.changes["nodes_created"] == 30 + 3 + 3
    assert first.changes["relationships_created"] == 30 + 30 + 3
    with neo4j.driver() as driver, driver.session() as session:
        session.run("RETURN 1").consume()
        before = session.last_bookmarks().raw_values
        again = graph.load()
        session.run("RETURN 1").consume()
        assert session.last_bookmarks().raw_values == before  # no transaction was committed in between
    assert (again.changed, set(again.changes.values()), again.generation) == (0, {0}, first.generation)
    assert (
        neo4j_problem(graph.settings, {"generation": first.generation, "chunks": "another"}) == "the graph has changed"
    )


def test_an_edit_writes_what_it_changes(graph):
    ids = write_ring(graph.home, 300)
    graph.load()
    database = home_rows(graph.home.layout, graph.home.chunked)
    database["entities"][0]["start_line"] += 1
    lost = database["edges"].pop()
    tables = [database[name] for name in ("entities", "edges", "mentions", "chunks")]
    graph.home.write(*tables)
    result = graph.load()
    assert result.written == {"document": 0, "chunk": 0, "entity": 1, "edge": 0, "mention": 0}
    assert result.deleted == {"document": 0, "chunk": 0, "entity": 0, "edge": 1, "mention": 0}
    assert lost["source"] in ids
    graph.assert_equal()


def test_what_is_deleted_goes_with_all_its_relationships(graph):
    write_ring(graph.home, 40)
    graph.load()
    write_ring(graph.home, 20)
    result = graph.load()
    assert (result.deleted["entity"], result.deleted["chunk"], result.deleted["document"]) == (20, 2, 2)
    graph.assert_equal()
    graph.home.write([])
    graph.load()
    graph.assert_equal()


def test_corpora_lie_beside_each_other_and_other_products_data_are_never_touched(new_graph, neo4j):
    neo4j.values(
        "CREATE (s:Sentinel {k: 1}), (d:Document {id: 'm0.py'}), (c:Chunk {corpus: 'other', id: 'cm0.py'}), "
        "(e:Entity:Function {name: 'f0', id: 'm0.py::f0'}), (e)-[:CALLS {corpus: 'other'}]->(e), "
        "(c)-[:FROM_DOCUMENT]->(d)"
    )
    foreign = (
        "MATCH (n) WHERE coalesce(n.corpus, 'other') = 'other' OPTIONAL MATCH (n)-[r]->(m) "
        "RETURN labels(n), properties(n), type(r), properties(r), labels(m) ORDER BY labels(n)"
    )
    before = neo4j.values(foreign)
    assert len(before) == 4
    try:
        first, second = new_graph(), new_graph()
        for graph, size in ((first, 20), (second, 30)):
            write_ring(graph.home, size)
            graph.load()
        first.assert_equal()
        second.assert_equal()
        write_ring(first.home, 10)
        first.load()
        assert remove_corpus(first.settings, first.name) == 10 + 1 + 1
        second.assert_equal()
        assert neo4j.values("MATCH (n {corpus: $name}) RETURN n", name=first.name) == []
        with pytest.raises(CgragError, match=f"has no graph named {first.name}"):
            remove_corpus(first.settings, first.name)
        assert neo4j.values(foreign) == before
    finally:
        neo4j.values("MATCH (n) WHERE coalesce(n.corpus, 'other') = 'other' AND NOT n:CgragGraph DETACH DELETE n")


def test_another_corpus_of_the_same_name_is_refused_with_what_to_do(new_graph):
    first = new_graph()
    write_ring(first.home, 10)
    first.load()
    other = new_graph()
    write_ring(other.home, 10)
    other.settings = other.settings.model_copy(update={"neo4j_corpus": first.name})
    with pytest.raises(
        CgragError, match=f"already holds a graph named {first.name}, of /nowhere/{first.name}"
    ) as error:
        other.load()
    assert "CGRAG_NEO4J_CORPUS" in error.value.remedy


@pytest.mark.parametrize(
    "damage",
    [
        "MATCH (n:Entity {corpus: $corpus}) WITH n LIMIT 3 DETACH DELETE n",
        "MATCH (:Entity {corpus: $corpus})-[r:CALLS]->() WITH r LIMIT 3 DELETE r",
        "MATCH (a:Entity {corpus: $corpus})-[r:CALLS]->(b) WITH a, r, b LIMIT 3 "
        "CREATE (a)-[twin:CALLS]->(b) SET twin = properties(r)",
        "MATCH (c:Chunk {corpus: $corpus}) WITH c LIMIT 1 DETACH DELETE c",
        "MATCH (d:Document {corpus: $corpus}) WITH d LIMIT 1 DETACH DELETE d",
        "MATCH (:Chunk {corpus: $corpus})-[r:FROM_DOCUMENT]->() WITH r LIMIT 1 DELETE r",
    ],
)
def test_what_others_break_is_seen_and_mended(graph, neo4j, damage):
    write_ring(graph.home, 30)
    graph.load()
    neo4j.values(damage, corpus=graph.name)
    result = graph.load()
    assert 0 < result.changed < 20
    graph.assert_equal()


def test_readers_refuse_what_is_not_whole_or_not_the_homes(graph, neo4j):
    def opened():
        return open_graph(graph.settings, None, "neo4j")

    with pytest.raises(CgragError, match="has no knowledge graph yet"):
        opened()
    write_ring(graph.home, 10)
    with pytest.raises(CgragError, match=f"no graph named {graph.name} yet"):
        opened()
    graph.load()
    walk = opened()
    assert len(walk.edges(["m0.py::f3"])) == 2
    neo4j.values("MATCH (m:CgragGraph {corpus: $name}) SET m.state = 'loading', m.load = 'x'", name=graph.name)
    with pytest.raises(CgragError, match="was changed while it was read"):
        walk.edges(["m0.py::f3"])
    walk.close()
    with pytest.raises(CgragError, match="is being loaded, or its load was cut off"):
        opened()
    graph.load()
    write_ring(graph.home, 12)
    with pytest.raises(CgragError, match="is another than the home's"):
        opened()


def test_a_wrong_password_is_told_without_it(graph, neo4j):
    if "NEO4J_PASSWORD" not in neo4j.environment:
        pytest.skip("the Neo4j of NEO4J_URI wants no password")
    write_ring(graph.home, 10)
    with pytest.raises(CgragError, match="refuses the user neo4j") as error:
        load_graph(
            graph.settings.model_copy(update={"neo4j_password": SecretStr("wrong-one")}),
            graph.home.chunked,
            no_report,
            print,
        )
    assert "wrong-one" not in str(error.value)
    with pytest.raises(CgragError, match="no such database"):
        load_graph(
            graph.settings.model_copy(update={"neo4j_database": "nothere"}), graph.home.chunked, no_report, print
        )


def test_what_people_add_to_the_graph_stays_through_edits(graph, neo4j):
    ids = write_ring(graph.home, 30)
    graph.load()
    neo4j.values(
        "MATCH (a:Entity {corpus: $name, id: $id})-[r:CALLS]->(b) SET a:Reviewed, a.note = 'so', r.note = 'yes' "
        "CREATE (a)-[:LIKES {corpus: $name}]->(b)",
        name=graph.name,
        id=ids[0],
    )
    assert graph.load().changed == 0
    write_ring(graph.home, 30, weight=2)
    rows = home_rows(graph.home.layout, graph.home.chunked)
    for row in rows["entities"]:
        row["end_line"] += 1
        row["type"] = "Class"
    graph.home.write(*(rows[name] for name in ("entities", "edges", "mentions", "chunks")))
    assert graph.load().written["entity"] == 30
    added = (
        "MATCH (a:Entity {corpus: $name, id: $id})-[r:CALLS {weight: 2}]->(b)<-[:LIKES]-(a) "
        "RETURN labels(a), a.note, r.note"
    )
    ((labels, *notes),) = neo4j.values(added, name=graph.name, id=ids[0])
    assert (sorted(labels), notes) == (["Class", "Entity", "Reviewed"], ["so", "yes"])


def test_a_snapshot_brings_back_what_was_there(graph, neo4j, monkeypatch):
    write_ring(graph.home, 30)
    graph.load()
    neo4j.values(
        "MATCH (n:Entity {corpus: $name, id: 'm0.py::f1'}) SET n:Reviewed, n.note = 'so', n.marks = [1, 2]",
        name=graph.name,
    )
    everything = (
        "MATCH (n {corpus: $name}) WHERE NOT n:CgragGraph OPTIONAL MATCH (n)-[r]->(m) "
        "RETURN labels(n), properties(n), type(r), properties(r), m.id ORDER BY n.id, labels(n), type(r), m.id"
    )
    before = neo4j.values(everything, name=graph.name)
    kept = take_snapshot(graph.settings, graph.name, no_report)
    write_ring(graph.home, 50)
    graph.load()
    restored = restore_snapshot(graph.settings, kept, no_report)
    assert (restored.state, neo4j.values(everything, name=graph.name)) == ("ready", before)
    write_ring(graph.home, 30)
    assert graph.load().changed == 0
    with pytest.raises(CgragError, match="is no snapshot"):
        restore_snapshot(graph.settings, graph.home.layout.graph_store, no_report)
    neo4j.values("MATCH (n:Chunk {corpus: $name}) SET n.read = date()", name=graph.name)
    with pytest.raises(CgragError, match="a snapshot cannot keep"):
        take_snapshot(graph.settings, graph.name, no_report)


def test_a_new_way_of_storing_keeps_the_old_graph_first_and_the_way_back_works(graph, neo4j, monkeypatch):
    write_ring(graph.home, 30)
    graph.load()
    old = database_rows(neo4j, graph.name)
    write_ring(graph.home, 20)
    for module in (schema, load, marker):
        monkeypatch.setattr(module, "VERSION", 2)
    result = graph.load()
    assert Path(result.snapshot).exists() and result.written["entity"] == 20
    graph.assert_equal()
    restore_snapshot(graph.settings, Path(result.snapshot), no_report)
    assert database_rows(neo4j, graph.name) == old
    graph.load()
    for module in (schema, load, marker):
        monkeypatch.setattr(module, "VERSION", 1)
    with pytest.raises(CgragError, match="newer version"):
        graph.load()
    remove_corpus(graph.settings, graph.name)
