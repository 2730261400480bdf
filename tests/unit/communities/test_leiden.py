"""Leiden in one order: connected communities, no move left that gains, as good as leidenalg, and calm."""

import random
from collections import defaultdict

import igraph
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.communities.divide import modularity
from pipelines.communities.leiden import leiden

COUNT = 14
pairs_of = st.dictionaries(
    st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)).filter(lambda pair: pair[0] < pair[1]),
    st.floats(0.1, 4),
    max_size=40,
)


def planted(groups, size, chance, within=0.4, across=0.01):
    """Pairs of a graph in which nodes of one group are bound more often."""
    count = groups * size
    return count, {
        (a, b): chance.uniform(0.5, 2)
        for a in range(count)
        for b in range(a + 1, count)
        if chance.random() < (within if a // size == b // size else across)
    }


@settings(max_examples=150)
@given(pairs_of, st.randoms())
def test_communities_are_connected_better_than_none_and_those_of_any_order(pairs, chance):
    label = leiden(COUNT, pairs)
    graph = igraph.Graph(COUNT, list(pairs))
    parts = defaultdict(list)
    for node, one in enumerate(label):
        parts[one].append(node)
    assert list(parts) == list(range(len(parts)))
    assert all(graph.induced_subgraph(part).is_connected() for part in parts.values())
    quality = modularity(COUNT, pairs, label)
    assert quality >= modularity(COUNT, pairs, range(COUNT)) - 1e-9
    assert quality >= modularity(COUNT, pairs, [0] * COUNT) - 1e-9
    shuffled = list(pairs.items())
    chance.shuffle(shuffled)
    assert leiden(COUNT, dict(shuffled)) == label


@pytest.mark.parametrize("seed", range(4))
def test_it_is_as_good_as_leidenalg(seed):
    leidenalg = pytest.importorskip("leidenalg")
    count, pairs = planted(12, 25, random.Random(seed))
    graph = igraph.Graph(count, list(pairs))
    other = leidenalg.find_partition(
        graph, leidenalg.ModularityVertexPartition, weights=list(pairs.values()), n_iterations=2, seed=seed
    )
    assert modularity(count, pairs, leiden(count, pairs)) > 0.98 * modularity(count, pairs, other.membership)


def test_planted_groups_are_found():
    count, pairs = planted(8, 20, random.Random(5), within=0.6, across=0.005)
    assert leiden(count, pairs) == [node // 20 for node in range(count)]


def test_a_new_node_changes_what_is_near_it():
    count, pairs = planted(30, 20, random.Random(6), within=0.4, across=0.004)
    before = leiden(count, pairs)
    after = leiden(count + 1, pairs | {(3, count): 1.0, (5, count): 1.0})
    groups = [
        {frozenset(node for node in range(count) if label[node] == one) for one in range(max(label) + 1)}
        for label in (before, after)
    ]
    assert len(groups[0] & groups[1]) >= 28


@pytest.mark.parametrize("count", [0, 1, 3])
def test_nodes_without_links_are_alone(count):
    assert leiden(count, {}) == list(range(count))
