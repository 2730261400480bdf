"""The published recall of lexical search, on the development questions."""

import json
from pathlib import Path

import pytest

from cgrag import Corpus
from tests.e2e.conftest import SHARED

QUESTIONS = SHARED / "data" / "vllm-0.10.1-questions-dev.json"


@pytest.mark.skipif(not QUESTIONS.exists(), reason="the development questions are not beside this checkout")
def test_lexical_recall_on_the_development_questions(vllm_home: Path) -> None:
    questions = json.loads(QUESTIONS.read_text())["rag_questions"]
    corpus = Corpus(vllm_home)
    found = {3: 0.0, 5: 0.0, 10: 0.0}
    for question in questions:
        results = corpus.search(question["question"], k=10)
        for k in found:
            covered = [any(_covers(result, source) for result in results[:k]) for source in question["sources"]]
            found[k] += sum(covered) / len(covered) / len(questions)
    assert found[3] >= 0.86
    assert found[5] >= 0.89
    assert found[10] >= 0.91


def _covers(result, source) -> bool:
    first, last = source["first_character_index"], source["last_character_index"]
    shared = min(result.end, last) - max(result.start, first)
    return result.path == source["file_path"] and shared >= (last - first) / 2
