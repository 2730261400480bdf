"""Questions that docs give by themselves: where links lead, and that no text is its own answer."""

import pytest

from pipelines.chunking.restore import restore_texts
from pipelines.corpus.scan import load_plan
from pipelines.evaluate.evaluation import evaluate_file
from pipelines.evaluate.links import Targets, find_links
from pipelines.evaluate.sets import synthetic_questions
from pipelines.evaluate.synthetic import docs_questions
from pipelines.state import chunk_fingerprints
from pipelines.tables import write_json
from tests.unit.evaluate.conftest import FILES


@pytest.fixture
def made(small):
    return synthetic_questions(small.settings, chunk_fingerprints(small.layout, load_plan(small.layout)))


def pieces(row, what="sources"):
    return [
        (s["file_path"], FILES[s["file_path"]][s["first_character_index"] : s["last_character_index"]])
        for s in row[what]
    ]


def of_split(made, split):
    return {row["question"]: row for row in made["rag_questions"] if row["split"] == split}


def test_a_sentence_without_its_link_asks_for_what_it_leads_to(made):
    asked = of_split(made, "doc links")
    question = "Handbook > First steps\nBefore anything can be served, read … carefully."
    assert pieces(asked[question])[0][1].startswith("Start the server with the flag")
    assert pieces(asked[question], "masked")[0][1].startswith("Before anything can be served, read [the adapter")
    caches = next(row for text, row in asked.items() if "tune throughput" in text)
    assert pieces(caches)[0][1].startswith("Blocks of keys and values are evicted")
    assert len(asked) == 2  # neither the table's row nor the fenced example


def test_a_symbol_that_docs_name_is_a_target(made):
    asked = of_split(made, "code links")
    assert [pieces(row)[0][1].splitlines()[0].strip() for _, row in sorted(asked.items())] == [
        "def status(self) -> dict[str, int]:",
        "class Engine:",
    ]


def test_a_heading_asks_for_the_text_below_it_not_for_itself(made):
    asked = of_split(made, "headings")
    assert pieces(asked["Caches > Sizing blocks"])[0][1].startswith("The size of a block is a power of two")
    for row in asked.values():
        assert not pieces(row)[0][1].startswith(("#", row["question"].split(" > ")[-1]))


def test_sets_are_synthetic_by_name_and_the_same_again(made, small):
    assert made["synthetic"] == "docs" and made["note"].startswith("Synthetic")
    assert all(row["question_id"].startswith("synthetic-docs-") for row in made["rag_questions"])
    assert made == synthetic_questions(small.settings, chunk_fingerprints(small.layout, load_plan(small.layout)))


def test_a_sample_is_a_part_of_the_whole(small):
    texts, outline = FILES, small.rows("outline")
    few, all_ = (docs_questions("c", texts, outline, per_split=n)["rag_questions"] for n in (1, 100))
    assert len(few) == 3
    assert all(row in all_ for row in few)


def test_the_asking_sentence_is_never_handed_over(small, made, tmp_path):
    write_json(tmp_path / "made.json", made)
    found = evaluate_file(small.settings, tmp_path / "made.json", ks=(50,))
    for miss in found.misses:
        question = next(q for q in found.asked.questions if q.id == miss.question_id)
        for span, _ in miss.returned:
            assert not any(m.path == span.path and m.start < span.end and span.start < m.end for m in question.masked)


def test_texts_are_those_of_the_files(small):
    texts = restore_texts(small.rows("documents"), small.rows("chunks"))
    for path, text in texts.items():
        assert [(at, c) for at, c in enumerate(text) if not c.isspace()] == [
            (at, c) for at, c in enumerate(FILES[path]) if not c.isspace()
        ]


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.md", "![picture](b.png) and [site](https://example.org) and [here](#below) and `[code`](x"),
        ("a.md", "<!-- [hidden](b.md) -->"),
        ("a.rst", "`Click`_ and ``:class:`x` `` and *text*"),
    ],
)
def test_what_leads_nowhere_in_the_corpus_is_no_link(path, text):
    assert [link for link in find_links(path, text) if Targets({}, []).resolve(link)] == []


def test_a_name_that_two_things_have_is_no_target():
    rows = [
        {"kind": "function", "path": path, "name": "run", "start": 0, "end": 9, "title": "run"}
        for path in ("a.py", "b.py")
    ]
    (link,) = find_links("docs/x.rst", "see :func:`run` for more")
    assert Targets({"a.py": "x" * 9, "b.py": "y" * 9}, rows).resolve(link) is None
    assert Targets({"a.py": "x" * 9}, rows[:1]).resolve(link) == ("a.py", 0, 9)
