"""Loads into a real Neo4j that are killed, cut off, blocked or overtaken: never called whole before they are."""

import dataclasses
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pipelines.errors import CgragError
from pipelines.graph.look_up import open_graph
from pipelines.neo4j_store import load, remove, rows
from pipelines.neo4j_store.connect import connected
from pipelines.neo4j_store.load import Loader, load_graph
from pipelines.neo4j_store.remove import remove_corpus
from pipelines.neo4j_store.rows import LocalGraph
from pipelines.progress import no_report
from tests.graphs import write_ring
from tests.neo4j_server import home_rows


def test_a_killed_server_started_again_is_gone_on_with(graph, neo4j, monkeypatch):
    """At three moments and on the whole corpus: tests/bench/neo4j.py."""
    if neo4j.folder is None:
        pytest.skip("the Neo4j of NEO4J_URI is not ours to kill")
    small_batches(monkeypatch)
    write_ring(graph.home, 400)
    at = random.Random(9).randrange(1, 1200)

    def report(doing, unit):
        def progress(done, total):
            if done >= at and not graph.said:
                neo4j.kill()

        return progress

    def restart(seconds):
        if neo4j.process is None:
            neo4j.start()

    local = LocalGraph(graph.home.layout, graph.home.chunked)
    with connected(graph.settings) as driver:
        result = Loader(driver, graph.settings, local, report, graph.said.append, sleep=restart).load()
    local.close()
    assert "cannot be reached" in graph.said[0] and "Trying again" in graph.said[0]
    assert result.generation == local.generation
    graph.assert_equal()
    assert graph.load().changed == 0


def small_batches(monkeypatch):
    small = tuple(dataclasses.replace(table, batch=20) for table in rows.TABLES)
    for module in (load, rows):
        monkeypatch.setattr(module, "TABLES", small)


LOAD = """
import sys
from pathlib import Path
from pydantic import SecretStr
from pipelines.neo4j_store import load, rows
from pipelines.settings import load_settings
import dataclasses
small = tuple(dataclasses.replace(table, batch=20) for table in rows.TABLES)
load.TABLES = rows.TABLES = small
def report(doing, unit):
    def progress(done, total):
        print(done, flush=True)
        if sys.argv[2] == "step":
            sys.stdin.readline()
    return progress
result = load.load_graph(load_settings(), {"all": sys.argv[1]}, report, lambda text: print(text, flush=True))
print("changed", result.changed, flush=True)
"""


def loader(graph, how):
    """A process that loads the graph; with "step" it waits for a line after each batch."""
    environment = os.environ | graph.server.environment | {"CGRAG_HOME": str(graph.home.layout.home)}
    return subprocess.Popen(
        [sys.executable, "-c", LOAD, graph.home.chunked["all"], how],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment | {"PYTHONPATH": str(Path(__file__).parents[2])},
        text=True,
        bufsize=1,
    )


def test_n03_two_loaders_a_kill_and_a_load(graph, neo4j):
    """The second loader waits for the first; when that is killed, it does what is left."""
    write_ring(graph.home, 500)
    with loader(graph, "step") as first:
        done = int(first.stdout.readline())
        second = loader(graph, "run")
        assert "waiting for the lock" in second.stdout.readline()
        for _ in range(14):
            first.stdin.write("\n")
            done = int(first.stdout.readline())
        assert neo4j.values("MATCH (n:Entity {corpus: $name}) RETURN count(n) > 100", name=graph.name) == [[True]]
        first.send_signal(signal.SIGKILL)
    with second:
        assert second.communicate(timeout=60)[0].splitlines()[-1] == f"changed {2 * 50 + 3 * 500 - done}"
    graph.assert_equal()
    assert graph.load().changed == 0


def test_two_loaders_at_once_make_no_doubles(graph):
    write_ring(graph.home, 300)
    with loader(graph, "run") as first, loader(graph, "run") as second:
        said = [process.communicate(timeout=120)[0].splitlines()[-1] for process in (first, second)]
    assert sorted(said) == ["changed 0", f"changed {2 * 30 + 3 * 300}"]
    graph.assert_equal()


