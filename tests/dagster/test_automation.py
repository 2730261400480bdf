"""The sensors and the schedule: what they ask for, and that doing it gives what a clean build gives."""

import errno
import os
import shutil
import socket
import subprocess
from datetime import UTC, datetime

import dagster as dg
import psutil
import pytest
from dagster._core.definitions.data_version import CachingStaleStatusResolver, StaleStatus
from dagster._core.loader import LoadingContextForTest

from assets.automation import corpus_changes, graph_follows, nightly_extraction
from cgrag.definitions import defs
from cgrag.materialize import Materializer
from pipelines.progress import no_report
from resources import runs
from resources.workspace import Workspace
from tests.support import write_tree

JOB = defs.resolve_implicit_global_asset_job_def()
REPOSITORY = defs.get_repository_def()


class Ticks:
    """Ticks of one sensor, with the cursor that each leaves; what it asks for is done only when told."""

    def __init__(self, sensor, instance):
        self.sensor, self.instance, self.cursor = sensor, instance, None

    def __call__(self, keep_cursor=True):
        with dg.build_sensor_context(
            instance=self.instance, cursor=self.cursor, repository_def=REPOSITORY, resources={"workspace": Workspace()}
        ) as context:
            data = self.sensor.evaluate_tick(context)
        if keep_cursor and data.cursor:
            self.cursor = data.cursor
        return data

    def do(self, data):
        """As the daemon does: partition keys first, then each run, unless one of its key has been there."""
        for request in data.dynamic_partitions_requests or []:
            if hasattr(request, "partition_keys"):
                name = request.partitions_def_name
                if type(request).__name__.startswith("Add"):
                    self.instance.add_dynamic_partitions(name, list(request.partition_keys))
                else:
                    for key in request.partition_keys:
                        self.instance.delete_dynamic_partition(name, key)
        return [run_of(self.instance, request) for request in data.run_requests]


def run_of(instance, request):
    done = JOB.execute_in_process(
        instance=instance,
        asset_selection=list(request.asset_selection),
        tags=dict(request.tags),
        run_config=dict(request.run_config),
        raise_on_error=False,
    )
    return done.success


def asked(data):
    """[(assets, first, last)] of what a tick asks for."""
    return [
        (
            [key.to_user_string() for key in request.asset_selection],
            request.tags.get("dagster/asset_partition_range_start"),
            request.tags.get("dagster/asset_partition_range_end"),
        )
        for request in data.run_requests
    ]


WALK = (["corpus_files"], None, None)


def built(first, last, names=("chunks", "code_facts", "extractions")):
    return [([name], first, last) for name in names]


@pytest.fixture
def zoo_and_ticks(built_zoo, records):
    return built_zoo, Ticks(corpus_changes, records.instance), Ticks(graph_follows, records.instance)


def test_they_are_off_until_switched_on():
    assert corpus_changes.default_status == graph_follows.default_status == dg.DefaultSensorStatus.STOPPED
    assert nightly_extraction.default_status == dg.DefaultScheduleStatus.STOPPED


def test_nothing_changed_asks_for_nothing(zoo_and_ticks):
    _, changes, follows = zoo_and_ticks
    assert (changes().run_requests, changes().skip_message) == ([], "Nothing has changed.")
    assert (follows().run_requests, follows().skip_message) == ([], "All is up to date.")


def test_an_edit_asks_for_its_own_directory_and_then_for_the_graph(zoo_and_ticks, home, records, new_home):
    zoo, changes, follows = zoo_and_ticks
    write_tree(zoo, {"bear/panda.py": "class Panda:\n    def eat(self):\n        return 'bamboo'\n"})
    data = changes()
    assert asked(data) == [WALK, *built("bear", "bear")]
    assert int(data.run_requests[0].tags["dagster/priority"]) > 0
    assert not data.dynamic_partitions_requests
    assert follows().run_requests == []
    assert changes.do(data) == [True] * 4
    assert records.new() == ["bear"]
    assert changes().skip_message == "Nothing has changed."
    data = follows()
    assert asked(data) == [(["bm25_index", "code_edges", "knowledge_graph", "communities", "neo4j_graph"], None, None)]
    assert follows.do(data) == [True]
    assert follows().skip_message == "All is up to date."
    clean = new_home()
    clean.build(zoo)
    assert (home.hashes(), home.graph_hashes()) == (clean.hashes(), clean.graph_hashes())


