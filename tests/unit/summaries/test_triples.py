"""Which edges a model is shown of a community, in which order."""

from hypothesis import given
from hypothesis import strategies as st

from pipelines.summaries.triples import strongest
from tests.graphs import edge, entity

ENTITIES = {row["id"]: row for row in (entity(f"f{n}") for n in range(40))}
pairs = st.lists(st.tuples(st.integers(0, 39), st.integers(0, 39), st.integers(1, 9)), max_size=60)


def rows(found):
    return [edge(f"f{a}", "CALLS", f"f{b}", weight=w) for (a, b), w in {(a, b): w for a, b, w in found}.items()]


@given(pairs, st.integers(1, 30), st.randoms())
def test_they_are_edges_of_the_community_as_many_as_fit_in_any_order(found, most, chance):
    edges = rows(found)
    triples = strongest(edges, ENTITIES, most)
    known = {(row["source"], row["target"]) for row in edges if row["source"] != row["target"]}
    assert {(one.source, one.target) for one in triples} <= known
    assert len(triples) == min(most, len(known))
    chance.shuffle(edges)
    assert strongest(edges, ENTITIES, most) == triples


def test_what_others_use_comes_first_and_a_hub_leaves_room():
    hub = [edge(f"f{n}", "CALLS", "f0") for n in range(1, 30)]
    apart = [edge("f30", "CALLS", "f31"), edge("f32", "CALLS", "f31")]
    found = [(one.source, one.target) for one in strongest([*hub, *apart], ENTITIES, 6)]
    assert sum(target == "f0" for _, target in found) == 4 and ("f30", "f31") in found


def test_long_and_equal_names_and_a_place_that_is_missing():
    entities = ENTITIES | {"x": entity("x", "n" * 61), "y": entity("y", "f1"), "z": entity("z", "Using `f`")}
    edges = [edge("x", "CALLS", "f1"), edge("y", "CALLS", "f1"), edge("f1", "DEFINED_IN", "z") | {"evidence": []}]
    (only,) = strongest(edges, entities, 9)
    assert (only.fact, only.path, only.start_line) == ("`f1` defined in `Using 'f'`", "a.py", 1)


def test_a_line_that_moves_changes_no_fact():
    before = edge("f1", "CALLS", "f2")
    after = before | {"evidence": [{"path": "a.py", "start_line": 99, "chunk_id": "c9"}]}
    facts = [[one.fact for one in strongest([row], ENTITIES, 5)] for row in (before, after)]
    assert facts[0] == facts[1] == ["`f1` calls `f2`"]
