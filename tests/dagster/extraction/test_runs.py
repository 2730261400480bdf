"""Extraction through Dagster: what a run asks, what ends red, and what the next run redoes."""

import shutil

import dagster as dg
import pytest

from cgrag.definitions import defs
from pipelines.corpus.scan import load_plan
from pipelines.errors import CgragError
from pipelines.extract.partition import stored_rows
from pipelines.extract.plan import Order, plan_extraction
from pipelines.extract.session import Session
from pipelines.state import asset_states, failures
from pipelines.tables import write_json
from tests.extraction import docs
from tests.support import case, write_tree

KEYS = ["a", "b", "c"]


def extraction_runs(instance) -> int:
    """How many runs of extractions there have been."""
    return sum(dg.AssetKey("extractions") in (run.asset_selection or ()) for run in instance.get_runs())


def statuses(home, name=""):
    rows = [row for key in load_plan(home.layout) for row in stored_rows(home.layout, key)]
    return [row["status"] for row in sorted(rows, key=lambda row: row["path"]) if row["path"].endswith(name)]


def state(home):
    return next(state for state in asset_states(home.settings) if state.name == "extractions")


def red(instance):
    found = instance.get_status_by_partition(
        dg.AssetKey("extractions"), KEYS, dg.DynamicPartitionsDefinition(name="directories")
    )
    return {key: value.value for key, value in found.items() if value}


def test_a_plain_run_asks_nothing_and_leaves_nothing_stale(built, home, fake, cli, records):
    assert statuses(home) == ["pending"] * 9
    assert state(home).state == "fresh"
    before = extraction_runs(records.instance)
    assert "Nothing to do" in cli("run").err
    assert extraction_runs(records.instance) == before
    extraction = cli("status", "--json").json["extraction"]
    assert (extraction["chunks"], extraction["ok"], extraction["pending"], extraction["failed"]) == (9, 0, 9, 0)


def test_selected_it_asks_about_all_that_is_pending_after_showing_the_plan(built, home, fake, cli, records):
    records.new("extractions")
    said = cli("run", "--select", "extractions", "--yes")
    assert said.code == 0
    assert "9 chunks of 3 partitions" in said.err
    assert (fake.requests, statuses(home)) == (9, ["ok"] * 9)
    assert records.new("extractions") == KEYS
    metadata = records.latest("extractions", "a").asset_materialization.metadata
    assert metadata["ok"].value == metadata["dagster/row_count"].value == 4
    assert metadata["reused"].value == 0
    assert metadata["prompt_tokens"].value == 400
    assert "Doc1a" in metadata["extractions_preview"].md_str
    assert "No chunk is left" in cli("run", "--select", "extractions", "--yes").err
    assert fake.requests == 9


def test_without_a_terminal_it_asks_nothing_unless_told(built, fake, cli):
    said = cli("run", "--select", "extractions")
    assert (said.code, fake.requests) == (1, 0)
    assert "--yes" in said.err


def test_a_number_of_chunks_is_asked_about_and_the_rest_stays_pending(built, home, fake, cli, records):
    assert cli("run", "--llm-chunks", "4").code == 0
    assert (fake.requests, statuses(home).count("pending")) == (4, 5)
    assert state(home).state == "fresh"
    before = extraction_runs(records.instance)
    assert cli("run").code == 0
    assert extraction_runs(records.instance) == before
    assert cli("run", "--llm-chunks", "100").code == 0
    assert (fake.requests, statuses(home)) == (9, ["ok"] * 9)


def test_one_partition_is_asked_about(built, home, fake, cli, records):
    records.new("extractions")
    assert cli("run", "--select", "extractions", "--partition", "b", "--yes").code == 0
    assert (fake.requests, statuses(home)) == (3, ["pending"] * 4 + ["ok"] * 3 + ["pending"] * 2)
    assert records.new("extractions") == ["b"]
    said = cli("run", "--select", "extractions", "--partition", "nowhere", "--yes")
    assert (said.code, fake.requests) == (1, 3)
    assert "no partition 'nowhere'" in said.err


def test_the_chunks_with_the_answers_of_a_question_file_and_some_others_are_asked_about(
    built, home, fake, cli, tmp_path
):
    source = {"file_path": "a/d001.md", "first_character_index": 0, "last_character_index": 10}
    question = {"question_id": "1", "question": "What does Thing1a need?", "sources": [source]}
    write_json(tmp_path / "questions.json", {"rag_questions": [question]})
    words = ("run", "--llm-questions", str(tmp_path / "questions.json"), "--distractors", "2")
    assert cli(*words).code == 0
    assert fake.requests == 3
    assert any("Thing1a" in text for text in fake.asked)
    assert cli(*words).code == 0
    assert fake.requests == 3
    assert cli("run", "--distractors", "2").code == 2


