"""Answers by the real command: exactly the graph's rows for known symbols, and a dataset that is killed half way."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.conftest import Cgrag, cgrag_in, environment_of
from tests.fake_model import MODEL, SAID, FakeModel
from tests.support import write_tree

CALLED = ["make_zmq_socket", "get_tensor_model_parallel_rank", "LLMEngine.step", "run_method", "LoRARequest"]
CLASSES = ["GPUModelRunner", "OpenAIServingChat", "AWQConfig", "FlashAttentionBackend", "LlamaForCausalLM"]
NOWHERE = {"CGRAG_LLM_URLS": "http://127.0.0.1:9/v1"}


@pytest.mark.parametrize("name", CALLED)
def test_who_calls_a_symbol_is_exactly_the_graphs_rows_without_a_model(vllm: Cgrag, name: str) -> None:
    _same(vllm, f"Who calls {name}?", name, "CALLS", "in")


@pytest.mark.parametrize("name", CLASSES)
def test_what_a_class_inherits_from_is_exactly_the_graphs_rows_without_a_model(vllm: Cgrag, name: str) -> None:
    _same(vllm, f"What does {name} inherit from?", name, "INHERITS_FROM", "out")


def _same(vllm: Cgrag, question: str, name: str, relation: str, direction: str) -> None:
    answer = json.loads(vllm("answer", question, "--json", **NOWHERE).stdout)
    rows = json.loads(vllm("graph", name, "--relation", relation, "--direction", direction, "--json").stdout)["edges"]
    assert answer["edges"] == rows != []
    assert (answer["by"], answer["found"], len(answer["sources"])) == ("graph", True, len(rows))


IN_FLIGHT, QUESTIONS = 2, 30


def test_a_killed_dataset_goes_on_and_asks_nothing_twice(tmp_path: Path, fake: FakeModel) -> None:
    topics = [f"topic{n}" for n in range(QUESTIONS)]
    tree = write_tree(tmp_path / "tree", {f"docs/{name}.md": f"# {name}\n\nEnable {name} so.\n" for name in topics})
    questions, out = tmp_path / "questions.json", tmp_path / "out.json"
    rows = [{"question_id": name, "question": f"How do I enable {name}?"} for name in topics]
    questions.write_text(json.dumps({"rag_questions": rows}))
    home = tmp_path / "home"
    settings = {
        "CGRAG_LLM_URLS": fake.url,
        "CGRAG_EXTRACT__MODEL": MODEL,
        "CGRAG_EXTRACT__IN_FLIGHT": str(IN_FLIGHT),
    }
    cgrag_in(home)("run", "--corpus", str(tree), **settings)
    before = fake.requests
    command = [str(Path(sys.executable).parent / "cgrag"), "answer-dataset", str(questions), "--out", str(out)]
    environment = environment_of(home, **settings)
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as child:
        fake.gate = lambda n: child.send_signal(signal.SIGKILL) if n == before + QUESTIONS // 2 else None
        child.communicate()
        assert child.returncode == -signal.SIGKILL
    assert not out.exists()
    fake.gate = lambda n: None
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert [row["answer"] for row in json.loads(out.read_text())["search_results"]] == [SAID] * QUESTIONS
    asked = {question: times for question, times in fake.asked.items() if question.startswith("How")}
    assert len(asked) == QUESTIONS
    assert sum(asked.values()) - QUESTIONS <= IN_FLIGHT, "only what was under way has no answer yet"
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert f"{QUESTIONS} cached" in again.stderr
