"""The sensors under the real daemon: a directory is added, and its function is in the graph without anybody's doing."""

import json
import subprocess
import time
from typing import Any

import httpx
import pytest

from tests.e2e.conftest import cgrag_in, ui_of
from tests.support import write_tree

SELECTOR = {"repositoryName": "__repository__", "repositoryLocationName": "cgrag"}
SETTINGS = {"CGRAG_PARTITION_CHUNKS": "0"}
_START = "mutation($sensor: SensorSelector!) { startSensor(sensorSelector: $sensor) { __typename } }"
_RUNS = "{ runsOrError(limit: 50) { ... on Runs { results { status assetSelection { path } tags { key value } } } } }"
_WITHIN = 240


def asked(url: str, query: str, **variables: Any) -> Any:
    answer = httpx.post(f"{url}/graphql", json={"query": query, "variables": variables}, timeout=60).json()
    assert "errors" not in answer, answer
    return answer["data"]


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_what_is_added_to_the_corpus_is_in_the_graph_by_itself(tmp_path):
    home, tree = tmp_path / "home", write_tree(tmp_path / "tree", {"pkg/a.py": "def f():\n    return 1\n"})
    cgrag = cgrag_in(home)
    cgrag("run", "--corpus", str(tree), **SETTINGS)
    with ui_of(home, **SETTINGS) as url:
        for name in ("corpus_changes", "graph_follows"):
            started = asked(url, _START, sensor={**SELECTOR, "sensorName": name})
            assert started["startSensor"]["__typename"] == "Sensor"
        write_tree(tree, {"new/b.py": "from pkg.a import f\n\n\ndef g():\n    return f()\n"})
        found: subprocess.CompletedProcess[str] | None = None
        deadline = time.monotonic() + _WITHIN
        while time.monotonic() < deadline and (found is None or found.returncode):
            found = cgrag("graph", "g", "--relation", "CALLS", "--json", check=False, **SETTINGS)
        assert found is not None and found.returncode == 0, found
        assert [edge["target"] for edge in json.loads(found.stdout)["edges"]] == ["pkg/a.py::f"]
        runs = asked(url, _RUNS)["runsOrError"]["results"]
    ours = [run for run in runs if any(tag["key"] == "cgrag/change" for tag in run["tags"])]
    assert {run["status"] for run in ours[1:]} == {"SUCCESS"}  # the last one may still be ending
    built = [[asset["path"][0] for asset in run["assetSelection"]] for run in reversed(ours)]
    assert built[:4] == [["corpus_files"], ["chunks"], ["code_facts"], ["extractions"]]
    assert len(built) == 5 and set(built[4]) == {"bm25_index", "code_edges", "knowledge_graph", "neo4j_graph"}
    ranges = {
        tag["value"] for run in ours for tag in run["tags"] if tag["key"].startswith("dagster/asset_partition_range")
    }
    assert ranges == {"new"}
