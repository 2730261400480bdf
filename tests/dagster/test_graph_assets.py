"""Facts, edges and graph through Dagster: what is redone, what is recorded, and what a failure leaves."""

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from assets import graph as graph_assets
from cgrag.definitions import defs
from pipelines.errors import CgragError
from pipelines.graph.invariants import Refused
from pipelines.graph.store import graph_record
from tests.support import write_tree

KEYS = [".", "ape", "bear", "cat"]
GRAPH = ["corpus_files", "chunks", "code_facts", "code_edges", "knowledge_graph"]


@pytest.fixture
def woods(built_zoo, run, records):
    """The zoo with calls across directories, its graph built."""
    write_tree(
        built_zoo,
        {
            "ape/gorilla.py": "from bear.panda import Panda\n\n\ndef gorilla():\n    return Panda().eat()\n",
            "bear/panda.py": "class Panda:\n    def eat(self): return 'bamboo'\n",
            "cat/lion.md": "# Lion\n\nunlike `bear.panda.Panda`\n",
        },
    )
    run(built_zoo, GRAPH)
    for asset in GRAPH:
        records.new(asset)
    return built_zoo


def assert_clean(home, corpus, new_home):
    clean = new_home()
    clean.build(corpus)
    assert home.graph_hashes() == clean.graph_hashes()


def stale(instance, asset):
    """{partition: what Dagster says of it}"""
    resolver = CachingStaleStatusResolver(instance, defs.resolve_asset_graph(), LoadingContextForTest(instance))
    keys = instance.get_dynamic_partitions("directories")
    return {key: resolver.get_status(dg.AssetKey(asset), key) for key in keys}


def redone(records):
    """What was materialized since the last look: partitions of facts, and how often edges and graph."""
    return records.new("code_facts"), len(records.new("code_edges")), len(records.new("knowledge_graph"))


def test_a_first_run_builds_every_partition_and_then_edges_and_graph(zoo, run, home, records, new_home):
    assert run(zoo, GRAPH) == GRAPH
    assert redone(records) == (KEYS, 1, 1)
    assert_clean(home, zoo, new_home)
    assert run(zoo, GRAPH) == []
    assert redone(records) == ([], 0, 0)


def test_all_are_of_the_graph_group():
    nodes = [defs.resolve_asset_graph().get(dg.AssetKey(name)) for name in GRAPH[2:]]
    assert {node.group_name for node in nodes} == {"graph"}
    parents = [{key.to_user_string() for key in node.parent_keys} for node in nodes]
    assert parents == [{"chunks"}, {"code_facts"}, {"code_edges", "extractions"}]
    assert [node.is_partitioned for node in nodes] == [True, False, False]


def test_materializations_say_what_came_of_them(woods, records, home):
    metadata = records.latest("code_facts", "ape").asset_materialization.metadata
    assert [metadata[name].value for name in ("files", "dagster/row_count", "pages", "links")] == [1, 2, 1, 0]
    assert "ape/gorilla.py::gorilla" in metadata["symbols_preview"].md_str
    edges, graph = (
        records.instance.fetch_materializations(dg.AssetKey(name), limit=1).records[0].asset_materialization
        for name in ("code_edges", "knowledge_graph")
    )
    assert edges.metadata["places_by_relation"].value == {
        "CALLS": 2, "DEFINED_IN": 3, "IMPORTS": 2, "REFERENCES": 1,
    }  # fmt: skip
    assert sum(edges.metadata["places_by_tier"].value.values()) == edges.metadata["dagster/row_count"].value == 8
    record = graph_record(home.layout)
    assert graph.metadata["edges"].value == record["edges_by_relation"]
    assert graph.metadata["entities"].value == record["entities_by_type"]
    assert graph.tags["dagster/data_version"] == record["generation"]


def test_a_changed_directory_redoes_its_own_facts_and_edges_and_graph_anew(woods, run, home, records, new_home):
    write_tree(woods, {"bear/panda.py": "class Panda:\n    def drink(self): return 'water'\n"})
    assert run(woods, GRAPH) == GRAPH
    assert redone(records) == (["bear"], 1, 1)
    assert ("ape/gorilla.py::gorilla", "bear/panda.py::Panda") in home.edges("CALLS")
    assert "bear/panda.py::Panda.eat" not in home.entities()
    assert_clean(home, woods, new_home)
    assert run(woods, GRAPH) == []


