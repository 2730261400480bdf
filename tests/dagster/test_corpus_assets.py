"""Materializing a corpus: nothing is done twice, changes touch their own partition, and kills cost nothing."""

import os
import signal
import subprocess
import sys

import dagster as dg
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from assets import checks
from assets import corpus as corpus_assets
from cgrag.definitions import defs
from pipelines.errors import CgragError
from pipelines.settings import PROJECT
from pipelines.state import ASSETS, asset_states
from pipelines.tables import CHUNKS, read_manifest, read_table, write_table
from resources.workspace import Workspace
from tests.support import Home, write_tree

KEYS = [".", "ape", "bear", "cat"]
TABLES = ["corpus_files", "chunks"]
"""Selected where a test does not look at the index."""


def assert_clean(home, corpus, new_home):
    """What is stored equals what one plain build stores in another home."""
    clean = new_home()
    clean.build(corpus)
    assert home.hashes() == clean.hashes()
    assert all(hash_ for hash_ in home.hashes().values())


def stale(instance):
    """{partition: whether Dagster calls its chunks stale}"""
    resolver = CachingStaleStatusResolver(instance, defs.resolve_asset_graph(), LoadingContextForTest(instance))
    keys = instance.get_dynamic_partitions("directories")
    return {key: resolver.get_status(dg.AssetKey("chunks"), key) for key in keys}


def test_the_first_run_builds_all_and_the_second_nothing(zoo, run, home, records, new_home):
    assert run(zoo) == [name for name in ASSETS if name != "neo4j_graph"]
    assert records.new() == KEYS
    assert records.partitions() == set(KEYS)
    assert_clean(home, zoo, new_home)
    before = records.runs()
    assert run(zoo) == []
    assert records.new() == []
    assert records.runs() == before
    assert home.paths("bamboo") == ["bear/panda.py"]


def test_materializations_say_what_came_of_them(built_zoo, run, records):
    metadata = records.latest("chunks", "ape").asset_materialization.metadata
    assert metadata["dagster/row_count"].value == 2
    assert metadata["files"].value == 2
    assert "gorilla" in metadata["chunks_preview"].md_str
    (files,) = records.instance.fetch_materializations(dg.AssetKey("corpus_files"), limit=5).records
    assert files.asset_materialization.metadata["dagster/row_count"].value == 5
    assert files.asset_materialization.metadata["partitions_added"].value == 4


def test_changes_are_chunked_in_their_own_partitions_only(built_zoo, run, home, records, new_home):
    (built_zoo / "bear" / "panda.py").write_text("class Panda:\n    food = 'honey'\n")  # edited
    (built_zoo / "cat" / "lion.md").rename(built_zoo / "cat" / "tiger.md")  # renamed
    (built_zoo / "ape" / "orang.md").unlink()  # deleted
    run(built_zoo)
    assert records.new() == ["ape", "bear", "cat"]
    assert_clean(home, built_zoo, new_home)
    assert home.paths("bamboo") == home.paths("hangs") == []
    assert home.paths("roars") == ["cat/tiger.md"]


def test_a_directory_that_goes_takes_its_partition_with_it_and_one_that_comes_brings_its_own(
    built_zoo, run, home, records, new_home
):
    (built_zoo / "cat" / "lion.md").rename(built_zoo / "lion.md")
    (built_zoo / "cat").rmdir()
    write_tree(built_zoo, {"eel/moray.md": "# Moray\n"})
    run(built_zoo, TABLES)
    assert records.new() == [".", "eel"]
    assert records.partitions() == {".", "ape", "bear", "eel"}
    assert_clean(home, built_zoo, new_home)


def test_a_changed_setting_makes_all_anew(built_zoo, run, home, records, new_home, monkeypatch):
    monkeypatch.setenv("CGRAG_CHUNKING__STRATEGY", "windows")
    home.settings = Home(home.settings.home).settings
    assert "chunks" in run(built_zoo, TABLES)
    assert records.new() == KEYS
    assert_clean(home, built_zoo, new_home)


