"""Dense and hybrid search with the real MiniLM on a small corpus, by the real command."""

import json
import shutil
from importlib.util import find_spec

import numpy as np
import pytest

from pipelines.dense.index import stored_vectors
from pipelines.serve.models import EMBEDDER, fetched_folder
from pipelines.settings import Settings
from tests.e2e.conftest import cgrag_in
from tests.support import case, write_tree

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


def test_c09_every_vector_of_nearly_empty_files_is_a_number_and_not_zero(embedded, tmp_path):
    cgrag = cgrag_in(tmp_path / "home")
    cgrag("run", "--corpus", str(case("c09").copy_to(tmp_path / "tree")))
    cgrag("run", "--select", "chunk_embeddings")
    vectors = stored_vectors(Settings(home=tmp_path / "home"))
    assert len(vectors) and np.isfinite(vectors).all() and vectors.any(axis=1).all()


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


def test_a_cut_off_model_is_named(embedded, tmp_path):
    broken = shutil.copytree(fetched_folder(Settings(), EMBEDDER), tmp_path / "model")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    cgrag, _ = embedded
    done = cgrag("run", "--select", "chunk_embeddings", check=False, CGRAG_EMBED__MODEL=str(broken))
    assert done.returncode == 1 and "model.safetensors is not whole" in done.stderr
    assert "CGRAG_EMBED__MODEL" in done.stderr
