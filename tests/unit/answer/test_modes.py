"""Local, global and naive: what each is made from, how many calls it takes, and where it leads."""

import json
from pathlib import Path

import pytest

from pipelines.answer.answerer import Answerer
from pipelines.answer.local import local_sources, named_entities
from pipelines.answer.overview import MOST_MAPS, batches, chosen, dependencies_of, overview_sources, points_of
from pipelines.communities.stage import make_communities
from pipelines.communities.stored import Communities, Community, load_communities
from pipelines.errors import CgragError
from pipelines.graph.look_up import followed_edges, open_graph
from pipelines.summaries.stage import make_summaries
from tests.extraction import Extracted
from tests.fake_model import POINT, SAID, FakeModel

BROAD = "What are the main subsystems and how do they depend on each other?"


@pytest.fixture
def summarised(asked, fake):
    """The corpus with communities, each with a summary."""
    asked.change(communities={"largest": 3}, summaries={"levels": 3})
    make_communities(asked.settings)
    make_summaries(asked.settings, ask=True)
    fake.asked.clear()
    fake.bodies.clear()
    return asked


def answer(asked, question, mode, **options):
    with asked.answerer(mode=mode) as answerer:
        return answerer.answer(question, **options)


def test_local_has_the_edges_of_what_the_question_names_with_file_and_line(asked, fake):
    found = answer(asked, "How does the class Till treat a thing?", "local")
    assert (found.by, found.calls) == ("model", 1)
    edges = {source.text: f"{source.path}:{source.start_line}" for source in found.sources if "inherits" in source.text}
    assert edges == {"Till inherits from Keeper": "shop/till.py:4"}
    shown = fake.bodies[-1]["messages"][-1]["content"]
    assert "Till inherits from Keeper" in shown
    assert "def check(self, thing)" in shown  # and the chunks


def test_local_has_the_summaries_of_the_communities_around(summarised, fake):
    found = answer(summarised, "How does the class Till treat a thing?", "local")
    assert any(source.name.startswith("community ") for source in found.sources)
    assert all(source.path for source in found.sources)


def test_a_structural_question_is_answered_by_rows_in_local_mode_too(asked, fake):
    assert answer(asked, "What does Till inherit from?", "local").by == "graph"
    assert fake.requests == 0


def test_what_a_question_names_is_found_by_name_and_key_but_no_common_word(asked):
    graph = open_graph(asked.settings, None)
    found = {entity.id for entity in named_entities(graph, "How does `Till.check` of a keeper treat the thing?")}
    assert "shop/till.py::Till.check" in found
    assert "shop/base.py::Keeper" in found
    assert local_sources(graph, None, "of the and", [], []) == []


def test_global_maps_summaries_to_points_and_cites_places(summarised, fake):
    found = answer(summarised, BROAD, "global")
    assert (found.by, found.found, found.text) == ("model", True, SAID)
    assert 2 <= found.calls <= MOST_MAPS + 1
    assert found.calls == fake.requests
    cited = next(source for source in found.sources if source.cited)
    assert (summarised.root / cited.path).is_file()
    assert cited.start_line >= 1
    assert "The first part does it well." in fake.bodies[-1]["messages"][-1]["content"]
    assert answer(summarised, BROAD, "global").cached


def test_global_without_a_model_shows_the_summaries_and_dependencies(summarised, fake):
    found = answer(summarised, BROAD, "global", ask=False)
    assert found.sources
    assert fake.requests == 0


@pytest.mark.parametrize("act", [{"content": "Nothing."}, {"content": ""}, {"status": 400}, {"content": "no point"}])
def test_a_map_call_that_gives_nothing_leaves_the_summaries_as_sources(summarised, fake, act):
    fake.act = lambda question: act if "\npoint ::= " in fake.bodies[-1]["structured_outputs"]["grammar"] else None
    found = answer(summarised, BROAD, "global")
    assert found.text == SAID
    assert "On such things" in fake.bodies[-1]["messages"][-1]["content"]


def test_new_summaries_are_another_answer(summarised, fake):
    assert not answer(summarised, BROAD, "global").cached
    summarised.change(communities={"largest": 3}, summaries={"levels": 1})
    make_summaries(summarised.settings, ask=False)
    assert not answer(summarised, BROAD, "global").cached


def test_what_is_not_found_may_be_asked_of_the_summaries_where_there_are_any(summarised, fake):
    found = answer(summarised, "Which river flows through Vienna and Budapest?", "auto")
    assert (found.found, fake.requests) == (False, 0)
    assert "--mode global" in found.notes[1]


def test_without_communities_global_says_how_to_have_them(asked):
    with pytest.raises(CgragError, match="communities") as error:
        answer(asked, BROAD, "global")
    assert "cgrag run --select communities" in error.value.remedy


def test_without_a_summary_global_says_how_to_have_one(asked):
    make_communities(asked.settings)
    with pytest.raises(CgragError, match="has a summary yet") as error:
        answer(asked, BROAD, "global")
    assert "community_summaries" in error.value.remedy


def community(n, level=0, parent="", summary="It is about things. [1]", name="", size=10):
    return Community(f"c{n}", level, parent, size, name or f"name{n}", [f"m{n}"], [], [], summary, [(f"{n}.py", n + 1)])