def test_a_deadlock_with_others_is_tried_again(graph, neo4j, monkeypatch):
    """Somebody holds one entity and asks for another, which the load has: one of the two is refused."""
    small_batches(monkeypatch)
    ids = sorted(write_ring(graph.home, 40))
    graph.load()
    write_ring(graph.home, 40)
    rows = home_rows(graph.home.layout, graph.home.chunked)
    for row in rows["entities"]:
        row["end_line"] += 1
    graph.home.write(*(rows[name] for name in ("entities", "edges", "mentions", "chunks")))
    lock = "MATCH (n:Entity {corpus: $corpus, id: $id}) SET n.held = true"
    blocked = "SHOW TRANSACTIONS YIELD status WHERE status STARTS WITH 'Blocked' RETURN count(*)"
    results = []
    with neo4j.driver() as driver, driver.session() as session:
        other = session.begin_transaction()
        other.run(lock, corpus=graph.name, id=ids[19]).consume()
        load = threading.Thread(target=lambda: results.append(graph.load()))
        load.start()
        while neo4j.values(blocked) == [[0]]:
            assert load.is_alive()
        try:
            other.run(lock, corpus=graph.name, id=ids[0]).consume()
            other.rollback()
        except Exception as error:
            assert "Deadlock" in str(error)
        load.join(60)
    assert results and results[0].generation
    graph.assert_equal()


def test_a_loader_that_has_lost_its_lock_writes_nothing_into_anothers_graph(graph, neo4j, monkeypatch):
    """Another one has loaded all of it meanwhile."""
    small_batches(monkeypatch)
    write_ring(graph.home, 100)
    others = []

    def report(doing, unit):
        def progress(done, total):
            if done == 40 and not others:
                running = "SHOW TRANSACTIONS YIELD transactionId, status WHERE status = 'Running' RETURN transactionId"
                for (name,) in neo4j.values(running):
                    neo4j.values("TERMINATE TRANSACTIONS $name", name=name)
                others.append(load_graph(graph.settings, graph.home.chunked, no_report, others.append))

        return progress

    result = graph.load(report)
    assert "is being changed by another loader. Trying again." in graph.said[-1]
    assert "waiting for the lock" in others[0]
    assert (result.changed, others[1].changed) == (40, 2 * 10 + 3 * 100 - 40)
    graph.assert_equal()


def test_a_removal_that_was_cut_off_leaves_no_graph_that_looks_whole(graph, monkeypatch):
    write_ring(graph.home, 30)
    graph.load()

    def cut_off(session, corpus, load):
        session.run("MATCH (n:Entity {corpus: $corpus}) DETACH DELETE n", corpus=corpus).consume()
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(remove, "delete_nodes", cut_off)
        with pytest.raises(KeyboardInterrupt):
            remove_corpus(graph.settings, graph.name)
    with pytest.raises(CgragError, match="is being loaded, or its load was cut off"):
        open_graph(graph.settings, None, "neo4j")
    assert graph.load().written["entity"] == 30
    graph.assert_equal()


def test_damage_beside_a_load_that_was_cut_off_is_mended_with_it(graph, neo4j):
    write_ring(graph.home, 200)
    graph.load()
    rows = home_rows(graph.home.layout, graph.home.chunked)
    rows["entities"][0]["start_line"] += 1
    graph.home.write(*(rows[name] for name in ("entities", "edges", "mentions", "chunks")))

    def report(doing, unit):
        def progress(done, total):
            raise KeyboardInterrupt

        return progress

    with pytest.raises(KeyboardInterrupt):
        graph.load(report)
    far_away = rows["entities"][100]["id"]
    neo4j.values("MATCH (n:Entity {corpus: $name, id: $id}) DETACH DELETE n", name=graph.name, id=far_away)
    graph.load()
    assert "Somebody else has changed the graph in Neo4j: comparing all of it." in graph.said
    graph.assert_equal()
