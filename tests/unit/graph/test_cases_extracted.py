"""The nasty cases (tests/cases: e01, g06, l02, l04, n02, d02) as graphs of what a model said, by a scripted one."""

import json
import unicodedata

import pytest

from pipelines.errors import CgragError
from pipelines.graph.store import graph_record
from tests.extraction import Extracted
from tests.fake_model import FakeModel
from tests.support import case

TAXONOMY = """
version = "1"
types = [
  { name = "Thing", definition = "a thing" }, { name = "Technology", definition = "a technology" },
  { name = "Planet", definition = "a planet" }, { name = "Product", definition = "a product" },
]
relations = [{ name = "USES", definition = "uses" }, { name = "MENTIONS", definition = "mentions" }]
"""


@pytest.fixture
def told(tmp_path):
    """Build a case's tree whose model answers {words of a chunk: answer}; `graph` brings all up to date."""
    (tmp_path / "taxonomy.toml").write_text(TAXONOMY)
    models = []

    def build(name, answers, part="tree", place="corpus"):
        model = FakeModel(lambda text: {"content": next((a for mark, a in answers.items() if mark in text), [])})
        models.append(model.__enter__())
        if name:
            case(name).copy_to(tmp_path / place / "tree", part)
        corpus = Extracted(tmp_path / place, {}, model.url, taxonomy=tmp_path / "taxonomy.toml", policy="hybrid")
        graph(corpus)
        return corpus

    yield build
    for model in models:
        model.stop()


def graph(corpus):
    corpus.rebuild()
    corpus.run()
    corpus.home.build_graph()


def names(corpus):
    return {row["id"]: row for row in corpus.home.rows("entities") if not row["path"]}


def mentions(corpus):
    return [row for row in corpus.home.rows("mentions") if row["kind"] == "extraction"]


def edges(corpus):
    return {
        (row["source"], row["relation"], row["target"]) for row in corpus.home.rows("edges") if "llm" in row["origins"]
    }


def texts_of(corpus):
    return {path.relative_to(corpus.root).as_posix(): path.read_text() for path in corpus.root.rglob("*.md")}


def stored(name, file):
    return json.loads((case(name).folder / file).read_text())


# e01


@pytest.fixture
def near(told):
    return told("e01", {f"# {path}": answer for path, answer in stored("e01", "extract.json").items()})


def test_e01_names_that_differ_in_a_mark_are_different_and_in_form_alone_are_one(near):
    found = names(near)
    assert len({f"name:{name}" for name in ("c", "c++", "c#", "f#", ".net", "net")} & found.keys()) == 6
    assert {"name:http", "name:https", "name:loaduser", "name:loadusers"} <= found.keys()
    accented = {row["entity"] for row in mentions(near) if "JOS" in row["text"].upper()}
    assert accented == {f"name:{unicodedata.normalize('NFC', 'josé')}"}
    assert {"name:node.js", "name:nodejs"} <= found.keys()


def test_e01_every_mention_is_there_as_it_is_written_and_c_is_not_in_c_plus_plus(near):
    texts = texts_of(near)
    paths = {row["chunk_id"]: row["path"] for row in near.home.rows("chunks")}
    for row in mentions(near):
        text = texts[paths[row["chunk_id"]]]
        assert text[row["start"] : row["end"]] == row["text"]
        if row["text"] == "C":
            assert text[row["end"]] not in "+#"
    node = {row["text"] for row in mentions(near) if row["entity"] == "name:node.js"}
    assert node == {"Node.js", "node.js"}


def test_e01_the_order_of_files_does_not_matter(near, told, tmp_path):
    before = near.home.rows("entities"), near.home.rows("mentions"), near.home.rows("edges")
    for path in sorted((tmp_path / "corpus" / "tree").glob("*.md"), reverse=True):
        text = path.read_bytes()
        path.unlink()
        graph(near)
        path.write_bytes(text)
        graph(near)
    assert (near.home.rows("entities"), near.home.rows("mentions"), near.home.rows("edges")) == before


def test_e01_a_name_of_two_types_has_both(told):
    answers = {path: answer | {"relations": []} for path, answer in stored("e01", "types.json").items()}
    corpus = told("e01", {"near the Sun": answers["m1.md"], "was released": answers["m2.md"]}, "tree2")
    (mercury,) = names(corpus).values()
    assert mercury["types"] == ["Planet", "Product"]
    assert mercury["type"] == "Planet"
    assert len(mentions(corpus)) == 2


# g06


