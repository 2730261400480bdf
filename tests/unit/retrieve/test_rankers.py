"""Dense and hybrid ranking, by an encoder without a model."""

from itertools import pairwise

import numpy as np
import pytest

from pipelines.dense.index import load_vectors
from pipelines.dense.reranker import Reranker
from pipelines.errors import CgragError
from pipelines.evaluate.questions import Question
from pipelines.evaluate.retrievers import retriever
from pipelines.lexical.index import load_index
from pipelines.lexical.tokens import query_terms
from pipelines.retrieve.fusion import fuse
from pipelines.retrieve.graph_search import GraphSearch
from pipelines.retrieve.rankers import Dense, Hybrid, Lexical, open_ranker
from pipelines.retrieve.search import lexical_scores, search, snippet
from pipelines.settings import EmbedSettings
from tests.embedding import FakeEncoder, embed
from tests.support import write_tree

QUESTIONS = ["dig a tunnel", "where does the marten eat", "who calls `dig`?", "seed", "Vole eat dig"]


@pytest.fixture
def zoo(home, tree):
    files = {
        "zoo/vole.py": "class Vole:\n    def dig(self):\n        return 'tunnel'\n\n"
        "    def eat(self):\n        return 'seed'\n",
        "zoo/burrow.py": "from zoo.vole import Vole\n\n\ndef burrow():\n    return Vole().dig()\n",
        "notes.md": "# Animals\n\nintro\n\n## Moles\n\nThe mole digs a tunnel.\n\n## Otters\n\nThe otter swims.\n",
        **{f"same/{letter}.txt": "marten dig\n" for letter in "abcdefgh"},
    }
    home.build(write_tree(tree, files))
    return home


@pytest.fixture
def vectors(zoo):
    embed(zoo, FakeEncoder())
    return load_vectors(zoo.settings, load_index(zoo.settings))


@pytest.fixture
def make(zoo, vectors):
    """Make a ranker of a mode."""
    index = load_index(zoo.settings)

    def make(mode, reranker=None, **settings):
        if mode == "lexical":
            return Lexical(index)
        if mode == "dense":
            return Dense(index, vectors, FakeEncoder())
        return Hybrid(index, vectors, FakeEncoder(), EmbedSettings(**settings), reranker)

    return make


