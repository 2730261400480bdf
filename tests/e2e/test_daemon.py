"""The real daemon: it brings in by its sensors what is added, and a machine that goes down ends what it was doing."""

import json
import os
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import psutil

from tests.e2e.conftest import asked, backfill, cgrag_in, end_of, ui_of
from tests.extraction import docs
from tests.fake_model import FakeModel
from tests.support import write_tree

SELECTOR = {"repositoryName": "__repository__", "repositoryLocationName": "cgrag"}
SETTINGS = {"CGRAG_PARTITION_CHUNKS": "0"}
_START = "mutation($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) { __typename } }"
_RUNS = "{ runsOrError(limit: 50) { ... on Runs { results { status assetSelection { path } tags { key value } } } } }"
_WITHIN = 480
KEYS = [f"d{number:02}" for number in range(6)]
FILES = {path: text for key in KEYS for path, text in docs(key, 2).items()}


def test_what_is_added_to_the_corpus_is_in_the_graph_by_itself(tmp_path):
    home, tree = tmp_path / "home", write_tree(tmp_path / "tree", {"pkg/a.py": "def f():\n    return 1\n"})
    cgrag = cgrag_in(home)
    cgrag("run", "--corpus", str(tree), **SETTINGS)
    with ui_of(home, **SETTINGS) as url:
        for name in ("corpus_changes", "graph_follows"):
            started = asked(url, _START, sensor={**SELECTOR, "sensorName": name})
            assert started["startSensor"]["__typename"] == "Sensor"
        write_tree(tree, {"new/b.py": "from pkg.a import f\n\n\ndef g():\n    return f()\n"})
        ours: list[dict[str, Any]] = []
        deadline = time.monotonic() + _WITHIN
        while time.monotonic() < deadline and not (len(ours) == 5 and ours[0]["status"] in ("SUCCESS", "FAILURE")):
            time.sleep(0.5)  # between two looks
            runs = asked(url, _RUNS)["runsOrError"]["results"]
            ours = [run for run in runs if any(tag["key"] == "cgrag/change" for tag in run["tags"])]
    assert [run["status"] for run in ours] == ["SUCCESS"] * 5
    found = cgrag("graph", "g", "--relation", "CALLS", "--json", **SETTINGS)
    assert [edge["target"] for edge in json.loads(found.stdout)["edges"]] == ["pkg/a.py::f"]
    built = [[asset["path"][0] for asset in run["assetSelection"]] for run in reversed(ours)]
    assert built[:4] == [["corpus_files"], ["chunks"], ["code_facts"], ["extractions"]]
    assert set(built[4]) == {"bm25_index", "code_edges", "knowledge_graph", "communities", "neo4j_graph"}
    ranges = {
        tag["value"] for run in ours for tag in run["tags"] if tag["key"].startswith("dagster/asset_partition_range")
    }
    assert ranges == {"new"}


def test_a_machine_that_goes_down_in_a_backfill_and_a_partition_that_is_removed_meanwhile(
    tmp_path: Path, fake: FakeModel, fake_settings: dict[str, str]
) -> None:
    """d02, by the daemon: everything is killed, a directory deleted, and the UI started again."""
    home, tree = tmp_path / "home", write_tree(tmp_path / "tree", FILES)
    cgrag = cgrag_in(home)
    cgrag("run", "--corpus", str(tree), "--select", "corpus_files,chunks", **fake_settings)
    begun, on = threading.Event(), threading.Event()

    def gate(number: int) -> None:
        if number > 4:
            begun.set()
            on.wait(120)

    fake.gate = gate
    with ui_of(home, **fake_settings) as url:
        number = backfill(url, KEYS)
        assert begun.wait(120)
        for process in psutil.process_iter(["environ"]):
            if (process.info["environ"] or {}).get("CGRAG_HOME") == str(home) and process.pid != os.getpid():
                process.kill()
    on.set()
    fake.gate = lambda number: None
    shutil.rmtree(tree / "d03")
    with ui_of(home, **fake_settings) as url:
        assert end_of(url, number).endswith("FAILED")
    cgrag("run", "--select", "corpus_files,chunks,extractions", "--yes", **fake_settings)
    status = json.loads(cgrag("status", "--json", **fake_settings).stdout)
    assert (status["extraction"]["ok"], status["extraction"]["failed"]) == (2 * (len(KEYS) - 1), 0)
    assert "nothing to resume" in cgrag("resume", "--failed", **fake_settings).stderr