def test_a_new_a_renamed_and_a_deleted_directory(zoo_and_ticks, home, records, new_home):
    zoo, changes, follows = zoo_and_ticks
    write_tree(zoo, {"dog/wolf.py": "def howl():\n    return 'at the moon'\n"})
    (zoo / "ape").rename(zoo / "monkey")
    shutil.rmtree(zoo / "cat")
    data = changes()
    assert asked(data) == [WALK, *built("dog", "monkey")]
    added, removed = data.dynamic_partitions_requests
    assert (sorted(added.partition_keys), sorted(removed.partition_keys)) == (["dog", "monkey"], ["ape", "cat"])
    assert changes.do(data) == [True] * 4
    assert records.partitions() == {".", "bear", "dog", "monkey"}
    assert follows.do(follows()) == [True]
    clean = new_home()
    clean.build(zoo)
    assert (home.hashes(), home.graph_hashes()) == (clean.hashes(), clean.graph_hashes())


def test_only_a_deletion_walks_the_corpus_and_builds_no_partition(zoo_and_ticks, records):
    zoo, changes, follows = zoo_and_ticks
    shutil.rmtree(zoo / "cat")
    data = changes()
    assert asked(data) == [WALK]
    assert changes.do(data) == [True]
    assert (records.new(), records.partitions()) == ([], {".", "ape", "bear"})
    assert asked(follows())[0][0][0] == "bm25_index"


def test_fired_twice_it_asks_for_the_same_runs_or_for_none(zoo_and_ticks):
    zoo, changes, _ = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    first, again = changes(keep_cursor=False), changes()
    assert [request.run_key for request in first.run_requests] == [request.run_key for request in again.run_requests]
    assert "Asked for already" in changes().skip_message
    changes.do(again)
    assert changes().skip_message == "Nothing has changed."


def test_a_change_that_is_taken_back_is_another_run(zoo_and_ticks):
    zoo, changes, _ = zoo_and_ticks
    keys = []
    for text in ("# Lion\n\nsleeps\n", "# Lion\n\nroars loudly\n", "# Lion\n\nsleeps\n"):
        write_tree(zoo, {"cat/lion.md": text})
        data = changes()
        keys += [request.run_key for request in data.run_requests]
        changes.do(data)
    assert len(set(keys)) == len(keys) == 12


def test_while_a_run_is_under_way_they_wait(zoo_and_ticks, records):
    zoo, changes, follows = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    run = records.instance.create_run_for_job(JOB, status=dg.DagsterRunStatus.STARTED)
    for ticks in (changes, follows):
        assert ticks().skip_message == f"Run {run.run_id[:8]} is under way; looking again after it."
    records.instance.report_run_canceled(run)
    assert asked(changes()) == [WALK, *built("cat", "cat")]


def test_every_run_says_which_process_it_is_in(zoo_and_ticks, records):
    zoo, changes, _ = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    changes.do(changes())
    latest = records.instance.get_runs(limit=1)[0]
    started = psutil.Process().create_time() - psutil.boot_time()
    assert latest.tags[runs.PROCESS_TAG] == f"{socket.gethostname()}:{os.getpid()}:{started:.0f}"


