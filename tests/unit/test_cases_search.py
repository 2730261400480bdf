"""The nasty cases of asking (tests/cases: q01, q03)."""

import json
import math

import pytest

from pipelines.errors import CgragError
from tests.support import case, run_process

# q01: more results than there are, and tiny corpora


@pytest.fixture
def vole(built, monkeypatch):
    """Build a part of q01 and make it the home of the command."""

    def build(part):
        home = built("q01", part).home
        monkeypatch.setenv("CGRAG_HOME", str(home.settings.home))
        return home

    return build


@pytest.mark.parametrize("k", [10, 100_000])
def test_q01_asking_for_more_than_there_is_gives_what_there_is(vole, cli, k):
    assert vole("tree").paths("vole", k) == ["one.md"]
    said = cli("search", "vole", "--k", str(k), "--json")
    assert (said.code, said.hits) == (0, ["one.md"])


def test_q01_the_best_match_is_first_in_a_tiny_corpus(vole):
    assert vole("tree3").paths("vole", 10) == ["a.md", "b.md"]


def test_q01_a_term_of_every_document_has_finite_scores_in_a_stable_order(vole):
    home = vole("same")
    answers = [[(hit.path, hit.score) for hit in home.search("vole", 10)] for _ in range(5)]
    assert {path for path, _ in answers[0]} == {"x.md", "y.md"}
    assert all(math.isfinite(score) and score > 0 for _, score in answers[0])
    assert answers == answers[:1] * 5


@pytest.mark.parametrize("k", ["0", "-1", "abc"])
def test_q01_a_k_that_makes_no_sense_is_wrong_usage(vole, cli, k):
    vole("tree")
    said = cli("search", "vole", f"--k={k}")
    assert said.code == 2
    assert "--k" in said.err
    assert said.out == ""


@pytest.mark.parametrize("k", [0, -1])
def test_q01_the_python_api_refuses_such_a_k_too(vole, k):
    with pytest.raises(CgragError, match="at least 1"):
        vole("tree").search("vole", k)


def test_q01_recall_over_one_document_is_one(vole, cli, tmp_path):
    vole("tree")
    source = {"file_path": "one.md", "first_character_index": 0, "last_character_index": 10}
    questions = tmp_path / "questions.json"
    asked = {"question_id": "1", "question": "where is the vole", "sources": [source]}
    questions.write_text(json.dumps({"rag_questions": [asked]}))
    said = cli("evaluate", str(questions), "--arms", "plain", "--k", "10", "--json")
    assert {row["recall"] for row in said.json["rows"]} == {1.0}


# q03: hostile questions

QUERIES = json.loads((case("q03").folder / "queries.json").read_bytes())
LONG = (case("q03").folder / "long_query.txt").read_text()


@pytest.fixture
def hostile(built, monkeypatch):
    home = built("q03").home
    monkeypatch.setenv("CGRAG_HOME", str(home.settings.home))
    return home


def as_bytes(query):
    return query.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("query", [query for query in QUERIES if query.strip()], ids=ascii)
def test_q03_no_question_breaks_the_python_api(hostile, query):
    assert isinstance(hostile.search(query), list)


@pytest.mark.parametrize("query", QUERIES, ids=ascii)
def test_q03_no_question_breaks_the_command(hostile, cli, query):
    for said in (cli("search", "--json", "--", query), cli("search", "--json", "-", stdin=as_bytes(query))):
        assert said.code == (0 if query.strip() else 1)
        if query.strip():
            assert isinstance(said.hits, list)
        else:
            assert said.err.startswith("The question is empty.")
    assert cli("search", "--", query).code == (0 if query.strip() else 1)


def test_q03_no_question_breaks_a_process(hostile):
    """Real arguments and real standard input, with bytes that are no UTF-8, and an output that takes ASCII only."""
    home = hostile.settings.home
    for words, stdin in (
        (["--", as_bytes("\ud83d")], b""),
        (["-"], as_bytes("\ud83d") + b"\xff\0 http"),
        (["--", "--help"], b""),
        (["--", "🦦 http \u202e"], b""),
    ):
        said = run_process("search", "--json", *words, home=home, stdin=stdin, PYTHONIOENCODING="ascii")
        assert (said.code, said.err) == (0, "")
        assert isinstance(said.hits, list)


def test_q03_blank_questions_all_get_the_same_answer(hostile, cli):
    answers = {
        (said.code, said.out, said.err)
        for blank in ("", " ", "\n", "\t\u2003")
        for said in (cli("search", "--", blank), cli("search", "-", stdin=blank.encode()))
    }
    assert len(answers) == 1
    with pytest.raises(CgragError, match="empty"):
        hostile.search(" ")


@pytest.mark.parametrize("query", ["/x rollout", "C++", "qz-"])
def test_q03_punctuation_is_no_query_language(hostile, cli, query):
    assert hostile.paths(query)[0] == "cpp.md"
    assert cli("search", "--json", "--", query).hits[0] == "cpp.md"


@pytest.mark.parametrize("query", ["the", "the of and", "?", "~"])
def test_q03_a_question_of_stop_words_has_no_sources(hostile, cli, query):
    assert hostile.search(query) == []
    assert "No sources" in cli("search", "--", query).out


@pytest.mark.parametrize(
    "query",
    [
        "HTTPServer2",
        "http server",
        "getResponseCode",
        "response code",
        "get_response_body",
        "response body",
        "__init__",
    ],
)
def test_q03_identifiers_are_found_whole_and_in_parts(hostile, query):
    assert hostile.paths(query)[0] == "http.py"


def test_q03_a_very_long_question_is_answered(hostile, cli):
    assert len(LONG) == case("q03").expected["long_query_chars"]
    assert "http.py" in hostile.paths(LONG)
    assert "http.py" in cli("search", "--json", "-", stdin=LONG.encode()).hits


def test_q03_no_question_changes_what_is_stored(hostile, cli):
    home = hostile.settings.home
    before = {file: file.stat().st_mtime_ns for file in home.rglob("*")}
    for query in [*QUERIES, LONG]:
        cli("search", "--", query)
    assert {file: file.stat().st_mtime_ns for file in home.rglob("*")} == before