def test_g06_what_a_page_says_is_that_pages_alone(told):
    def thing(name):
        return [[name, "Technology"]]

    corpus = told("g06", {"Postgres": thing("Postgres"), "Redis": thing("Redis")})
    paths = {row["chunk_id"]: row["path"] for row in corpus.home.rows("chunks")}
    assert {(row["text"], paths[row["chunk_id"]]) for row in mentions(corpus)} == {
        ("Postgres", "p1/README.md"),
        ("Redis", "p2/README.md"),
    }
    assert len({row["path"] for row in corpus.home.rows("documents")}) == 14


# l02, l04


def test_l02_the_graph_of_the_good_chunks_is_built_and_completed_later(told, tmp_path):
    broken = {"on": True}

    def act(text):
        number = text.partition("MARK_d")[2][:2]
        if number == "07" and broken["on"]:
            return {"status": 500}
        return {"content": [[f"Thing{number}", "Thing", ["USES", "Shared"]], ["Shared", "Thing"]]}

    corpus = told("l02", {})
    with FakeModel(act) as model:
        corpus.options["llm_urls"] = [model.url]
        corpus.change(revision="2")
        graph(corpus)
        assert (len(names(corpus)), len(edges(corpus))) == (12, 11)
        broken["on"] = False
        graph(corpus)
        assert (len(names(corpus)), len(edges(corpus))) == (13, 12)


def test_more_failures_than_allowed_keep_the_last_graph_unless_overridden_for_a_reason(told):
    corpus = told("l02", {})
    before = graph_record(corpus.home.layout)["generation"]
    with FakeModel(lambda text: {"status": 400} if "MARK_d0" in text else {"content": [["Shared", "Thing"]]}) as model:
        corpus.options["llm_urls"] = [model.url]
        corpus.change(revision="2")
        with pytest.raises(CgragError, match=r"refused \(extractions\): 10 of 12 chunks") as refused:
            graph(corpus)
        assert "CGRAG_GRAPH_OVERRIDE" in refused.value.remedy
        assert graph_record(corpus.home.layout)["generation"] == before
        corpus.options["graph_override"] = "a test"
        corpus.change()
        corpus.home.build_graph()
    record = graph_record(corpus.home.layout)
    assert (record["generation"] != before, record["override"]) == (True, "a test")


def test_l04_no_name_of_the_prompts_example_and_none_of_another_text_is_in_the_graph(told):
    rules = {rule["match"]: rule["content"] for rule in stored("l04", "rules.json")["rules"]}
    for rule in rules.values():
        rule["relations"] = []
    corpus = told("l04", rules)
    assert names(corpus).keys() == {"name:baker", "name:london", "name:doctor"}
    paths = {row["chunk_id"]: row["path"] for row in corpus.home.rows("chunks")}
    assert {paths[row["chunk_id"]] for row in mentions(corpus)} == {"house.md"}


# n02


def test_n02_shared_names_outlive_one_of_their_documents_and_not_the_last(told, tmp_path):
    said = stored("n02", "extract.json")
    answers = {"Alice": said["d1.md"], "Redis": said["d2.md"], "Bob left": said["d3.md"], "Bob likes": said["d3.md"]}
    corpus = told("n02", answers)

    def by_document():
        paths = {row["chunk_id"]: row["path"] for row in corpus.home.rows("chunks")}
        found = {}
        for row in mentions(corpus):
            found.setdefault(row["text"], set()).add(paths[row["chunk_id"]])
        return found

    def as_clean(place):
        clean = told("", answers, place=place)
        for path in corpus.root.glob("*.md"):
            (clean.root / path.name).write_bytes(path.read_bytes())
        graph(clean)
        return [corpus.home.rows(name) == clean.home.rows(name) for name in ("entities", "edges", "mentions")]

    assert len({row["chunk_id"] for row in corpus.home.rows("chunks")}) == 3
    assert by_document() == {"Redis": {"d1.md", "d2.md"}, "Bob": {"d2.md", "d3.md"}, "Alice": {"d1.md"}}
    assert ("name:alice", "MENTIONS", "name:redis") in edges(corpus)
    (corpus.root / "d1.md").unlink()
    graph(corpus)
    assert by_document() == {"Redis": {"d2.md"}, "Bob": {"d2.md", "d3.md"}}
    assert edges(corpus) == {("name:bob", "MENTIONS", "name:redis")}
    assert as_clean("clean-2") == [True] * 3
    (corpus.root / "d2.md").write_text("# Notes\n\nBob left.\n")
    graph(corpus)
    assert by_document() == {"Bob": {"d2.md", "d3.md"}}
    assert as_clean("clean-3") == [True] * 3
    for path in corpus.root.glob("*.md"):
        path.unlink()
    graph(corpus)
    assert [corpus.home.rows(name) for name in ("entities", "edges", "mentions")] == [[], [], []]
