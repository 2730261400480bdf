"""The report on extraction, on a small corpus with annotations of its own and a scripted model."""

import json

import pytest

from pipelines.errors import CgragError
from pipelines.evaluate import annotations, extraction_report
from pipelines.evaluate.annotations import FOLDER, SET, agreement, fingerprint, load_annotated
from pipelines.evaluate.code_truth import code_chunks
from pipelines.evaluate.extraction_baselines import at_random, together
from pipelines.evaluate.extraction_report import evaluate_extraction
from pipelines.evaluate.extraction_scores import Said
from pipelines.evaluate.extraction_table import CODE, DOCS, as_markdown, cells
from pipelines.extract.taxonomy import load_taxonomy
from pipelines.graph.admission import read_evidence
from pipelines.tables import CHUNKS, read_table
from tests.extraction import Extracted
from tests.fake_model import FakeModel

CORE = """class Base:
    pass


class Engine(Base):
    def load_all(self):
        return run_it()


def run_it():
    return 1
"""
FILES = {
    "core.py": CORE,
    "use.md": "# Guide\n\nThe `Engine` needs Paged Attention. Set `--fast-path` for `run_it`.\n",
    "more.md": "# More\n\nNothing here.\n",
}
SAID = {
    "Guide": [["Guide", "Concept", ["REFERENCES", "Engine"]], ["Engine", "Class", ["RELATES_TO", "Paged Attention"]],
              ["Paged Attention", "Concept"]],
    "class": [["Engine", "Class", ["INHERITS_FROM", "Base"]], ["Base", "Class"]],
}  # fmt: skip
NOTES = [
    ("Engine", "Class", "core.py::Engine"),
    ("Paged Attention", "Concept", None),
    ("--fast-path", "Variable", None),
    ("run_it", "Function", "core.py::run_it"),
]
EDGES = [("#", "REFERENCES", name) for name in ("Engine", "--fast-path", "run_it")]
EDGES.append(("Engine", "REFERENCES", "Paged Attention"))


