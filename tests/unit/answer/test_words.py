"""What is told without a model: made-up names, what a question refers to, and how much of it the sources have."""

import math
import re

import pytest

from pipelines.answer.conversation import in_full, to_search
from pipelines.answer.evidence import evidence
from pipelines.answer.names import unsupported
from pipelines.answer.recipe import Turn
from pipelines.lexical.index import load_index
from pipelines.lexical.tokens import query_terms, terms
from pipelines.retrieve.rankers import Lexical
from pipelines.retrieve.search import search

SOURCE = "class Engine:\n    def run(self, max_len): return load_model('x')\nUse `--enable-lora` and VLLM_PORT.\n"


@pytest.mark.parametrize(
    ("answer", "made_up"),
    [
        ("`Engine.run` calls load_model with max_len.", []),
        ("Pass --enable-lora and set VLLM_PORT.", []),
        ("Pass --enable-loras.", ["--enable-loras"]),
        ("Set `VLLM_PORTS`.", ["VLLM_PORTS"]),
        ("LoRAEngine and load_models do it, as load_models says.", ["LoRAEngine", "load_models"]),
        ("Engine.stop ends it.", ["Engine.stop"]),
        ("It is a plain sentence, e.g. of words. Nothing else.", []),
        ("`quick` is quoted, quick is not.", ["quick"]),
    ],
)
def test_a_name_that_no_cited_source_has_is_found(answer, made_up):
    assert unsupported(answer, [SOURCE]) == made_up


TURNS = [Turn("What does `Engine.step` do?", "It runs load_model."), Turn("Is that slow?", "No.")]


@pytest.mark.parametrize(
    ("question", "full"),
    [
        ("Who calls it?", "Who calls `Engine.step`?"),
        ("What are its subclasses?", "What are `Engine.step`'s subclasses?"),
        ("Does it call load_weights?", "Does it call load_weights?"),
        ("How is a model served?", "How is a model served?"),
    ],
)
def test_a_pronoun_stands_for_the_name_that_was_spoken_of_last(question, full):
    assert in_full(question, TURNS) == full


def test_without_a_name_in_the_conversation_nothing_is_put_in():
    assert in_full("Who calls it?", [Turn("How do I begin?", "By reading.")]) == "Who calls it?"
    assert in_full("Who calls it?", []) == "Who calls it?"


def test_a_question_that_says_little_is_searched_for_with_the_last_one():
    turns = [Turn("How do I enable LoRA adapters?", "By a flag.")]
    assert to_search("And on CPU?", "And on CPU?", turns) == "And on CPU? How do I enable LoRA adapters?"
    whole = "How are blocks of the prefix cache evicted?"
    assert to_search(whole, whole, turns) == whole


@pytest.mark.parametrize(
    "question",
    ["How do I enable LoRA adapters?", "Who weighs a thing?", "zebra stripes and LoRA", "zebra stripes", "的"],
)
def test_evidence_is_the_weighted_share_of_the_questions_words_in_the_best_source(asked, question):
    index = load_index(asked.settings)
    results = search(Lexical(index), question, 5)
    rows = index.table.to_pylist()

    def of(row):  # what the index has of a chunk, its headings among them
        return set(of_text(f"{row['path']} {' '.join(row['trail'])} {row['text']}"))

    def of_text(text):
        return {term for word in re.findall(r"\w+", text) for term in terms(word)}

    def weight(term):
        n = sum(term in of(row) for row in rows)
        return math.log(1 + (len(rows) - n + 0.5) / (n + 0.5))

    wanted = query_terms(question)
    total = sum(map(weight, wanted))
    held = [sum(weight(term) for term in wanted if term in of_text(f"{r.path} {r.text}")) for r in results[:3]]
    assert evidence(index, question, results) == pytest.approx(max(held, default=0) / total if total else 0)
