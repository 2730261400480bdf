"""The nasty cases (tests/cases: n01, n02, q03) on a real Neo4j; n03 is among the tests of loading."""

import json

import pytest

from cgrag import Corpus
from pipelines.corpus.scan import load_plan
from pipelines.graph.look_up import open_graph
from pipelines.neo4j_store.load import load_graph
from pipelines.neo4j_store.remove import remove_corpus
from pipelines.progress import no_report
from pipelines.state import chunk_fingerprints
from tests.extraction import Extracted
from tests.fake_model import FakeModel
from tests.graphs import of_case
from tests.neo4j_server import database_rows, home_rows
from tests.support import Home, case

NAMES = json.loads((case("n01").folder / "graph.json").read_bytes())
QUERIES = json.loads((case("q03").folder / "queries.json").read_bytes())
LONG = (case("q03").folder / "long_query.txt").read_text()


@pytest.fixture
def sentinel(neo4j):
    """Something of somebody else's, which is there at the end, too."""
    neo4j.values("CREATE (:Sentinel {k: 1})")
    yield
    assert neo4j.values("MATCH (s:Sentinel) WITH s, properties(s) AS found DELETE s RETURN found") == [[{"k": 1}]]


def test_n01_names_full_of_cypher_are_names(graph, neo4j, sentinel):
    graph.home.write(*of_case(NAMES))
    for _ in range(2):
        graph.load()
        counts = "MATCH (n:Entity {corpus: $c}) OPTIONAL MATCH (n)-[r]->() RETURN count(DISTINCT n), count(r)"
        assert neo4j.values(counts, c=graph.name) == [[27, 27]]
    for row in NAMES["entities"]:
        found = neo4j.values("MATCH (n:Entity {corpus: $c, name: $n}) RETURN n.id, n.type", c=graph.name, n=row["name"])
        assert found == [[row["id"], row["type"]]]
    labels = neo4j.values("MATCH (n:Entity {corpus: $c}) UNWIND labels(n) AS label RETURN DISTINCT label", c=graph.name)
    assert sorted(labels) == [["Entity"], ["Person"]]
    there = open_graph(graph.settings, None, "neo4j")
    assert {entity.id for row in NAMES["entities"] for entity in there.find(row["name"])} >= {"e5", "e6", "e9"}
    there.close()
    graph.assert_equal()


def test_n02_shared_names_outlive_one_of_their_documents_and_not_the_last(tmp_path, neo4j):
    said = json.loads((case("n02").folder / "extract.json").read_bytes())
    answers = {"Alice": said["d1.md"], "Redis": said["d2.md"], "Bob": said["d3.md"]}
    taxonomy = tmp_path / "taxonomy.toml"
    taxonomy.write_text(
        'version = "1"\ntypes = [{name = "Thing", definition = "a thing"}]\n'
        'relations = [{name = "MENTIONS", definition = "mentions"}]\n'
    )
    with FakeModel(lambda text: {"content": next((a for mark, a in answers.items() if mark in text), [])}) as model:
        corpus = Extracted(tmp_path, {}, model.url, taxonomy=taxonomy, policy="hybrid")
        case("n02").copy_to(corpus.root)
        home = corpus.home
        name = f"n02-{tmp_path.name}"
        settings = neo4j.settings(home=home.settings.home, neo4j_corpus=name)

        def load():
            corpus.rebuild()
            corpus.run()
            home.build_graph()
            chunked = chunk_fingerprints(home.layout, corpus.plan)
            load_graph(settings, chunked, no_report, print)
            assert database_rows(neo4j, name) == home_rows(home.layout, chunked)
            query = (
                "MATCH (n:Entity {corpus: $c})-[:MENTIONED_IN {kind: 'extraction'}]->(:Chunk)-[:FROM_DOCUMENT]->(d) "
                "RETURN n.name, collect(DISTINCT d.path)"
            )
            return {entity: set(paths) for entity, paths in neo4j.values(query, c=name)}

        assert load() == {"Redis": {"d1.md", "d2.md"}, "Bob": {"d2.md", "d3.md"}, "Alice": {"d1.md"}}
        assert neo4j.values("MATCH (:Chunk {corpus: $c})-[r]->(:Chunk) RETURN r", c=name) == []
        (corpus.root / "d1.md").unlink()
        assert load() == {"Redis": {"d2.md"}, "Bob": {"d2.md", "d3.md"}}
        (corpus.root / "d2.md").write_text("# Notes\n\nBob left.\n")
        assert load() == {"Bob": {"d2.md", "d3.md"}}
        for path in corpus.root.glob("*.md"):
            path.unlink()
        assert load() == {}
        assert neo4j.values("MATCH (n {corpus: $c}) RETURN labels(n)", c=name) == [[["CgragGraph"]]]
        remove_corpus(settings, name)


def test_q03_no_question_breaks_or_changes_neo4j(tmp_path, neo4j, sentinel):
    home = Home(tmp_path / "home")
    home.build(case("q03").folder / "tree")
    name = f"q03-{tmp_path.name}"
    settings = neo4j.settings(home=home.settings.home, neo4j_corpus=name)
    load_graph(settings, chunk_fingerprints(home.layout, load_plan(home.layout)), no_report, print)
    corpus = Corpus()
    corpus.settings = settings
    before = database_rows(neo4j, name)
    here, there = open_graph(settings), open_graph(settings, store="neo4j")
    for query in [*QUERIES, LONG]:
        asked = query.encode("utf-8", "replace").decode()  # as the command reads it
        if asked.strip():
            found = corpus.search(asked, graph=True, store="neo4j")
            assert found == corpus.search(asked, graph=True)
        assert here.find(asked) == there.find(asked)
        assert here.near(asked) == there.near(asked)
    assert database_rows(neo4j, name) == before
    there.close()
    remove_corpus(settings, name)