def test_an_edited_file_is_chunked_and_read_again_by_a_plain_run_and_only_its_chunk_is_pending(built, home, fake, cli):
    cli("run", "--select", "extractions", "--yes")
    write_tree(built, {"b/d001.md": "# Edited\n\nAnother Thing.\n"})
    assert cli("run").code == 0
    assert (fake.requests, statuses(home).count("pending")) == (9, 1)
    cli("run", "--select", "extractions", "--yes")
    assert (fake.requests, statuses(home)) == (10, ["ok"] * 9)


def test_results_of_another_worker_make_the_table_stale_and_a_plain_run_reads_them(built, home, fake, cli):
    plan = load_plan(home.layout)
    with Session(home.settings, plan, ["c"]) as session:
        session.extract("c")
    shutil.copy(home.layout.partition("a", "extractions"), home.layout.partition("c", "extractions"))
    assert state(home).todo == ["c"]
    assert cli("run").code == 0
    assert statuses(home)[-2:] == ["ok", "ok"]
    assert fake.requests == 2


# failures


def test_a_failed_partition_is_red_the_others_green_and_resuming_asks_only_for_what_is_missing(
    built, home, fake, cli, records, monkeypatch
):
    fake.act = lambda text: {"status": 400} if "Thing1b" in text else None
    said = cli("run", "--select", "extractions", "--yes")
    assert said.code == 1
    assert "1 partitions of extractions failed" in said.err
    assert "b/d001.md (http 400" in said.err
    assert "cgrag resume --failed" in said.err
    assert red(records.instance) == {"a": "MATERIALIZED", "b": "FAILED", "c": "MATERIALIZED"}
    assert (state(home).state, list(state(home).failed)) == ("failed", ["b"])
    assert statuses(home).count("ok") == 8
    assert "refused (extractions): 1 of 9 chunks" in cli("run").err
    monkeypatch.setenv("CGRAG_EXTRACT__FAILED_SHARE", "0.2")
    assert "extractions" not in cli("run").err
    fake.act = lambda text: None
    before = extraction_runs(records.instance)
    said = cli("resume", "--failed")
    assert said.code == 0, said.err
    assert "1 failed partitions: b" in said.err
    assert fake.requests == 10
    assert extraction_runs(records.instance) - before == 1
    assert set(red(records.instance).values()) == {"MATERIALIZED"}
    assert state(home).state == "fresh"
    assert cli("resume", "--failed").err.startswith("0 failed partitions")


def test_resuming_leaves_alone_what_nobody_asked_for(built, home, fake, cli):
    fake.act = lambda text: {"status": 400}
    assert cli("run", "--llm-chunks", "2").code == 1
    fake.act = lambda text: None
    assert cli("resume", "--failed").code == 0
    assert (fake.requests, statuses(home).count("pending")) == (4, 7)


def test_scattered_failures_are_resumed_in_one_run(tree, home, fake, cli, records):
    files = {name: text for n in range(9) for name, text in docs(f"p{n}", 2).items()}
    fake.act = lambda text: {"status": 400} if any(f"Thing1p{n}" in text for n in (0, 2, 4, 6, 8)) else None
    cli("run", "--corpus", str(write_tree(tree, files)))
    assert cli("run", "--select", "extractions", "--yes").code == 1
    fake.act = lambda text: None
    before, asked = extraction_runs(records.instance), fake.requests
    assert cli("resume", "--failed").code == 0
    assert (extraction_runs(records.instance) - before, fake.requests - asked) == (1, 5)


def test_what_fails_again_is_red_again(built, home, fake, cli):
    fake.act = lambda text: {"status": 400} if "Thing1b" in text else None
    cli("run", "--select", "extractions", "--yes")
    assert cli("resume", "--failed").code == 1
    assert list(state(home).failed) == ["b"]


def test_a_server_that_cannot_be_reached_fails_no_partition_and_is_named(built, home, fake, cli):
    fake.stop()
    said = cli("run", "--select", "extractions", "--yes")
    assert said.code == 1
    assert "cannot be reached" in said.err
    assert state(home).state == "fresh"
    assert failures(home.layout, "extractions", load_plan(home.layout)) == {}


def test_a_server_that_goes_in_the_middle_is_resumed(built, home, fake, cli, monkeypatch):
    monkeypatch.setenv("CGRAG_EXTRACT__IN_FLIGHT", "1")
    monkeypatch.setattr("pipelines.extract.run._GONE_AFTER", 2)
    fake.act = lambda text: {"close": True} if fake.requests > 4 else None
    said = cli("run", "--select", "extractions", "--yes")
    assert said.code == 1
    assert "The model server has gone" in said.err
    assert statuses(home)[:4] == ["ok"] * 4
    fake.act = lambda text: None
    assert cli("resume", "--failed").code == 0
    assert statuses(home) == ["ok"] * 9