def act(text):
    for word, content in SAID.items():
        if word in text:
            return {"content": content}
    return {"content": []}


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A corpus, its annotations, and the model that is asked."""
    place = tmp_path_factory.mktemp("measured")
    with FakeModel(act) as model:
        corpus = Extracted(place, FILES, model.url, policy="hybrid")
        folder = place / "annotated"
        folder.mkdir()
        rows = [
            row
            for key in corpus.plan
            for row in read_table(corpus.home.layout.partition(key, "chunks"), CHUNKS).to_pylist()
            if row["path"].endswith(".md")
        ]
        names = ("chunk_id", "path", "start", "end", "start_line", "trail", "text_hash")
        lines = [{name: row[name] for name in names} | {"split": "test"} for row in rows]
        write(folder / SET, lines)
        text = {row["path"]: row["text"] for row in rows}
        notes = [{"text": t, "start": text["use.md"].find(t), "type": k, "symbol": s} for t, k, s in NOTES]
        edges = [dict(zip(("source", "relation", "target"), edge, strict=True)) for edge in EDGES]
        agreed = [
            {"chunk_id": row["chunk_id"], "mentions": notes, "edges": edges}
            if row["path"] == "use.md"
            else {"chunk_id": row["chunk_id"], "mentions": [], "edges": []}
            for row in rows
        ]
        write(folder / "agreed.jsonl", agreed)
        write(folder / "pass-1.jsonl", agreed)
        write(folder / "pass-2.jsonl", [row | {"edges": row["edges"][:2]} for row in agreed])
        yield corpus, folder, model


def write(file, rows):
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_every_recipe_is_scored_on_the_same_chunks(measured):
    corpus, folder, model = measured
    found = evaluate_extraction(corpus.home.settings, folder=folder)
    docs = {scores.recipe: scores for scores in found.docs}
    assert list(docs) == [
        "links",
        "rules",
        "co-occurrence",
        "any names of a sentence",
        "random pairs",
        corpus.recipe.id,
    ]
    assert {scores.chunks for scores in found.docs} == {2}
    rules, llm = docs["rules"], docs[corpus.recipe.id]
    assert (rules.edges.right, rules.edges.found, rules.edge_recall.found) == (3, 3, 4)
    assert rules.labels["REFERENCES"].value == 1.0
    assert (llm.edges.right, llm.edges.found) == (1, 2)
    assert (llm.pairs.right, llm.mentions.found, llm.types.value) == (2, 3, 1.0)
    assert (llm.cooccurrence.right, llm.cooccurrence.found) == (1, 1)
    (recipe,) = found.recipes
    assert not recipe.verdict.admitted and recipe.problems == {} and recipe.answered_edges == 3
    assert found.agreement == {"mentions": 1.0, "edges": pytest.approx(2 * 2 / 6)}
    asked = model.requests
    again = evaluate_extraction(corpus.home.settings, folder=folder)
    assert extraction_report.document(again) == extraction_report.document(found)
    assert model.requests == asked


def test_what_was_measured_is_stored_and_counts_for_the_graph(measured):
    corpus, folder, _ = measured
    found = evaluate_extraction(corpus.home.settings, folder=folder)
    stored = read_evidence(corpus.home.layout.evidence(corpus.recipe.id), corpus.recipe.id)
    assert stored == found.evidence[corpus.recipe.id] and stored.edges.value == 0.5
    assert stored.labels.keys() == {"REFERENCES", "RELATES_TO"}
    assert stored.annotations == fingerprint("test", folder)


def test_a_recipe_that_was_not_asked_about_all_is_not_admitted(measured, tmp_path):
    corpus, folder, model = measured
    corpus.change(model="fake-model", max_tokens=512)
    asked = model.requests
    found = evaluate_extraction(corpus.home.settings, folder=folder, ask=False)
    assert model.requests == asked
    (recipe,) = found.recipes
    assert recipe.problems["not asked"] > 0 and "has not been measured" in recipe.verdict.why
    assert not corpus.home.layout.evidence(recipe.recipe).exists()
    corpus.change(max_tokens=2560)


def test_code_is_judged_by_the_parser_with_names_of_the_chunk(measured):
    corpus, _, _ = measured
    (chunk,), (truth,) = code_chunks(corpus.home.layout)
    assert chunk.path == "core.py"
    assert truth.edges == {
        ("load_all", "DEFINED_IN", "engine"),
        ("engine", "INHERITS_FROM", "base"),
        ("load_all", "CALLS", "run_it"),
    }
    assert truth.names == {"load_all": "Function", "engine": "Class", "base": "Class", "run_it": "Function"}


def test_slots_are_measured_by_the_same_command(measured):
    corpus, folder, model = measured
    before = model.act

    def in_slots(text):
        if "Paged" not in text:
            return None
        pairs = [["Engine", "REFERENCES", "Paged Attention"]]
        return {"content": [[["Engine", "Class"], ["Paged Attention", "NONE"]], pairs]}

    model.act = in_slots
    try:
        corpus.change(format="slots")
        found = evaluate_extraction(corpus.home.settings, folder=folder)
    finally:
        corpus.change(format="list")
        model.act = before
    (recipe,) = found.recipes
    assert recipe.format == "slots" and recipe.degenerate == {}


def test_another_corpus_is_told_where_to_measure(measured):
    corpus, _, _ = measured
    with pytest.raises(CgragError, match="annotated chunks are not in") as error:
        evaluate_extraction(corpus.home.settings)
    assert "cgrag run --corpus pypi:vllm==0.10.1" in error.value.remedy


def test_an_annotated_chunk_whose_text_has_changed_is_not_taken(measured, tmp_path):
    corpus, folder, _ = measured
    rows = [json.loads(line) for line in (folder / SET).read_text().splitlines()]
    write(tmp_path / SET, [row | {"text_hash": "other"} for row in rows])
    with pytest.raises(CgragError, match="2 of 2"):
        load_annotated(corpus.home.layout, "all", tmp_path)


def test_random_pairs_keep_the_taxonomy_and_are_the_same_each_time():
    taxonomy = load_taxonomy()
    names = {f"{kind[0]}{number}": kind for kind in ("Function", "Class", "Variable") for number in range(9)}
    one = at_random("seed", names, 5, taxonomy)
    assert one == at_random("seed", names, 5, taxonomy) != at_random("other", names, 5, taxonomy)
    assert all(taxonomy.relation(kind).allows(names[a], names[b]) and a != b for a, kind, b in one.edges)
    assert at_random("seed", {"f": "Function"}, 5, taxonomy).edges == frozenset()


def test_pairs_of_one_sentence_or_line():
    names = Said({"a": "", "bb": "", "c": ""})
    found = together("A of bb. C\nis c", names, ["A", "bb", "c"], load_taxonomy())
    assert found.edges == {("a", "REFERENCES", "bb")}
    assert together("A\nbb", names, ["A", "bb"], load_taxonomy(), is_code=True).edges == frozenset()


def test_the_table_has_a_line_for_each_and_a_dash_for_nothing(measured):
    corpus, folder, _ = measured
    found = evaluate_extraction(corpus.home.settings, folder=folder)
    lines = {scores.recipe: cells(scores, DOCS) for scores in found.docs}
    assert lines["rules"][4].startswith("1.0 [1.0, 1.0] (3)")
    assert lines["random pairs"][5] == "–"
    table = as_markdown([cells(scores, CODE) for scores in found.code], CODE)
    assert table.splitlines()[1].count("---") == len(CODE) + 1


def test_the_products_annotations_are_whole():
    """Counts alone: what stands in the test split is for the report."""
    rows = [json.loads(line) for line in (FOLDER / SET).read_text().splitlines()]
    assert {row["split"] for row in rows} == {"dev", "test"} and len(rows) >= 60
    files = {split: {row["path"] for row in rows if row["split"] == split} for split in ("dev", "test")}
    assert not files["dev"] & files["test"]
    assert agreement("dev") == {} or all(0 < share <= 1 for share in agreement("dev").values())
    assert annotations.CORPUS.startswith("pypi:")


def test_the_command(measured, cli, monkeypatch):
    corpus, folder, _ = measured
    settings = corpus.home.settings
    monkeypatch.setenv("CGRAG_HOME", str(settings.home))
    monkeypatch.setenv("CGRAG_LLM_URLS", settings.llm_urls[0])
    monkeypatch.setenv("CGRAG_EXTRACT__MODEL", settings.extract.model)
    monkeypatch.setattr(extraction_report.evaluate_extraction, "__kwdefaults__",
                        extraction_report.evaluate_extraction.__kwdefaults__ | {"folder": folder})  # fmt: skip
    said = cli("evaluate-extraction")
    assert said.code == 0, said.err
    assert "not admitted: precision" in said.out and "cgrag run --select knowledge_graph" in said.out
    document = cli("evaluate-extraction", "--no-ask", "--json").json
    assert {row["recipe"] for row in document["docs"]} >= {"rules", "random pairs"}
    assert (settings.home / "reports" / "extraction.json").exists()
    assert cli("evaluate-extraction", "--split", "none").code == 2
    missing = cli("evaluate-extraction", "--recipe", "nobody")
    assert missing.code == 1 and "cgrag ledger stats" in missing.err