@pytest.mark.parametrize("how", ["its process has ended", "its number is another's", "it has said nothing for long"])
def test_a_run_whose_process_is_gone_stops_nobody(zoo_and_ticks, records, monkeypatch, how):
    zoo, changes, _ = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    with subprocess.Popen(["true"]) as ended:
        pass
    host = "elsewhere" if how == "it has said nothing for long" else socket.gethostname()
    number = os.getpid() if how == "its number is another's" else ended.pid
    tags = {runs.PROCESS_TAG: f"{host}:{number}:1000000000"}
    run = records.instance.create_run_for_job(JOB, status=dg.DagsterRunStatus.STARTED, tags=tags)
    if host == "elsewhere":
        assert "is under way" in changes().skip_message
        monkeypatch.setattr(runs, "LOST_SECONDS", -1.0)
    assert asked(changes()) == [WALK, *built("cat", "cat")]
    assert records.instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.FAILURE
    assert "Its process is gone" in records.instance.all_logs(run.run_id)[-1].dagster_event.message


def test_a_corpus_that_is_gone_or_empty_changes_nothing(zoo_and_ticks, home, records):
    zoo, changes, follows = zoo_and_ticks
    before = home.hashes()
    zoo.rename(zoo.with_name("elsewhere"))
    assert "does not exist" in changes().skip_message
    zoo.mkdir()
    said = changes().skip_message
    assert "is empty, and was not." in said and "empty the tables by hand:  cgrag run" in said
    assert (home.hashes(), records.partitions(), follows().run_requests) == (before, {".", "ape", "bear", "cat"}, [])


def test_what_a_run_left_undone_is_taken_up_without_what_fails(zoo_and_ticks, monkeypatch, records):
    """One partition fails to be chunked; the others go on, and it is asked for again, but not for ever."""
    import assets.corpus

    zoo, changes, _ = zoo_and_ticks
    write_tree(zoo, {"ape/gorilla.py": "def g(): 1\n", "bear/panda.py": "def p(): 1\n"})
    data = changes()
    assert asked(data) == [WALK, *built("ape", "bear")]
    real = assets.corpus.chunk_partition

    def failing(root, key, *more):
        if key == "ape":
            raise OSError("no such luck")
        return real(root, key, *more)

    records.new("code_facts")
    with monkeypatch.context() as patch:
        patch.setattr(assets.corpus, "chunk_partition", failing)
        assert changes.do(data) == [True, False, True, True]
        assert records.new("code_facts") == ["bear"]
        data = changes()
        assert asked(data) == built("ape", "ape")
        assert changes.do(data) == [False, True, True]
        assert "Asked for already" in changes().skip_message
    write_tree(zoo, {"ape/gorilla.py": "def g(): 2\n"})
    assert changes.do(changes()) == [True] * 4


def night(instance):
    with dg.build_schedule_context(
        instance=instance,
        scheduled_execution_time=datetime(2026, 1, 2, 2, tzinfo=UTC),
        repository_def=REPOSITORY,
        resources={"workspace": Workspace()},
    ) as context:
        return nightly_extraction.evaluate_tick(context)


def test_the_night_asks_the_model_about_what_has_no_answer(zoo_and_ticks, records):
    zoo, _, _ = zoo_and_ticks
    data = night(records.instance)
    assert {name for names, *_ in asked(data) for name in names} == {"extractions"}
    assert data.run_requests[0].run_config == {"ops": {"extractions": {"config": {"ask": "pending"}}}}
    assert {key for _, *keys in asked(data) for key in keys} == {".", "ape", "cat"}
    write_tree(zoo, {"dog/wolf.md": "# Wolf\n\nhowls at the Moon\n"})
    data = night(records.instance)
    assert "dog" in records.partitions()
    assert [(names, last) for names, _, last in asked(data) if last == "dog"] == [
        (["chunks"], "dog"), (["code_facts"], "dog"), (["extractions"], "dog"),
    ]  # fmt: skip


def test_a_night_with_nothing_to_do_is_quiet(zoo_and_ticks, records, monkeypatch):
    monkeypatch.setenv("CGRAG_EXTRACT__POLICY", "off")
    _, changes, _ = zoo_and_ticks
    changes.do(changes())
    assert night(records.instance).skip_message == "Nothing has changed, and every chunk has its answer."


