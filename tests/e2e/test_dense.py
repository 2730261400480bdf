"""Dense and hybrid search with the real MiniLM on a small corpus, by the real command."""

import json
import shutil
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from pipelines.dense.encoder import model_of
from pipelines.dense.place import place_of
from pipelines.layout import Layout
from pipelines.serve.models import EMBEDDER, fetched_folder
from pipelines.settings import Settings
from tests.e2e.conftest import cgrag_in, environment_of
from tests.support import write_tree

pytestmark = pytest.mark.skipif(
    find_spec("sentence_transformers") is None, reason="no sentence-transformers: the dense extra is not installed"
)
FILES = {
    "docs/pets.md": "# Feline companions\n\nA kitten purrs and sleeps on the sofa for most of the day.\n",
    "docs/money.md": "# Invoices\n\nAn invoice is paid within thirty days of its date.\n",
    "src/engine.py": "class Engine:\n    def start(self):\n        return 'vroom'\n",
}


@pytest.fixture(scope="module")
def embedded(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dense")
    cgrag = cgrag_in(folder / "home")
    tree = write_tree(folder / "tree", FILES)
    cgrag("run", "--corpus", str(tree))
    done = cgrag("run", "--select", "chunk_embeddings", check=False)
    if done.returncode and "cannot be reached" in done.stderr:
        pytest.skip("the package index cannot be reached, so there is no embedding model")
    assert done.returncode == 0, done.stderr
    return cgrag, tree


def hits(cgrag, question, mode):
    found = json.loads(cgrag("search", question, "--mode", mode, "--json").stdout)
    assert found["mode"] == mode and {row["via"] for row in found["results"]} <= {mode}
    return found["results"]


def test_a_question_in_other_words_finds_what_is_meant(embedded):
    cgrag, _ = embedded
    assert hits(cgrag, "cats at home", "lexical") == []
    for mode in ("dense", "hybrid"):
        first = hits(cgrag, "cats at home", mode)[0]
        assert (first["path"], first["name"]) == ("docs/pets.md", "Feline companions")
        assert first["unit"]["start_line"] >= first["start_line"] and "meaning 0." in first["why"]


def test_an_edit_embeds_its_own_units_and_a_plain_run_does_it(embedded):
    cgrag, tree = embedded
    assert "Nothing to do" in cgrag("run").stderr
    write_tree(tree, {"docs/money.md": "# Invoices\n\nAn invoice is paid by the month's end.\n"})
    said = cgrag("run").stderr
    assert "chunk_embeddings" in said and "Embedding: 1 units" in said
    assert hits(cgrag, "when is a bill due", "dense")[0]["path"] == "docs/money.md"


def test_a_data_set_is_asked_in_every_mode_and_evaluated(embedded, tmp_path):
    cgrag, tree = embedded
    text = (tree / "docs/pets.md").read_text()
    source = {"file_path": "docs/pets.md", "first_character_index": 0, "last_character_index": len(text)}
    asked = {"question_id": "1", "question": "which animals purr", "sources": [source]}
    questions = tmp_path / "questions.json"
    questions.write_text(json.dumps({"rag_questions": [asked]}))
    report = json.loads(cgrag("evaluate", str(questions), "--json").stdout)
    rows = {(row["mode"], row["arm"]) for row in report["rows"]}
    assert {mode for mode, _ in rows} == {"lexical", "dense", "hybrid"}
    assert ("hybrid", "graph") in rows
    out = tmp_path / "out.json"
    cgrag("search-dataset", str(questions), "--out", str(out), "--mode", "hybrid", "--k", "2")
    (found,) = json.loads(out.read_text())["search_results"]
    assert found["retrieved_sources"][0]["file_path"] == "docs/pets.md"


def test_the_settings_of_another_model_are_refused_in_words(embedded):
    cgrag, _ = embedded
    done = cgrag("search", "cats", "--mode", "dense", check=False, CGRAG_EMBED__TOKENS="64")
    assert done.returncode == 1
    assert "128 tokens (384), the settings ask for" in done.stderr and "Build it anew:" in done.stderr


def test_killed_in_the_middle_it_goes_on_from_its_last_flush(embedded, tmp_path):
    """kill -9 once the first segment is there; the next run asks for the rest only."""
    paragraphs = {f"d/{n}.md": f"# Title {n}\n\n" + f"Paragraph {n} says something. " * 60 for n in range(600)}
    home, tree = tmp_path / "home", write_tree(tmp_path / "tree", paragraphs)
    cgrag_in(home)("run", "--corpus", str(tree), "--select", "corpus_files,chunks")
    segments = place_of(Layout(home), model_of(Settings())).segments
    command = [str(Path(sys.executable).parent / "cgrag"), "run", "--select", "chunk_embeddings"]
    environment = environment_of(home, CGRAG_EMBED__DEVICE="cpu")
    with subprocess.Popen(command, env=environment, cwd=home, stderr=subprocess.DEVNULL) as process:
        while not list(segments.glob("*.parquet")):
            assert process.poll() is None, "it ended before it could be killed"
            time.sleep(0.05)  # between two looks
        process.send_signal(signal.SIGKILL)
    kept = sum(pq.read_metadata(path).num_rows for path in segments.glob("*.parquet"))
    units = sum(pq.read_metadata(path).num_rows for path in Layout(home).partitions.glob("*/units.parquet"))
    said = cgrag_in(home)("run", "--select", "chunk_embeddings").stderr
    assert 0 < kept < units and f"Embedding: {units - kept:,} units" in said
    assert not segments.exists()


def test_a_cut_off_model_is_named(embedded, tmp_path):
    broken = shutil.copytree(fetched_folder(Settings(), EMBEDDER), tmp_path / "model")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    cgrag, _ = embedded
    done = cgrag("run", "--select", "chunk_embeddings", check=False, CGRAG_EMBED__MODEL=str(broken))
    assert done.returncode == 1 and "model.safetensors is not whole" in done.stderr
    assert "CGRAG_EMBED__MODEL" in done.stderr
