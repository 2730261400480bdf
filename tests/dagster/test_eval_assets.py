"""The eval group through Dagster: built when asked for, and never by a bare run."""

import dagster as dg
import pytest

from pipelines.state import ASSETS
from tests.support import write_tree
from tests.unit.evaluate.conftest import FILES

pytestmark = pytest.mark.filterwarnings("ignore::pydantic.warnings.PydanticDeprecatedSince20")  # Dagster's own


def test_the_report_is_built_when_selected(cli, home, tree):
    write_tree(tree, FILES)
    said = cli("run", "--corpus", str(tree))
    assert said.code == 0 and "retrieval_report" not in said.err
    assert {asset["name"] for asset in cli("status", "--json").json["assets"]} == set(ASSETS) - {"neo4j_graph"}
    said = cli("run", "--select", "question_sets,retrieval_report")
    assert said.code == 0 and "Built question_sets, retrieval_report" in said.err
    assert {asset["state"] for asset in cli("status", "--json").json["assets"]} == {"fresh"}
    with dg.DagsterInstance.get() as instance:
        event = instance.get_latest_materialization_event(dg.AssetKey("retrieval_report"))
    metadata = event.asset_materialization.metadata
    assert "](data:image/png;base64," in metadata["plots"].value
    assert metadata["dagster/row_count"].value > 5
    (tree / "docs" / "more.md").write_text(
        "# More\n\nAnother page, with enough to say about itself to be one of the sections asked for.\n"
    )
    assert cli("run").code == 0
    said = cli("status")
    assert "stale   question_sets" in said.out and "Next:  cgrag search" in said.out


def test_a_failing_report_says_why(cli, home, tree, tmp_path, monkeypatch):
    write_tree(tree, FILES)
    (tmp_path / "mine.json").write_text("[]")
    cli("run", "--corpus", str(tree))
    monkeypatch.setenv("CGRAG_QUESTIONS", str(tmp_path / "mine.json"))
    said = cli("run", "--select", "question_sets")
    assert said.code == 1 and "is not a question file" in said.err


def test_extraction_is_judged_where_the_annotated_corpus_is(cli, home, tree):
    write_tree(tree, FILES)
    cli("run", "--corpus", str(tree))
    said = cli("run", "--select", "extraction_report")
    assert said.code == 1 and "annotated chunks are not in" in said.err
    assert "pypi:vllm==0.10.1" in said.err


def test_the_graph_says_which_origins_are_followed_and_a_check_warns(cli, home, tree, monkeypatch):
    write_tree(tree, {"a.py": "class Engine: 1\n", "use.md": "# Use\n\nAn `Engine` with `--fast-path`.\n"})
    monkeypatch.setattr("pipelines.graph.admission.EVIDENCE", tree / "nowhere")
    cli("run", "--corpus", str(tree))
    said = cli("status")
    assert "2 of these edges by rules, not followed" in said.out and "cgrag evaluate-extraction" in said.out
    key = dg.AssetCheckKey(dg.AssetKey("knowledge_graph"), "edges_have_earned_their_place")

    def outcome():
        with dg.DagsterInstance.get() as instance:
            found = instance.event_log_storage.get_latest_asset_check_execution_by_key([key])
        return found[key].event.asset_check_evaluation

    assert not outcome().passed and "has not been measured" in outcome().metadata["rule"].value
    monkeypatch.setenv("CGRAG_ADMIT", '{"rule": "looked at all of them"}')
    assert "stale" in cli("status").out
    cli("run")
    assert outcome().passed
    assert "followed: it has not been measured" in cli("status").out and "looked at all" in cli("status").out


def test_the_job_holds_both():
    from cgrag.definitions import defs

    job = defs.resolve_job_def("evaluation")
    assert {key.to_user_string() for key in job.asset_layer.executable_asset_keys} == {
        "question_sets",
        "retrieval_report",
    }
