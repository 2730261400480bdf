"""`neo4j_graph` through Dagster on a real Neo4j."""

import dagster as dg
import pytest

from cgrag.definitions import defs
from cgrag.materialize import point_dagster_at
from pipelines.neo4j_store.remove import remove_corpus
from pipelines.settings import load_settings
from tests.neo4j_server import database_rows
from tests.support import write_tree

TREE = {"pkg/a.py": "def f():\n    return 1\n", "pkg/b.py": "from pkg.a import f\n\n\ndef g():\n    return f()\n"}


@pytest.fixture
def configured(neo4j, monkeypatch, tree):
    """The variables that make this server the product's, and a small corpus; its graph is taken out at the end."""
    for name, value in neo4j.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("CGRAG_NEO4J_CORPUS", f"asset-{tree.parent.name}")
    yield write_tree(tree, TREE)
    remove_corpus(load_settings(), f"asset-{tree.parent.name}")


def test_a_run_loads_the_graph_says_what_it_did_and_checks_it(configured, cli, neo4j):
    said = cli("run", "--corpus", str(configured))
    assert (said.code, "neo4j_graph" in said.err) == (0, True)
    assert "fresh   neo4j_graph" in said.out
    settings = load_settings()
    point_dagster_at(settings)
    key = dg.AssetKey("neo4j_graph")
    with dg.DagsterInstance.get() as instance:
        metadata = instance.get_latest_materialization_event(key).asset_materialization.metadata
        assert metadata["rows"].value["entity"] == metadata["changes_of_the_server"].value["nodes_created"] - 4 == 4
        assert metadata["rows_per_second"].value > 0
    assert "Nothing to do" in cli("run").err
    (configured / "pkg" / "b.py").write_text(TREE["pkg/b.py"] + "\n\ndef h():\n    return g()\n")
    assert "neo4j_graph" in cli("run").err
    rows = database_rows(neo4j, settings.neo4j_corpus)
    assert ("pkg/b.py::h", "CALLS", "pkg/b.py::g") in {(r["source"], r["relation"], r["target"]) for r in rows["edges"]}


def test_the_check_sees_what_others_have_broken(configured, cli, neo4j):
    cli("run", "--corpus", str(configured))
    settings = load_settings()
    point_dagster_at(settings)

    def passed():
        check = dg.AssetCheckKey(dg.AssetKey("neo4j_graph"), "neo4j_holds_the_graph")
        with dg.DagsterInstance.get() as instance:
            selected = dg.AssetSelection.checks(check)
            done = dg.define_asset_job("look", selected).resolve(asset_graph=defs.resolve_asset_graph())
            found = done.execute_in_process(instance=instance)
        return [evaluation.passed for evaluation in found.get_asset_check_evaluations()]

    assert passed() == [True]
    neo4j.values("MATCH (n:Entity {corpus: $name}) WITH n LIMIT 1 DETACH DELETE n", name=settings.neo4j_corpus)
    assert passed() == [False]
    assert "stale   neo4j_graph  somebody else has changed it: " in cli("status").out
    assert "neo4j_graph" in cli("run").err
    assert passed() == [True]
