"""The command as a user has it: a process of its own, on the real corpus or on a small folder."""

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Cgrag, cgrag_in


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "pkg").mkdir(parents=True)
    (tree / "pkg" / "heron.py").write_text("class Heron:\n    def wade(self):\n        return 'reeds'\n")
    (tree / "README.md").write_text("# Birds\n\nThe heron wades.\n\n## Otters\n\nNo birds.\n")
    return tree


@pytest.fixture
def cgrag(tmp_path: Path) -> Cgrag:
    return cgrag_in(tmp_path / "home")


def test_the_default_corpus_is_whole(vllm: Cgrag) -> None:
    status = json.loads(vllm("status", "--json").stdout)
    assert status["corpus"] == "vllm-0.10.1"
    assert status["files"] >= 2700
    assert status["files"] + status["skipped"] >= 2870
    assert status["chunks"] >= 16000
    assert 1 < status["partitions"] <= 300
    assert {asset["name"]: asset["state"] for asset in status["assets"][:3]} == {
        "corpus_files": "fresh",
        "chunks": "fresh",
        "bm25_index": "fresh",
    }


def test_a_second_run_redoes_nothing_and_says_so(vllm: Cgrag) -> None:
    done = vllm("run")
    assert "Nothing to do" in done.stderr
    assert "Chunking" not in done.stderr


def test_results_have_the_keys_of_the_contract(vllm: Cgrag) -> None:
    document = json.loads(vllm("search", "what does LLMEngine.step do", "--k", "3", "--json").stdout)
    assert (document["question"], document["mode"]) == ("what does LLMEngine.step do", "lexical")
    assert [result["rank"] for result in document["results"]] == [1, 2, 3]
    for result in document["results"]:
        assert result["end"] - result["start"] == len(result["text"])
        assert 1 <= result["start_line"] <= result["end_line"]
        assert result["unit"]["start_line"] <= result["unit"]["end_line"]
    best = next(result for result in document["results"] if result["name"] == "LLMEngine.step")
    assert best["path"] == "vllm/engine/llm_engine.py"


def test_only_json_is_on_standard_output(cgrag: Cgrag, folder: Path) -> None:
    done = cgrag("run", "--corpus", str(folder), "--json")
    assert json.loads(done.stdout)["files"] == 2
    assert "Built" in done.stderr


def test_a_missing_folder_is_named_and_the_store_stays(cgrag: Cgrag, folder: Path) -> None:
    cgrag("run", "--corpus", str(folder))
    folder.rename(folder.with_name("moved"))
    done = cgrag("run", check=False)
    assert done.returncode == 1
    assert str(folder) in done.stderr
    assert "Traceback" not in done.stderr
    assert "pkg/heron.py" in cgrag("search", "heron").stdout


def test_an_empty_folder_is_no_error(cgrag: Cgrag, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    done = cgrag("run", "--corpus", str(tmp_path / "empty"))
    assert "nothing to index" in done.stdout
    assert "No sources" in cgrag("search", "anything").stdout


def test_another_corpus_is_refused_with_the_command_for_it(cgrag: Cgrag, folder: Path, tmp_path: Path) -> None:
    cgrag("run", "--corpus", str(folder))
    done = cgrag("run", "--corpus", "pypi:flask==3.0.0", check=False)
    assert done.returncode == 1
    assert "cgrag run --corpus pypi:flask==3.0.0" in done.stderr


@pytest.mark.parametrize(
    "arguments", [("search", "x", "--k", "0"), ("search", "x", "--k", "abc"), ("resume",), ("nonsense",)]
)
def test_wrong_usage_exits_with_2_and_no_traceback(cgrag: Cgrag, arguments: tuple[str, ...]) -> None:
    done = cgrag(*arguments, check=False)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_search_before_the_first_run_says_what_to_run(cgrag: Cgrag) -> None:
    done = cgrag("search", "x", check=False)
    assert (done.returncode, done.stdout) == (1, "")
    assert "cgrag run" in done.stderr


def test_a_setting_that_is_not_valid_is_named(cgrag: Cgrag) -> None:
    done = cgrag("status", check=False, CGRAG_CHUNKING__CAP="7")
    assert done.returncode == 1
    assert "CGRAG_CHUNKING__CAP" in done.stderr


def test_a_question_may_begin_with_a_dash_or_come_from_a_pipe(cgrag: Cgrag, folder: Path) -> None:
    cgrag("run", "--corpus", str(folder))
    assert "heron.py" in cgrag("search", "--", "--wade").stdout
    assert "heron.py" in cgrag("search", "-", stdin="where does it wade?\n").stdout


def test_doctor_knows_this_machine(cgrag: Cgrag) -> None:
    checks = json.loads(cgrag("doctor", "--json", check=False).stdout)["checks"]
    states = {check["name"]: check["state"] for check in checks}
    assert states["Python"] == states["Dagster"] == states["home"] == "ok"
