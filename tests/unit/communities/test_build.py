"""Communities: nested, complete, the same for the same rows; weights, modularity and ranks against plain formulas."""

import itertools
import math
import random
from collections import defaultdict

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.communities.build import build_communities
from pipelines.communities.divide import divide, labels, modularity
from pipelines.communities.names import key_words
from pipelines.communities.units import WEIGHTS, make_units
from pipelines.settings import CommunitySettings
from pipelines.tables import digest
from tests.graphs import edge, entity

KNOWN = ("parse", "link")
NUMBERS = st.integers(0, 11)
EDGES = st.lists(st.tuples(NUMBERS, st.sampled_from(["CALLS", "IMPORTS", "BORDERS"]), NUMBERS, st.integers(1, 9)))


def functions(count):
    return [entity(f"m{number}.py::f{number}", f"f{number}", path=f"m{number}.py") for number in range(count)]


def between(found):
    """Rows of edges between functions, one for each (source, relation, target)."""
    weights = {(f"m{a}.py::f{a}", r, f"m{b}.py::f{b}"): w for a, r, b, w in found}
    return [edge(a, r, b, weight=w) for (a, r, b), w in weights.items()]


def cliques(*sizes, bound=()):
    """Functions of which those of one clique all call each other, and the pairs `bound` besides."""
    numbers, found, first = [], [], 0
    for size in sizes:
        clique = range(first, first + size)
        numbers.append(clique)
        found += [(a, "CALLS", b, 1) for a, b in itertools.combinations(clique, 2)]
        first += size
    return functions(first), between([*found, *((a, "CALLS", b, 1) for a, b in bound)])


def build(entities, edges, largest=150, levels=3):
    return build_communities(entities, edges, KNOWN, CommunitySettings(largest=largest, levels=levels))


def members_of(built):
    found = defaultdict(set)
    for row in built.memberships.to_pylist():
        found[row["community"]].add(row["entity"])
    return found


@settings(max_examples=60)
@given(EDGES, st.integers(2, 6), st.randoms())
def test_levels_are_nested_and_hold_every_entity_once(found, largest, chance):
    entities, edges = functions(12), between(found)
    built = build(entities, edges, largest)
    members = members_of(built)
    rows = {row["id"]: row for row in built.communities.to_pylist()}
    seen = [(row["entity"], row["level"]) for row in built.memberships.to_pylist()]
    assert len(seen) == len(set(seen))
    for id, row in rows.items():
        assert (id, row["size"]) == (digest(sorted(members[id])), len(members[id]))
        assert set(row["central"]) <= members[id] and row["name"]
        if row["level"]:
            assert members[id] < members[row["parent"]]
            assert (rows[row["parent"]]["level"], rows[row["parent"]]["size"] > largest) == (row["level"] - 1, True)
    bound = {end for row in edges if row["source"] != row["target"] for end in (row["source"], row["target"])}
    assert {entity for entity, level in seen if level == 0} == bound
    assert built.alone == 12 - len(bound)
    chance.shuffle(entities)
    chance.shuffle(edges)
    again = build(entities, edges, largest)
    assert (again.communities, again.memberships) == (built.communities, built.memberships)


@settings(max_examples=60)
@given(EDGES)
def test_weights_are_those_of_the_plain_formula(found):
    edges = between(found)
    units = make_units(functions(12), edges, KNOWN)
    strength = defaultdict(float)
    for row in edges:
        if row["source"] != row["target"]:
            strength[frozenset((row["source"], row["target"]))] += WEIGHTS.get(row["relation"], 1) * math.log2(
                1 + row["weight"]
            )
    degree = {name: sum(s for pair, s in strength.items() if name in pair) for name in units.ids}
    wanted = {pair: s / math.sqrt(math.prod(degree[end] for end in pair)) for pair, s in strength.items()}
    assert {frozenset((units.ids[a], units.ids[b])): w for (a, b), w in units.pairs.items()} == pytest.approx(wanted)


@given(
    st.dictionaries(st.tuples(st.integers(0, 6), st.integers(0, 6)).filter(lambda p: p[0] < p[1]), st.floats(0.1, 9)),
    st.lists(st.integers(0, 2), min_size=7, max_size=7),
)
def test_modularity_is_newmans(pairs, label):
    total = sum(pairs.values())
    degree = [sum(w for pair, w in pairs.items() if unit in pair) for unit in range(7)]
    wanted = sum(
        (pairs.get((min(a, b), max(a, b)), 0) - degree[a] * degree[b] / (2 * total)) / (2 * total)
        for a in range(7)
        for b in range(7)
        if pairs and label[a] == label[b]
    )
    assert modularity(7, pairs, label) == pytest.approx(wanted, abs=1e-9)


