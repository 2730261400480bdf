"""From docs to the code that they speak of."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.graph.admission import KNOWN
from pipelines.graph.look_up import open_graph
from pipelines.lexical.index import load_index
from pipelines.retrieve.doc_hop import EVERY, DocHop, spread
from pipelines.retrieve.graph_search import GraphSearch
from tests.support import write_tree

FILES = {
    "src/alpha.py": "def weigh_parcel():\n    return 1\n",
    "src/beta.py": "class Conveyor:\n    speed = 1\n",
    "src/gamma.py": "def unrelated():\n    return 3\n",
    "docs/use.md": "# Shipping costs\n\nShipping costs follow [the code](../src/alpha.py), and `Conveyor` moves it.\n",
    **{f"docs/n{number}.md": f"# Note {number}\n\nOther shipping costs, number {number}.\n" for number in range(8)},
}
QUESTION = "what are shipping costs of the code"


@pytest.fixture
def built(home, tree):
    home.build(write_tree(tree, FILES))
    return home


def paths(search, k):
    return [result.path for result in search.search(QUESTION, k)]


numbers = st.lists(st.integers(0, 30), unique=True, max_size=12)


@given(numbers, numbers, st.integers(0, 14))
def test_every_fifth_place_is_for_what_was_reached(ranked, reached, k):
    found = spread(ranked, reached, k)
    assert len(set(found)) == len(found) == min(k, len({*ranked, *reached}))
    assert found == spread(ranked, reached, k + 3)[:k]
    assert [chunk for chunk in found if chunk in ranked and chunk not in reached] == [
        chunk for chunk in ranked if chunk in found and chunk not in reached
    ]
    assert found[: EVERY - 1] == ranked[: EVERY - 1][:k] or len(ranked) < EVERY - 1
    if not reached:
        assert found == ranked[:k]


def test_code_that_the_best_page_refers_to_stands_at_the_fifth_place(built):
    index = load_index(built.settings)
    plain = paths(GraphSearch(index, built.settings, ("parse",)), 9)
    linked = GraphSearch(index, built.settings, KNOWN).search(QUESTION, 9)
    assert [result.path for result in linked][:4] == plain[:4]
    assert (linked[4].path, linked[4].via) == ("src/alpha.py", "graph")
    assert linked[4].why == "docs/use.md:1 links to it"
    assert [result.rank for result in linked] == list(range(1, len(linked) + 1))
    ruled = GraphSearch(index, built.settings, (*KNOWN, "rule")).search(QUESTION, 12)
    assert {result.path: result.why for result in ruled if result.via == "graph"} == {
        "src/alpha.py": "docs/use.md:1 links to it",
        "src/beta.py": "docs/use.md:1 mentions it",
    }


def test_few_results_are_the_first_of_more(built):
    search = GraphSearch(load_index(built.settings), built.settings, None)
    longest = paths(search, 12)
    for k in range(3, 12):
        assert paths(search, k) == longest[:k]


def test_what_another_chunk_of_the_section_says_is_no_part_of_a_hit(home, tree):
    filler = "Nothing of interest stands here. " * 80
    text = f"# Shipping costs\n\nShipping costs of the code.\n\n{filler}\n\n{filler}\n\n[the code](../src/alpha.py)\n"
    home.build(write_tree(tree, FILES | {"docs/use.md": text}))
    hop = DocHop(open_graph(home.settings))
    chunks = [row for row in load_index(home.settings).table.to_pylist() if row["path"] == "docs/use.md"]
    said = {
        ("the code](" in row["text"]): hop.targets(row["chunk_id"], ["docs/use.md::Shipping costs"]) for row in chunks
    }
    assert said == {False: [], True: [("src/alpha.py", "link")]}