def test_no_server_set_is_told_with_the_setting(built, cli, monkeypatch):
    monkeypatch.delenv("CGRAG_LLM_URLS")
    monkeypatch.setattr("pipelines.serve.lease.find_spec", lambda name: None)
    said = cli("run", "--llm-chunks", "1")
    assert said.code == 1
    assert "CGRAG_LLM_URLS" in said.err


# checks, plan, ledger


def outcomes(instance):
    keys = [key for key in defs.resolve_asset_graph().asset_check_keys if key.asset_key == dg.AssetKey("extractions")]
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: record.event.asset_check_evaluation for key, record in found.items()}


def test_checks_pass_where_all_is_well_and_tell_what_is_not(built, home, fake, cli, records):
    cli("run", "--select", "extractions", "--partition", "c", "--yes")
    assert {name: outcome.passed for name, outcome in outcomes(records.instance).items()} == {
        "few_extractions_failed": True,
        "names_are_grounded": True,
        "no_answer_is_cut_off": True,
        "answers_say_something": True,
    }
    invented = {"entities": [{"name": f"Invented{n}", "type": "Class"} for n in range(5)], "relations": []}
    fake.act = lambda text: {"content": "{", "finish_reason": "length"} if "Thing1" in text else {"content": invented}
    assert cli("run", "--select", "extractions", "--yes").code == 1
    found = outcomes(records.instance)
    assert [name for name, outcome in found.items() if outcome.passed] == ["answers_say_something"]  # there is no edge
    assert found["few_extractions_failed"].metadata["failed"].value == 2
    assert found["no_answer_is_cut_off"].metadata["truncated"].value == 2


def test_a_check_tells_that_answers_are_forms_without_content(built, fake, cli, records):
    def walk(text):
        names = [name for name in text.replace("`", " ").split() if name.startswith(("Doc", "Thing", "Shared"))][:3]
        names = list(dict.fromkeys(name.strip(".,") for name in names))
        out = [["RELATES_TO", name] for name in names[1:]]
        return {"content": [[names[0], "Concept", *out, *out], *([name, "Concept"] for name in names[1:])]}

    fake.act = walk
    cli("run", "--select", "extractions", "--yes")
    outcome = outcomes(records.instance)["answers_say_something"]
    assert not outcome.passed and outcome.metadata["degenerate"].value["duplicate"] > 0


# from the UI


def test_materialized_from_the_ui_it_asks_about_all_that_is_pending_of_its_partitions(built, home, fake, records):
    job = defs.resolve_implicit_global_asset_job_def()
    tags = {"dagster/asset_partition_range_start": "a", "dagster/asset_partition_range_end": "b"}
    for _ in range(2):
        result = job.execute_in_process(
            instance=records.instance, asset_selection=[dg.AssetKey("extractions")], tags=tags
        )
        assert result.success
    assert (fake.requests, statuses(home)) == (7, ["ok"] * 7 + ["pending"] * 2)


# d02


def test_d02_unchanged_text_of_a_renamed_directory_is_not_sent_again(tree, home, fake, cli):
    case("d02").copy_to(tree)
    fake.act = lambda text: {"status": 400} if "word_gone" in text else None
    cli("run", "--corpus", str(tree))
    assert cli("run", "--select", "extractions", "--yes").code == 1
    shutil.rmtree(tree / "gone")
    said = cli("resume", "--failed")
    assert (said.code, fake.requests) == (0, 3)
    assert "gone no longer exists" in said.err
    assert not home.layout.partition("gone", "extractions").exists()
    (tree / "late").rename(tree / "late2")
    assert cli("run").code == 0
    assert (fake.requests, statuses(home)) == (3, ["ok", "ok"])
    fake.act = lambda text: None
    write_tree(tree, {"gone/x.md": "# Back\n\nword_back\n"})
    cli("run")
    cli("run", "--select", "extractions", "--yes")
    assert fake.requests == 4
    assert any("word_back" in text for text in fake.asked)


def test_an_order_for_nothing_builds_what_a_plain_run_would(built, home, fake, run):
    assert run(built) == []
    assert home.settings.llm_urls
    with pytest.raises(CgragError, match="no partition 'x'"):
        plan_extraction(home.settings, load_plan(home.layout), Order(partitions=("x",)))


def test_a_chunk_of_the_same_text_elsewhere_has_its_answer_at_once(built, home, fake, cli):
    text = "# Same\n\nThe Thing is Shared.\n"
    write_tree(built, {"a/same.md": text, "c/same.md": text})
    cli("run")
    chunks = sorted((row["chunk_id"], row["path"]) for row in home.rows("chunks"))
    most = 1 + next(number for number, (_, path) in enumerate(chunks) if path.endswith("same.md"))
    assert cli("run", "--llm-chunks", str(most)).code == 0
    assert statuses(home, "same.md") == ["ok", "ok"]
    assert "Nothing to do" in cli("run").err