@pytest.mark.parametrize("mode", ["lexical", "dense", "hybrid"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_fewer_results_are_a_prefix_of_more_and_say_how_they_were_ranked(make, mode, question):
    ranker = make(mode)
    longest = search(ranker, question, 1000)
    assert longest and {result.via for result in longest} == {mode}
    for k in range(1, len(longest)):
        assert search(ranker, question, k) == longest[:k]
    assert [result.score for result in longest] == sorted((result.score for result in longest), reverse=True)


def test_equal_scores_are_in_order_of_chunk_id(make):
    encoder = FakeEncoder()
    encoder.raw = lambda text, vector: np.ones_like(vector)
    ranker = make("dense")
    ranker._encoder = encoder
    found = search(ranker, "x", 1000)
    for one, other in pairwise(found):
        assert (-one.score, one.chunk_id) < (-other.score, other.chunk_id)


def test_hybrid_is_the_fusion_of_both_over_the_lexical_candidates(zoo, make, vectors):
    index = load_index(zoo.settings)
    for question in QUESTIONS:
        lexical = lexical_scores(index, query_terms(question))
        query = FakeEncoder().encode([question], "query")[0]
        found = np.flatnonzero(lexical)
        expected = fuse(lexical[found], vectors.cosines(query, found)[0], 0.4)
        (scored,) = make("hybrid").score([question])
        assert np.allclose(scored.scores[found], expected, atol=1e-6)
        assert not scored.scores[lexical == 0].any()


def test_beyond_the_candidates_hybrid_goes_on_as_the_lexical_ranking_does(make):
    few, lexical = make("hybrid", candidates=2), make("lexical")
    for question in QUESTIONS:
        ids = [result.chunk_id for result in search(few, question, 1000)]
        plain = [result.chunk_id for result in search(lexical, question, 1000)]
        assert ids[2:] == plain[2:] and set(ids[:2]) == set(plain[:2])


def test_without_weight_hybrid_is_the_lexical_ranking(make):
    for question in QUESTIONS:
        plain = [result.chunk_id for result in search(make("lexical"), question, 50)]
        assert [result.chunk_id for result in search(make("hybrid", weight=0), question, 50)] == plain


def test_a_question_without_a_word_of_the_corpus_is_ranked_by_its_vector(make, zoo, vectors):
    asked = "the"  # a stop word
    assert search(make("lexical"), asked) == []
    by_vector = search(make("dense"), asked, 3)
    assert by_vector
    assert [r.chunk_id for r in search(make("hybrid"), asked, 3)] == [r.chunk_id for r in by_vector]
    assert all(result.why.startswith("meaning 0.") for result in by_vector)


def test_a_dense_result_shows_its_most_similar_unit(zoo, make):
    units = {(row["chunk_id"], row["start_line"], row["end_line"]) for row in zoo.rows("units")}
    (first, *_) = search(make("dense"), "a.py Vole.eat def eat seed", 5)
    assert (first.chunk_id, first.part.start_line, first.part.end_line) in units


def test_a_cross_encoder_orders_the_first_few_and_no_others(make):
    class Longest:
        def predict(self, pairs, show_progress_bar):
            assert {question for question, _ in pairs} == {"dig tunnel marten"}
            return [float("nan") if "marten" in text else len(text) for _, text in pairs]

    reranker = Reranker(Longest())
    reranker.depth = 3
    plain = search(make("hybrid"), "dig tunnel marten", 100)
    found = search(make("hybrid", reranker), "dig tunnel marten", 100)
    first = sorted(plain[:3], key=lambda result: ("marten" in result.text, -len(result.text)))
    assert [r.chunk_id for r in found[:3]] == [r.chunk_id for r in first]
    assert [r.chunk_id for r in found[3:]] == [r.chunk_id for r in plain[3:]]
    assert search(make("hybrid", reranker), "dig tunnel marten", 2) == found[:2]


def test_many_questions_at_once_are_ranked_as_one_at_a_time(make):
    ranker = make("hybrid")
    together = retriever(ranker)([Question(str(n), text) for n, text in enumerate(QUESTIONS)], 9)
    for text, ranking in zip(QUESTIONS, together, strict=True):
        assert [(r.path, r.start, r.end) for r in search(ranker, text, 9)] == [tuple(span) for span in ranking]


def test_the_graph_puts_its_chunks_into_the_hybrid_ranking(zoo, make):
    graph = GraphSearch(load_index(zoo.settings), zoo.settings, None, ranker=make("hybrid"))
    assert graph.search("how is a burrow dug", 5) == search(make("hybrid"), "how is a burrow dug", 5)
    found = graph.search("Who calls `dig`?", 9)
    assert {result.via for result in found} == {"hybrid", "graph"}
    assert "burrow" in {result.part.name for result in found if result.via == "graph"}


def test_what_is_found_by_meaning_is_shown_by_the_lines_of_its_part(make):
    (first, *_) = search(make("dense"), "the", 1)
    lines = snippet(first, "the")
    assert lines and all(number >= first.part.start_line for number, _ in lines)


def test_a_cross_encoder_that_cannot_tell_keeps_the_order(make):
    class Same:
        def predict(self, pairs, show_progress_bar):
            return [0.5] * len(pairs)

    plain = [result.chunk_id for result in search(make("hybrid"), "dig tunnel marten", 100)]
    assert [result.chunk_id for result in search(make("hybrid", Reranker(Same())), "dig tunnel marten", 100)] == plain


def test_an_unknown_mode_and_a_home_without_vectors_are_refused(zoo):
    index = load_index(zoo.settings)
    with pytest.raises(CgragError, match="no mode 'sparse'"):
        open_ranker("sparse", index, zoo.settings)
    with pytest.raises(CgragError, match="no embeddings yet"):
        open_ranker("hybrid", index, zoo.settings)