def test_a_run_that_has_lost_its_process_is_asked_for_again(zoo_and_ticks, records):
    zoo, changes, follows = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    for ticks in (changes, follows):
        first = ticks()
        number = first.run_requests[0].tags["cgrag/change"]
        assert "Asked for already" in ticks().skip_message
        tags = {runs.CHANGE_TAG: number, runs.PROCESS_TAG: f"{socket.gethostname()}:1:1000000000"}
        records.instance.create_run_for_job(JOB, status=dg.DagsterRunStatus.STARTED, tags=tags)
        again = ticks()
        assert asked(again) == asked(first)
        assert again.run_requests[0].run_key != first.run_requests[0].run_key
        assert "Asked for already" in ticks().skip_message
        ticks.do(again)


def test_a_run_that_never_began_blocks_nobody_for_ever(zoo_and_ticks, records, monkeypatch):
    zoo, changes, _ = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    run = records.instance.create_run_for_job(JOB)
    assert "is under way" in changes().skip_message
    monkeypatch.setattr(runs, "LOST_SECONDS", -1.0)
    assert asked(changes())[0] == WALK
    assert records.instance.get_run_by_id(run.run_id).status == dg.DagsterRunStatus.FAILURE


def test_what_cannot_be_read_is_not_taken_for_deleted(zoo_and_ticks, records, monkeypatch):
    _, changes, _ = zoo_and_ticks
    really = os.scandir

    def scandir(folder):
        if str(folder).endswith("/cat"):
            raise OSError(errno.EIO, "Input/output error")
        return really(folder)

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", scandir)
        data = changes()
    assert (data.run_requests, data.dynamic_partitions_requests or []) == ([], [])
    assert "cat/ of tree cannot be read (Input/output error)" in data.skip_message
    assert changes().skip_message == "Nothing has changed."


def test_a_corpus_that_goes_between_a_tick_and_its_run_stays_in_the_graph(zoo_and_ticks, home, records):
    zoo, changes, _ = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    data = changes()
    rows, entities = home.rows("files"), home.entities()
    shutil.rmtree(zoo)
    zoo.mkdir()
    assert changes.do(data)[0] is False
    assert (home.rows("files"), records.partitions()) == (rows, {".", "ape", "bear", "cat"})
    assert home.entities() == entities


def test_the_night_does_not_wait_for_the_sensors_own_runs(zoo_and_ticks, records):
    zoo, _, _ = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    tags = {runs.CHANGE_TAG: "1", runs.PROCESS_TAG: "elsewhere:1:1"}
    records.instance.create_run_for_job(JOB, status=dg.DagsterRunStatus.STARTED, tags=tags)
    assert not night(records.instance).skip_message
    records.instance.create_run_for_job(JOB, status=dg.DagsterRunStatus.STARTED)
    assert "is under way" in night(records.instance).skip_message


@pytest.mark.parametrize("names", [("chunks", "code_facts"), ("chunks", "code_facts", "extractions")])
def test_several_assets_of_several_directories_in_one_run(zoo_and_ticks, home, records, names):
    zoo, _, _ = zoo_and_ticks
    write_tree(zoo, {"cat/lion.md": "# Lion\n\nsleeps\n", "bear/panda.py": "class Panda:\n    food = 'leaves'\n"})
    Materializer(home.settings, no_report).run(home.scan(zoo), ["corpus_files"])
    done = JOB.execute_in_process(
        instance=records.instance,
        asset_selection=[dg.AssetKey(name) for name in names],
        tags={"dagster/asset_partition_range_start": "ape", "dagster/asset_partition_range_end": "cat"},
        run_config={"ops": {"extractions": {"config": {"ask": "none"}}}} if "extractions" in names else {},
    )
    assert done.success
    assert home.state("chunks").state == home.state("code_facts").state == "fresh"
    loading = LoadingContextForTest(records.instance)
    status = CachingStaleStatusResolver(records.instance, defs.resolve_asset_graph(), loading)
    for name in names:
        for key in ("ape", "bear", "cat"):
            assert status.get_status(dg.AssetKey(name), key) == StaleStatus.FRESH, (name, key)
