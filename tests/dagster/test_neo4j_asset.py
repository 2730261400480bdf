"""`neo4j_graph` where there is no Neo4j; with a real one: tests/e2e/test_neo4j_asset.py."""

import dagster as dg
import pytest

from assets import retries
from cgrag.definitions import defs
from pipelines.state import asset_states


@pytest.fixture
def small(built_zoo, run):
    run(built_zoo, ["code_facts", "code_edges", "extractions", "knowledge_graph"])
    return built_zoo


def test_without_a_neo4j_it_is_passed_over_with_a_word(small, run, records, cli):
    job = defs.resolve_implicit_global_asset_job_def()
    done = job.execute_in_process(instance=records.instance, asset_selection=[dg.AssetKey("neo4j_graph")])
    assert done.success
    assert not done.asset_materializations_for_node("neo4j_graph")
    assert not done.get_asset_check_evaluations()
    logged = [entry.user_message for entry in records.instance.all_logs(done.run_id)]
    assert "Skipped: no Neo4j is configured (NEO4J_URI)." in logged
    assert run(small) == run(small, ["neo4j_graph"]) == []
    assert records.new("neo4j_graph") == []
    assert "skipped neo4j_graph  no Neo4j is configured (NEO4J_URI)" in cli("status").out


def test_a_run_that_nobody_watches_tries_one_again_that_is_away_and_no_other(small, records, monkeypatch):
    monkeypatch.setattr(retries, "WAIT_SECONDS", 0.0)
    job = defs.resolve_implicit_global_asset_job_def()

    def outcome():
        done = job.execute_in_process(
            instance=records.instance, asset_selection=[dg.AssetKey("neo4j_graph")], raise_on_error=False
        )
        kinds = [event.event_type_value for event in done.all_events if event.step_key == "neo4j_graph"]
        return kinds.count("STEP_UP_FOR_RETRY"), kinds.count("STEP_FAILURE")

    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    assert outcome() == (retries.RETRIES, 1)
    monkeypatch.setenv("NEO4J_URI", "bolt+s://")
    assert outcome() == (0, 1)


def test_one_that_is_away_is_told_after_all_else_is_built(small, home, monkeypatch, cli):
    monkeypatch.setenv("NEO4J_URI", "bolt://127.0.0.1:1")
    (small / "ape" / "new.md").write_text("# New\n")
    said = cli("run")
    assert (said.code, "Neo4j at bolt://127.0.0.1:1 cannot be reached" in said.err) == (1, True)
    assert "Start it, or unset NEO4J_URI." in said.err
    assert {state.state for state in asset_states(home.settings)} == {"fresh", "skipped", "missing"}
    assert "ape/new.md::New" in home.entities()
    assert "stale   neo4j_graph  Neo4j at bolt://127.0.0.1:1 cannot be reached" in cli("status").out
    assert "problem Neo4j" in " ".join(cli("doctor").out.split())
