"""BM25F against a reference written from the formula, with plain loops and dictionaries."""

import math
from collections import Counter

import numpy as np
import pytest

from pipelines.lexical.bm25f import TermCounter
from pipelines.lexical.index import score
from pipelines.lexical.tokens import query_terms, terms, words
from pipelines.retrieve.search import lexical_scores
from pipelines.settings import PROJECT, FieldSettings, LexicalSettings
from tests.support import Home


@pytest.fixture(scope="module")
def own(tmp_path_factory, clean_environment):
    """Our own sources as a corpus, in small chunks."""
    home = Home(tmp_path_factory.mktemp("own") / "home", chunking={"cap": 900})
    home.build(PROJECT / "pipelines")
    assert len(home.rows("chunks")) > 150
    return home


def tokens(text):
    return [term for word in words(text) for term in terms(word)]


def trail_tokens(trail):
    """Each part of the qualified names and heading paths counts once."""
    parts = []
    for name in trail:
        for part in name.replace(".", " > ").split(" > "):
            if part not in parts:
                parts.append(part)
    return tokens(" ".join(parts))


def reference(documents, weights, k1):
    """Return for each document {term: score}; a document is a list of fields, each a list of terms."""
    means = [sum(len(fields[at]) for fields in documents) / len(documents) for at in range(len(weights))]
    frequencies = []
    for fields in documents:
        summed = Counter()
        for at, (weight, b) in enumerate(weights):
            for term, count in Counter(fields[at]).items():
                summed[term] += weight * count / (1 - b + b * len(fields[at]) / means[at])
        frequencies.append(summed)
    df = Counter(term for summed in frequencies for term in summed)
    idf = {term: math.log(1 + (len(documents) - n + 0.5) / (n + 0.5)) for term, n in df.items()}
    return [{term: idf[term] * tf / (k1 + tf) for term, tf in summed.items()} for summed in frequencies]


def expected_scores(rows, chosen):
    """The reference scores of chunks and of files."""
    chunks = [[tokens(row["path"]), trail_tokens(row["trail"]), tokens(row["text"])] for row in rows]
    paths = sorted({row["path"] for row in rows})
    files = [
        [tokens(path), [term for row in rows if row["path"] == path for term in tokens(row["text"])]] for path in paths
    ]
    fields = [
        (chosen.path.weight, chosen.path.b),
        (chosen.trail.weight, chosen.trail.b),
        (chosen.body.weight, chosen.body.b),
    ]
    of_files = [(chosen.file_path.weight, chosen.file_path.b), (chosen.file_body.weight, chosen.file_body.b)]
    return reference(chunks, fields, chosen.k1), dict(zip(paths, reference(files, of_files, chosen.k1), strict=True))


OTHER = LexicalSettings(
    path=FieldSettings(weight=0.5, b=0), trail=FieldSettings(weight=3, b=1), body=FieldSettings(weight=1.5, b=0.9),
    k1=2.1, file_path=FieldSettings(weight=1, b=0.1), file_body=FieldSettings(weight=0.2, b=1),
)  # fmt: skip


@pytest.mark.parametrize("chosen", [LexicalSettings(), OTHER], ids=["default", "other"])
def test_scores_equal_the_reference(own, chosen):
    table = own.table("chunks").sort_by("chunk_id")
    rows = table.to_pylist()
    chunk_scores, file_scores, vocabulary, file_of = score(table, chosen)
    chunks, files = expected_scores(rows, chosen)
    dense = chunk_scores.toarray()
    for number, wanted in enumerate(chunks):
        assert {term for term, at in vocabulary.items() if dense[number, at] > 0} == set(wanted)
        got = [dense[number, vocabulary[term]] for term in wanted]
        assert np.allclose(got, list(wanted.values()), rtol=1e-5, atol=1e-6)
    by_file = file_scores.toarray()
    for number, row in enumerate(rows):
        wanted = files[row["path"]]
        got = [by_file[file_of[number], vocabulary[term]] for term in wanted]
        assert np.allclose(got, list(wanted.values()), rtol=1e-5, atol=1e-6)


QUESTIONS = [
    "how are symbolic links skipped",
    "atomic write of parquet",
    "BM25 field weights",
    "IgnoreRules",
    "heading",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_rankings_equal_the_reference(own, question):
    from pipelines.lexical.index import load_index

    rows = own.table("chunks").sort_by("chunk_id").to_pylist()
    chunks, files = expected_scores(rows, own.settings.lexical)
    asked = query_terms(question)
    best = [sum(wanted.get(term, 0) for term in asked) for wanted in chunks]
    around = {path: sum(wanted.get(term, 0) for term in asked) for path, wanted in files.items()}
    expected = [
        own_score / max(best) + own.settings.lexical.file_share * around[row["path"]] / max(around.values())
        if own_score
        else 0
        for row, own_score in zip(rows, best, strict=True)
    ]
    assert np.allclose(lexical_scores(load_index(own.settings), asked), expected, atol=1e-5)
    order = sorted(range(len(rows)), key=lambda number: (-round(expected[number], 6), rows[number]["chunk_id"]))
    hits = own.search(question, 5)
    assert [round(hit.score, 4) for hit in hits] == [round(expected[number], 4) for number in order[:5]]


def test_more_matches_never_score_less(tree, home):
    for number in range(1, 5):
        (tree / f"f{number}.md").write_text("vole " * number + "word " * (5 - number))
    home.build(tree)
    assert home.paths("vole", 9) == ["f4.md", "f3.md", "f2.md", "f1.md"]


def test_a_term_of_every_document_still_counts():
    """idf is never negative, so the best match of a tiny corpus does not sink."""
    (scores,) = {round(value, 6) for row in reference([[["a"]], [["a"]]], [(1, 0)], 0.9) for value in row.values()}
    assert scores > 0


def test_counts_are_those_of_a_plain_counter():
    texts = ["get_code get_code x", "", "Code code", "C++ 熊猫科"]
    counter = TermCounter()
    raw = counter.add(texts)
    counts = counter.counts(raw).toarray()
    for number, text in enumerate(texts):
        wanted = Counter(tokens(text))
        assert {term: counts[number, at] for term, at in counter.vocabulary.items() if counts[number, at]} == wanted


def test_no_texts_at_all_have_no_counts():
    counter = TermCounter()
    assert counter.counts(counter.add([])).shape == (0, 0)
