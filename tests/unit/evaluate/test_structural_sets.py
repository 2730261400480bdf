"""Structural questions from jedi's answers on a corpus whose structure is known by heart."""

from pathlib import Path

import pytest

from pipelines.evaluate.structural_sets import SOURCE, WORDINGS, structural_questions
from tests.support import write_tree

FILES = {
    "zoo/__init__.py": "",
    "zoo/core.py": '''class Animal:
    """Anything that eats."""

    def eat(self, food):
        return chew(food)

    def sleep(self):
        return "z"


def chew(food):
    """Chew."""
    return food


def digest(food):
    def later():
        return chew(food)

    return later()
''',
    "zoo/birds.py": """import functools

from zoo.core import Animal, digest


class Bird(Animal):
    def eat(self, seed):
        return digest(seed)


class Owl(Bird):
    pass


@functools.cache
def feed(seed):
    return Owl().eat(seed)
""",
    "tests/test_birds.py": """from zoo.birds import feed
from zoo.core import digest


def test_feeding():
    assert feed("corn") == "corn"


def test_digesting(unknown):
    assert digest("corn")
    unknown.call()
""",
    "zoo/broken.py": "def (:\n",
}


@pytest.fixture
def root(tree):
    return write_tree(tree, FILES)


def make(root, **settings):
    return structural_questions("zoo", root, {p: t for p, t in FILES.items() if p.endswith(".py")}, **settings)


def first_lines(row):
    texts = (FILES[s["file_path"]][s["first_character_index"] : s["last_character_index"]] for s in row["sources"])
    return {next(line for line in text.split("\n") if not line.startswith("@")).strip() for text in texts}


@pytest.fixture
def answers(root):
    """{(kind, name in the question): first lines of the answer}"""
    made = make(root, wordings={kind: ["{x}"] for kind in WORDINGS if kind != "base_callees"})
    return {(row["split"], row["question"]): first_lines(row) for row in made["rag_questions"]}


def test_answers(answers):
    assert answers["callers", "chew"] == {"def eat(self, food):", "def digest(food):"}  # `later` is a part of it
    assert answers["callers", "feed"] == {"def test_feeding():"}
    assert answers["callees", "feed"] == {"class Owl(Bird):", "def eat(self, seed):"}
    assert answers["bases", "Owl"] == {"class Bird(Animal):"}
    assert answers["subs", "Animal"] == {"class Bird(Animal):"}
    assert answers["inherited", "Owl"] == {"def eat(self, seed):", "def sleep(self):"}
    assert answers["inherited", "Bird"] == {"def sleep(self):"}
    assert answers["tests2", "chew"] == {"def test_digesting(unknown):"}
    assert ("bases", "Animal") not in answers and ("callers", "digest.<locals>.later") not in answers


def test_what_the_method_of_a_parent_calls(root):
    made = make(root, wordings={"base_callees": ["{x} {m}"]})["rag_questions"]
    assert {row["question"]: first_lines(row) for row in made} == {
        "Bird eat": {"def chew(food):"},
        "Owl eat": {"def digest(food):"},
    }


def test_sources_are_beginnings_and_a_class_ends_at_its_first_method(root):
    for row in make(root)["rag_questions"]:
        for source in row["sources"]:
            text = FILES[source["file_path"]][source["first_character_index"] : source["last_character_index"]]
            assert 0 < len(text) <= SOURCE
            assert text.split(" ")[0] in ("def", "class", "@functools.cache\ndef")
            assert not (text.startswith("class") and "def " in text)


def test_the_seed_decides_and_wordings_take_turns(root):
    said = []
    made = make(root, seed=3, per_kind=2, progress=lambda done, total: said.append((done, total)))
    assert made == make(root, seed=3, per_kind=2)
    assert said[-1] == (2 * len(WORDINGS), 2 * len(WORDINGS))
    kinds = [row["split"] for row in made["rag_questions"]]
    assert max(kinds.count(kind) for kind in WORDINGS) == 2
    assert len({row["question_id"] for row in made["rag_questions"]}) == len(kinds)
    assert "jedi" in made["note"]


def test_nothing_is_asked_of_a_corpus_without_python(tmp_path: Path):
    assert structural_questions("empty", tmp_path, {})["rag_questions"] == []