def test_cliques_are_found_and_a_chain_of_them_is_divided_again():
    sizes = [5] * 40
    chain = [(5 * number, 5 * number + 5) for number in range(39)]
    built = build(*cliques(*sizes, bound=chain), largest=5)
    finest = {frozenset(found) for found in members_of(built).values()}
    assert {frozenset(f"m{5 * n + k}.py::f{5 * n + k}" for k in range(5)) for n in range(40)} <= finest
    levels = {row["level"] for row in built.communities.to_pylist()}
    assert levels == set(range(len(built.modularity))) > {0}


def test_a_helper_that_everything_calls_unites_nothing():
    entities, edges = cliques(5, 5, 5)
    hub = entity("h.py::log", "log", path="h.py")
    edges += [edge(row["id"], "CALLS", hub["id"]) for row in entities]
    groups = [found - {hub["id"]} for found in members_of(build([*entities, hub], edges)).values()]
    assert sorted(map(len, groups)) == [5, 5, 5]


def test_one_giant_hub_is_one_community_however_large():
    entities = functions(400)
    built = build(entities, [edge(row["id"], "CALLS", entities[0]["id"]) for row in entities[1:]], largest=10)
    assert [(row["size"], row["central"][0]) for row in built.communities.to_pylist()] == [(400, "m0.py::f0")]


@pytest.mark.parametrize("entities", [[], functions(1), functions(5)], ids=["empty", "one", "unbound"])
def test_a_graph_without_edges_has_no_communities(entities):
    built = build(entities, [])
    assert (built.communities.num_rows, built.memberships.num_rows, built.modularity) == (0, 0, [])
    assert built.alone == len(entities)


def test_parts_that_nothing_binds_are_communities_of_their_own():
    built = build(*cliques(3, 4, 2))
    assert [row["size"] for row in built.communities.to_pylist()] == [4, 3, 2]
    assert built.modularity == [pytest.approx(1 - (4**2 + 3**2 + 2**2) / 9**2)]


def test_edges_of_other_origins_bind_nothing():
    a, b = functions(2)
    assert build([a, b], [edge(a["id"], "CALLS", b["id"], "llm")]).communities.num_rows == 0


def test_what_is_defined_inside_goes_with_its_owner():
    rows = [
        entity("a.py", "a.py", "Module"),
        entity("a.py::C", "C", "Class"),
        entity("a.py::C.run", "C.run"),
        entity("a.py::C.run.inner", "C.run.inner"),
        entity("a.py::LIMIT", "LIMIT", "Variable"),
        entity("d.md", "d.md", "Concept", "d.md"),
        entity("d.md::Use", "Use", "Concept", "d.md"),
    ]
    owners = {"a.py::C": "a.py", "a.py::C.run": "a.py::C", "a.py::C.run.inner": "a.py::C.run", "a.py::LIMIT": "a.py"}
    edges = [edge(one, "DEFINED_IN", other) for one, other in (owners | {"d.md::Use": "d.md"}).items()]
    units = make_units(rows, edges, KNOWN)
    assert dict(zip(units.ids, units.members, strict=True)) == {
        "a.py": ["a.py", "a.py::LIMIT"],
        "a.py::C": ["a.py::C", "a.py::C.run", "a.py::C.run.inner"],
        "d.md": ["d.md"],
        "d.md::Use": ["d.md::Use"],
    }
    assert units.strengths == {}


def test_words_tell_a_community_from_the_rest():
    ours, rest = [frozenset({"vllm", "layers", "lora"})] * 6, [frozenset({"vllm", "layers", "fp8"})] * 10
    everywhere = {"vllm": 26, "layers": 16, "lora": 6, "fp8": 10}
    assert key_words(ours, everywhere, 26)[0] == "lora"
    assert "vllm" not in key_words(ours, everywhere, 26) and "lora" not in key_words(rest, everywhere, 26)


def test_labels_are_of_the_finest_group_down_to_a_level():
    pairs = {(0, 1): 1.0, (1, 2): 0.1, (2, 3): 1.0, (4, 5): 1.0}
    groups = divide([1] * 7, pairs, largest=2, levels=2)
    for level in (0, 1):
        label = labels(groups, 7, level)
        assert label[4] == label[5] and label[6] not in label[:6] and sorted(set(label)) == list(range(max(label) + 1))


def test_the_same_seed_for_any_state_of_the_process():
    entities, edges = functions(60), []
    chance = random.Random(3)
    for _ in range(150):
        edges += between([(chance.randrange(60), "CALLS", chance.randrange(60), 1)])
    unique = list({(row["source"], row["target"]): row for row in edges}.values())
    first = build(entities, unique, 8)
    random.seed(99)
    assert build(entities, unique, 8).communities == first.communities
