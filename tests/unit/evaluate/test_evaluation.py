"""A whole evaluation against `Corpus.search`, one question and one character at a time."""

import json
import random
import statistics

import pytest

from cgrag import Corpus
from pipelines.evaluate.evaluation import document, evaluate_file
from tests.support import Home

TEXTS = {
    "evict": ("when is a block evicted from memory", "docs"),
    "serve": ("start the server with an adapter", "docs"),
    "engine": ("engine status of busy workers", "code"),
    "odd": ("how are 熊猫 blocks sized?", "docs"),
    "stop": ("how is it and why", "code"),
    "long": ("adapter " * 1_250 + "matrices", "docs"),
}
PLACES = {
    "evict": [("docs/guide.rst", 16, 100), ("docs/guide.rst", 220, 320)],
    "serve": [("docs/lora.md", 130, 260)],
    "engine": [("src/pkg/app.py", 20, 180), ("docs/guide.rst", 330, 420)],
    "odd": [("docs/guide.rst", 200, 300)],
    "stop": [("docs/lora.md", 0, 50)],
    "long": [("docs/lora.md", 10, 80)],
}


@pytest.fixture
def rows(question_file):
    return [
        {
            "question_id": key,
            "question": text,
            "split": split,
            "sources": [
                {"file_path": path, "first_character_index": start, "last_character_index": end}
                for path, start, end in PLACES[key]
            ],
        }
        for key, (text, split) in TEXTS.items()
    ]


def slow(home: Home, k: int, coverage: float, split: str) -> float:
    """Recall@k by the definition, from what `cgrag search` returns."""
    corpus = Corpus(home.settings.home)
    corpus.settings = home.settings
    values = []
    for key, (text, own) in TEXTS.items():
        if split not in ("all", own):
            continue
        results = corpus.search(text, k)
        found = 0
        for path, start, end in PLACES[key]:
            shared = [len(set(range(start, end)) & set(range(r.start, r.end))) for r in results if r.path == path]
            found += max(shared, default=0) >= coverage * (end - start) and bool(shared)
        values.append(found / len(PLACES[key]))
    return statistics.fmean(values)


@pytest.mark.parametrize("coverage", [0.2, 0.5, 1.0])
def test_recall_is_that_of_search_by_the_definition(small, question_file, rows, coverage):
    found = evaluate_file(small.settings, question_file(*rows), ks=(1, 2, 5), min_coverage=coverage)
    assert {row.split for row in found.rows} == {"all", "docs", "code"}
    for row in found.rows:
        assert row.recall == pytest.approx(slow(small, row.k, coverage, row.split), abs=1e-6)
        assert row.low <= row.recall <= row.high
        assert row.recall <= row.hit
        assert (row.minus_matched, row.minus_low, row.minus_high) == (0, 0, 0)


def test_the_order_of_questions_does_not_matter(small, question_file, rows):
    path = question_file(*rows)
    first = document(evaluate_file(small.settings, path), with_misses=True)
    random.Random(0).shuffle(rows)
    assert document(evaluate_file(small.settings, question_file(*rows)), with_misses=True) == first


def test_misses_say_what_was_wanted_and_what_came(small, question_file, rows):
    found = evaluate_file(small.settings, question_file(*rows), ks=(1,))
    missed = {miss["question_id"]: miss for miss in document(found, with_misses=True)["misses"]}
    assert missed["stop"]["returned"] == [] and missed["stop"]["sources"][0]["rank"] is None
    assert "serve" not in missed
    assert all(returned["start_line"] for returned in missed["evict"]["returned"])


def test_the_document_is_the_contract(small, question_file, rows):
    report = json.loads(json.dumps(document(evaluate_file(small.settings, question_file(*rows)))))
    contract = {"mode", "arm", "k", "split", "recall", "low", "high", "hit", "minus_matched", "minus_low", "minus_high"}
    assert report["questions"] == len(TEXTS)
    assert all(set(row) == contract for row in report["rows"])
    assert {(row["k"], row["characters"]) for row in report["equal_characters"]} == {(3, 4500), (5, 7500), (10, 15000)}