def test_parts_that_fit_better_take_the_place_of_the_whole():
    rows = [
        community(1, name="engine", size=50),
        community(2, level=1, parent="c1", name="lora adapters", summary="LoRA adapters are loaded. [1]"),
        community(3, level=1, parent="c1", name="sampling"),
        community(4, name="docs", size=20),
    ]
    assert [row.id for row in chosen(Communities(rows), "How are LoRA adapters loaded?")] == ["c2", "c4"]
    assert [row.id for row in chosen(Communities(rows), "What is there?")] == ["c1", "c4"]


def test_the_number_of_calls_is_bounded_whatever_the_number_of_communities():
    parts = batches([community(n) for n in range(500)], 100)
    assert len(parts) == MOST_MAPS
    assert [row.id for part in parts for row in part] == [f"c{n}" for n in range(sum(map(len, parts)))]


def test_points_are_read_as_far_as_they_are_points():
    rows = [community(1), community(2)]
    found = points_of(f"{POINT}\n(11) Too good. [1]\n(3) It is so. [9]\nAnd no point.\n(2) The second is so. [2]", rows)
    assert [(point.rating, point.community.id) for point in found] == [(7, "c1"), (2, "c2")]
    sources = overview_sources(found, rows, [])
    assert [(source.n, source.path, source.start_line) for source in sources] == [(1, "1.py", 2), (2, "2.py", 3)]


def test_dependencies_are_counted_by_direction_with_the_heaviest_edge_as_their_example():
    edges = [
        ("m1", "CALLS", "m2", 1),
        ("m1", "IMPORTS", "m2", 3),
        ("m2", "CALLS", "m1", 1),
        ("m1", "DEFINED_IN", "m2", 9),
        ("m1", "CALLS", "elsewhere", 9),
    ]
    found = dependencies_of([community(1), community(2)], edges, {"m1": ("one.py", 7)})
    assert [source.text for source in found] == [
        "name1 depends on name2 by 2 edges, such as m1 IMPORTS m2.",
        "name2 depends on name1 by 1 edges, such as m2 CALLS m1.",
    ]
    assert [(source.path, source.start_line) for source in found] == [("one.py", 7), ("m2", 1)]


GEOGRAPHY = """
version = "1"
types = [{ name = "City", definition = "a city" }, { name = "River", definition = "a river" }]
[[relations]]
name = "flows_through"
definition = "the river flows through the city"
heads = ["River"]
tails = ["City"]
"""
RIVERS = [
    ["Seine", "River", ["flows_through", "Paris"]],
    ["Paris", "City"],
    ["Danube", "River", ["flows_through", "Vienna"]],
    ["Vienna", "City"],
]
PROSE = {"europe.md": "# Europe\n\nThe Seine flows through Paris. The Danube flows through Vienna.\n"}


@pytest.fixture
def rivers(tmp_path: Path):
    """Prose whose edges a scripted model gave, and a graph that follows them by a recorded override."""
    taxonomy = tmp_path / "geography.toml"
    taxonomy.write_text(GEOGRAPHY)
    with FakeModel(lambda text: {"content": RIVERS} if "Seine" in text and "Question" not in text else None) as model:
        corpus = Extracted(tmp_path, PROSE, model.url, policy="hybrid", taxonomy=taxonomy)
        corpus.run()
        corpus.options["admit"] = {corpus.recipe.id: "checked by hand"}
        corpus.change()
        corpus.home.build_graph()
        yield corpus


@pytest.mark.parametrize(
    ("question", "ends"),
    [
        ("What flows through Paris?", ["name:seine"]),
        ("Which rivers flow through Vienna?", ["name:danube"]),
        ("What does the Danube flow through?", ["name:vienna"]),
    ],
)
def test_a_relation_of_one_s_own_taxonomy_is_asked_in_its_words(rivers, question, ends):
    with Answerer(rivers.home.settings, mode="local") as answerer:
        found = answerer.answer(question)
    assert (found.by, found.found) == ("graph", True)
    assert [source.name for source in found.sources] == ends
    assert [(source.path, source.start_line) for source in found.sources] == [("europe.md", 3)]
    assert {row["relation"] for row in found.edges} == {"flows_through"}


@pytest.mark.parametrize(
    "question", ["What flows through Paris in spring?", "What flows through London?", "Is Paris big?"]
)
def test_other_questions_are_not_the_taxonomys(rivers, question):
    with Answerer(rivers.home.settings, mode="local") as answerer:
        assert answerer.answer(question, ask=False).by == "nobody"


def test_edges_that_are_not_admitted_answer_nothing(rivers):
    assert "flows_through" in {relation for _, relation, *_ in followed_edges(rivers.home.settings)}
    rivers.options.pop("admit")
    rivers.change()
    rivers.home.build_graph()
    assert "flows_through" not in {relation for _, relation, *_ in followed_edges(rivers.home.settings)}
    with Answerer(rivers.home.settings, mode="local") as answerer:
        assert answerer.answer("What flows through Paris?", ask=False).by == "nobody"


def test_the_json_tells_the_calls(summarised, cli, monkeypatch, fake):
    monkeypatch.setenv("CGRAG_HOME", str(summarised.settings.home))
    monkeypatch.setenv("CGRAG_LLM_URLS", fake.url)
    monkeypatch.setenv("CGRAG_EXTRACT__MODEL", "fake-model")
    monkeypatch.setenv("CGRAG_COMMUNITIES__LARGEST", "3")
    monkeypatch.setenv("CGRAG_SUMMARIES__LEVELS", "3")
    said = cli("answer", BROAD, "--mode", "global", "--json")
    assert said.code == 0
    assert json.loads(said.out)["calls"] >= 2
    assert "model calls" in said.err
    assert load_communities(summarised.settings).rows