def test_a_directory_that_goes_leaves_nothing_in_the_graph(woods, run, home, records, new_home):
    (woods / "bear" / "panda.py").unlink()
    (woods / "bear").rmdir()
    run(woods, GRAPH)
    assert redone(records) == ([], 1, 1)
    assert not any(end.startswith("bear") for pair in home.edges() for end in pair)
    assert not any(name.startswith("bear") for name in home.entities())
    assert_clean(home, woods, new_home)


def test_the_ui_calls_just_the_facts_of_the_changed_chunks_stale(woods, run, records):
    assert set(stale(records.instance, "code_facts").values()) == {StaleStatus.FRESH}
    write_tree(woods, {"bear/panda.py": "class Panda: ...\n"})
    run(woods, ["corpus_files", "chunks"])
    found = stale(records.instance, "code_facts")
    assert {key for key, status in found.items() if status == StaleStatus.STALE} == {"bear"}
    run(woods, GRAPH)
    assert set(stale(records.instance, "code_facts").values()) == {StaleStatus.FRESH}


def test_selected_partitions_alone_get_facts(woods, run, records):
    write_tree(woods, {"bear/panda.py": "x = 1\n", "ape/gorilla.py": "y = 1\n"})
    run(woods, ["corpus_files", "chunks"])
    run(woods, ["code_facts"], ["ape"])
    assert records.new("code_facts") == ["ape"]


# failures


@pytest.fixture
def failing(monkeypatch):
    """Make the facts of some partitions fail until told otherwise."""
    keys = set()
    really_build = graph_assets.build_facts

    def build(layout, key, chunks):
        if key in keys:
            raise OSError(f"no luck with {key}")
        return really_build(layout, key, chunks)

    monkeypatch.setattr(graph_assets, "build_facts", build)
    return keys


def test_facts_that_fail_are_red_and_the_rest_is_done_and_linked(zoo, run, home, records, failing):
    failing.add("bear")
    with pytest.raises(CgragError, match="1 partitions of code_facts failed") as failed:
        run(zoo, GRAPH)
    assert "bear: OSError: no luck with bear" in str(failed.value)
    assert "cgrag resume --failed" in failed.value.remedy
    assert records.new("code_facts") == [".", "ape", "cat"]
    status = records.instance.get_status_by_partition(
        dg.AssetKey("code_facts"), KEYS, dg.DynamicPartitionsDefinition(name="directories")
    )
    assert {key for key, value in status.items() if value.value == "FAILED"} == {"bear"}
    state = home.state("code_facts")
    assert (state.state, state.todo) == ("failed", ["bear"])
    assert "ape/gorilla.py::gorilla" in home.entities()
    assert "bear/panda.py::Panda" not in home.entities()


def test_resuming_redoes_the_failed_facts_and_links_again(zoo, run, home, records, failing, new_home, cli):
    failing.add("bear")
    with pytest.raises(CgragError):
        run(zoo)
    redone(records)
    failing.clear()
    said = cli("resume", "--failed")
    assert said.code == 0
    assert records.new("code_facts") == ["bear"]
    assert home.state("code_facts").state == "fresh"
    run(zoo)
    assert_clean(home, zoo, new_home)


def test_a_refused_graph_fails_the_run_and_the_last_one_stays(woods, run, home, records, monkeypatch):
    def refuse(*arguments):
        raise Refused("ends", "an edge leads to nothing", [])

    from pipelines.graph import stage

    before = home.rows("entities")
    write_tree(woods, {"bear/panda.py": "def other(): 1\n"})
    with monkeypatch.context() as patch:
        patch.setattr(stage, "check_graph", refuse)
        with pytest.raises(CgragError, match="The new graph is refused"):
            run(woods, GRAPH)
    assert home.rows("entities") == before
    assert home.state("knowledge_graph").state == "stale"
    assert run(woods, GRAPH) == ["knowledge_graph"]
    assert "bear/panda.py::other" in home.entities()
