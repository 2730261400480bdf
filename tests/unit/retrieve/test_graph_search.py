"""`search --graph`: what results say, and the command."""

import pytest

from cgrag import Corpus
from pipelines.graph.admission import KNOWN
from pipelines.lexical.index import load_index
from pipelines.retrieve.expand import Expansion
from pipelines.retrieve.graph_search import GraphSearch
from tests.support import write_tree


def test_results_of_the_graph_say_so_and_why(asked):
    results = asked.search("Who calls `weigh`?", 6)
    assert [result.rank for result in results] == [1, 2, 3, 4, 5, 6][: len(results)]
    assert {result.via for result in results[:2]} == {"lexical"}
    why = {result.part.name: result.why for result in results if result.via == "graph"}
    assert why["make_drawer"] == "calls weigh (shop/base.py:25)"
    assert all(result.why for result in results)


def test_the_definition_stands_before_what_was_reached(asked):
    found = asked.placed("Who calls `tick`?")
    whys = [result.why for result in asked.search("Who calls `tick`?", 9) if result.via == "graph"]
    assert [symbol.name for symbol in found.definitions.values()] == ["tick"]
    assert found.into([], 3) == list(dict.fromkeys([*found.definitions, *found.reached]))[:3]
    assert set(whys) <= {"defines tick (shop/loop.py:1)", "calls tick (shop/loop.py:1)"}
    assert "calls tick (shop/loop.py:1)" in whys


@pytest.mark.parametrize("question", ["Who calls `weigh`?", "how is a shop opened", "Which classes inherit `Keeper`?"])
def test_few_results_are_the_first_of_more(asked, question):
    longest = [result.chunk_id for result in asked.search(question, 12)]
    for k in range(1, 12):
        assert [result.chunk_id for result in asked.search(question, k)] == longest[:k]
    assert len(set(longest)) == len(longest)


def test_one_and_two_results_are_the_retrievers(asked, shop):
    for k in (1, 2):
        assert [r.chunk_id for r in asked.search("Who calls `weigh`?", k)] == [
            r.chunk_id for r in shop.search("Who calls `weigh`?", k)
        ]


def test_a_question_for_no_walk_is_searched_as_ever(asked, shop):
    assert asked.search("how is a shop opened", 7) == shop.search("how is a shop opened", 7)


def test_results_and_ranking_are_the_same_chunks(asked, shop):
    question = "Which methods does `FastTill` inherit?"
    ids = load_index(shop.settings).table["chunk_id"].to_pylist()
    again = GraphSearch(load_index(shop.settings), shop.settings, None)
    wanted = [result.chunk_id for result in asked.search(question, 9)]
    assert [ids[number] for number in asked.ranking(question, 9)] == wanted
    assert [result.chunk_id for result in again.search(question, 9)] == wanted


def test_expansion_gives_others_than_the_seeds_nearest_first(asked, shop):
    index = load_index(shop.settings)
    expansion = Expansion(index, shop.settings, KNOWN)
    seeds = asked.ranking("weight of a parcel in grams", 1)
    found = expansion.expand(seeds, 50)
    assert len(found) == len(set(found)) and not set(seeds) & set(found)
    assert [expansion.expand(seeds, most) for most in (0, 1, 3)] == [[], found[:1], found[:3]]
    first = index.table.slice(found[0], 1).to_pylist()[0]["text"]
    assert "weigh" in first
    assert expansion.expand([], 5) == []


@pytest.fixture
def in_shop(shop, monkeypatch):
    monkeypatch.setenv("CGRAG_HOME", str(shop.settings.home))
    monkeypatch.setenv("CGRAG_CHUNKING__CAP", "200")
    monkeypatch.setenv("CGRAG_CHUNKING__SECTION", "100")


def test_the_command_prints_the_reason(cli, in_shop):
    said = cli("search", "Who calls `weigh`?", "--graph", "--k", "5")
    assert said.code == 0
    assert "calls weigh (shop/base.py:25)" in said.out


def test_the_command_as_json(cli, in_shop):
    said = cli("search", "Who calls `weigh`?", "--graph", "--k", "5", "--json")
    rows = said.json["results"]
    assert {
        "rank",
        "path",
        "start",
        "end",
        "start_line",
        "end_line",
        "score",
        "via",
        "why",
        "name",
        "unit",
        "text",
    } <= (rows[0].keys())
    assert {row["via"] for row in rows} == {"lexical", "graph"}
    assert cli("search", "Who calls `weigh`?", "--k", "5", "--json").json["results"] != rows


def test_without_a_graph_it_names_the_command(cli, home, tree):
    home.build(write_tree(tree, {"a.py": "def f():\n    return 1\n"}))
    home.layout.graph_record.unlink()
    said = cli("search", "Who calls `f`?", "--graph")
    assert (said.code, said.out) == (1, "")
    assert "cgrag run" in said.err
    assert cli("search", "f").code == 0


def test_a_corpus_reads_a_new_graph(home, tree):
    note = "Which methods does Heir inherit, and from where.\n"
    code = {"a.py": "class Keeper:\n    def keep(self):\n        return 1\n", "one.md": note, "two.md": note}
    heir = "from {0} import Keeper\n\n\nclass Heir(Keeper):\n    pass\n"
    home.build(write_tree(tree, code | {"heir.py": heir.format("a")}))
    corpus = Corpus(home.settings.home)

    def by_graph():
        results = corpus.search("Which methods does `Heir` inherit?", 5, graph=True)
        return {result.path for result in results if "inherited by" in result.why}

    assert by_graph() == {"a.py"}
    home.build(write_tree(tree, {"b.py": code["a.py"], "heir.py": heir.format("b")}))
    assert by_graph() == {"b.py"}