def test_selected_partitions_alone_are_built(zoo, run, home, records):
    run(zoo, ["corpus_files"])
    assert run(zoo, ["chunks"], ["ape", "cat"]) == ["chunks"]
    assert records.new() == ["ape", "cat"]
    run(zoo, TABLES)
    assert records.new() == [".", "bear"]
    with pytest.raises(CgragError, match="no partition 'elk'"):
        run(write_tree(zoo, {"new.md": "x"}), [], ["elk"])
    with pytest.raises(CgragError, match="no asset 'chunk'"):
        run(zoo, ["chunk"])


def test_scattered_changes_take_few_runs_and_touch_nothing_between(tree, run, records):
    write_tree(tree, {f"d{number:02}/f.md": f"# {number}\n\nword\n" for number in range(12)})
    run(tree, TABLES)
    assert len(records.new()) == 12
    before = records.runs()
    write_tree(tree, {f"d{number:02}/f.md": "# changed\n" for number in range(0, 12, 2)})
    run(tree, TABLES)
    assert records.new() == [f"d{number:02}" for number in range(0, 12, 2)]
    assert records.runs() - before <= 3


def test_the_ui_calls_just_the_changed_partition_stale(built_zoo, run, records):
    assert set(stale(records.instance).values()) == {StaleStatus.FRESH}
    (built_zoo / "bear" / "panda.py").write_text("changed = 1\n")
    run(built_zoo, ["corpus_files"])
    assert {key for key, status in stale(records.instance).items() if status == StaleStatus.STALE} == {"bear"}
    run(built_zoo, TABLES)
    assert set(stale(records.instance).values()) == {StaleStatus.FRESH}


def test_a_new_directory_is_missing_in_the_ui_and_makes_no_other_stale(built_zoo, run, records):
    write_tree(built_zoo, {"eel/moray.md": "# Moray\n"})
    run(built_zoo, ["corpus_files"])
    assert stale(records.instance) == dict.fromkeys(KEYS, StaleStatus.FRESH) | {"eel": StaleStatus.MISSING}


# failures


@pytest.fixture
def failing(monkeypatch):
    """Make the chunking of some partitions fail until told otherwise."""
    keys = set()
    really_chunk = corpus_assets.chunk_partition

    def chunk(root, key, *arguments):
        if key in keys:
            raise OSError(f"no luck with {key}")
        return really_chunk(root, key, *arguments)

    monkeypatch.setattr(corpus_assets, "chunk_partition", chunk)
    return keys


def test_a_failed_partition_leaves_the_good_ones_done_and_its_reason_and_is_red(zoo, run, home, records, failing):
    failing.update(["ape", "cat"])
    with pytest.raises(CgragError, match="2 partitions of chunks failed") as failed:
        run(zoo)
    assert "ape: OSError: no luck with ape" in str(failed.value)
    assert "cgrag resume --failed" in failed.value.remedy
    assert records.new() == [".", "bear"]
    chunks = asset_states(home.settings)[1]
    assert (chunks.state, chunks.todo) == ("failed", ["ape", "cat"])
    assert home.paths("bamboo") == ["bear/panda.py"]
    assert home.paths("roars") == []
    failures = records.instance.get_runs(filters=dg.RunsFilter(statuses=[dg.DagsterRunStatus.FAILURE]))
    assert len(failures) == 1
    status = records.instance.get_status_by_partition(
        dg.AssetKey("chunks"), KEYS, dg.DynamicPartitionsDefinition(name="directories")
    )
    assert {key for key, value in status.items() if value.value == "FAILED"} == {"ape", "cat"}


def test_resuming_redoes_only_what_failed_and_tells_what_fails_again(
    built_zoo, run, home, records, failing, new_home, cli
):
    write_tree(built_zoo, {"ape/orang.md": "# Edited\n", "cat/lion.md": "# Edited\n"})
    failing.add("ape")
    with pytest.raises(CgragError):
        run(built_zoo)
    assert records.new() == ["cat"]
    said = cli("resume", "--failed")
    assert said.code == 1
    assert "no luck with ape" in said.err
    assert cli("status", "--json").json["assets"][1]["state"] == "failed"
    failing.clear()
    said = cli("resume", "--failed")
    assert said.code == 0
    assert "1 failed partitions: ape" in said.err
    assert records.new() == ["ape"]
    assert_clean(home, built_zoo, new_home)
    assert {state.state for state in asset_states(home.settings)[:3]} == {"fresh"}


def test_a_failure_whose_edit_is_taken_back_is_forgotten(built_zoo, run, home, failing):
    whole = (built_zoo / "ape" / "orang.md").read_bytes()
    (built_zoo / "ape" / "orang.md").write_text("# Edited\n")
    failing.add("ape")
    with pytest.raises(CgragError):
        run(built_zoo)
    (built_zoo / "ape" / "orang.md").write_bytes(whole)
    run(built_zoo)
    assert {state.state for state in asset_states(home.settings)[:3]} == {"fresh"}
    assert home.paths("hangs") == ["ape/orang.md"]


# kills

KILLED = """
import sys
from assets import corpus
import cgrag.definitions
from cgrag.materialize import Materializer
from pipelines.corpus.scan import scan_corpus
from pipelines.corpus.spec import parse_spec
from pipelines.progress import no_report
from pipelines.settings import load_settings

left = int(sys.argv[2])
really = getattr(corpus, sys.argv[3])

def counted(*arguments):
    global left
    if left == 0:
        print("now", flush=True)
        sys.stdin.read()
    left -= 1
    return really(*arguments)

setattr(corpus, sys.argv[3], counted)
settings = load_settings()
Materializer(settings, no_report).run(scan_corpus(parse_spec(sys.argv[1]), settings), sys.argv[4:])
"""


@pytest.mark.parametrize(("function", "done"), [("chunk_partition", 2), ("prune", 0)])
def test_a_killed_run_is_taken_up_where_it_was(zoo, run, home, records, new_home, function, done):
    child = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", KILLED, str(zoo), str(done), function, *TABLES],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(PROJECT)},
    )
    with child:
        assert child.stdout.readline() == b"now\n"
        child.send_signal(signal.SIGKILL)
    finished = records.new()
    assert len(finished) == done
    run(zoo, TABLES)
    assert records.new() == sorted(set(KEYS) - set(finished))
    assert_clean(home, zoo, new_home)
    assert run(zoo, TABLES) == []


# checks


def evaluations(instance):
    """{check: its last evaluation}"""
    keys = list(defs.resolve_asset_graph().asset_check_keys)
    found = instance.event_log_storage.get_latest_asset_check_execution_by_key(keys)
    return {key.name: record.event.asset_check_evaluation for key, record in found.items() if record.event}


CHECKS = {"corpus_is_not_empty", "every_file_is_chunked_or_explained", "offsets_are_exact", "index_has_every_chunk"}


def test_every_run_is_checked_and_a_sound_home_passes(built_zoo, records):
    found = evaluations(records.instance)
    assert found.keys() >= CHECKS
    assert all(found[name].passed for name in CHECKS)
    assert found["offsets_are_exact"].metadata["checked"].value == 5


def test_chunks_that_are_not_where_they_say_fail_the_next_run_of_chunks(built_zoo, run, home, records):
    file = home.layout.partition("bear", "chunks")
    rows, manifest = read_table(file, CHUNKS).to_pylist(), read_manifest(file)
    write_table(file, [row | {"start": row["start"] + 1} for row in rows], CHUNKS, manifest)
    write_tree(built_zoo, {"cat/lynx.md": "# Lynx\n"})
    run(built_zoo, TABLES)
    wrong = evaluations(records.instance)["offsets_are_exact"]
    assert (wrong.passed, wrong.metadata["wrong"].value) == (False, ["bear/panda.py[1:32]"])


def test_files_that_lost_their_chunks_fail_the_next_run_of_chunks(built_zoo, run, home, records):
    file = home.layout.partition("bear", "chunks")
    write_table(file, [], CHUNKS, read_manifest(file))
    write_tree(built_zoo, {"cat/lynx.md": "# Lynx\n"})
    run(built_zoo, TABLES)
    lost = evaluations(records.instance)["every_file_is_chunked_or_explained"]
    assert (lost.passed, lost.metadata["unaccounted"].value) == (False, ["bear/panda.py"])


def test_an_empty_corpus_is_a_warning(tree, run, records):
    run(tree)
    found = evaluations(records.instance)["corpus_is_not_empty"]
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_an_index_without_some_chunks_fails_its_check(built_zoo, run, home):
    file = home.layout.partition("bear", "chunks")
    write_table(file, [], CHUNKS, read_manifest(file))
    assert not checks.index_has_every_chunk(Workspace()).passed
