"""The stored matrix: cosines as a plain loop gives them, and every mismatch refused with what mends it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.dense.index import DenseIndex, load_vectors
from pipelines.errors import CgragError
from pipelines.lexical.index import load_index
from tests.embedding import FakeEncoder, embed, place
from tests.support import write_tree


@pytest.fixture
def embedded(home, tree):
    home.build(write_tree(tree, {"a.md": "# A\n\nape\n", "b.md": "# B\n\nbear\n"}))
    embed(home, FakeEncoder())
    return home


def load(home):
    return load_vectors(home.settings, load_index(home.settings))


def folder(home):
    return place(home).matrix(place(home).record())


@given(st.lists(st.integers(0, 3), max_size=6), st.data())
def test_cosines_are_those_of_a_plain_loop(counts, data):
    """Chunks with no, one or several units; values are small and repeat, so that there are ties."""
    number = st.integers(-2, 2)
    rows = data.draw(st.lists(st.tuples(number, number), min_size=sum(counts), max_size=sum(counts)))
    query = np.float32(data.draw(st.tuples(number, number)))
    vectors = np.float32(rows).reshape(-1, 2)
    first = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    index = DenseIndex(vectors, np.repeat(np.arange(len(counts)), counts).astype(np.int32), first, None, "g")
    wanted = []
    for chunk in range(len(counts)):
        own = [(float(vectors[unit] @ query), -unit) for unit in range(first[chunk], first[chunk + 1])]
        best, unit = max(own, default=(-1.0, 1))
        wanted.append((best, -unit))
    chosen = data.draw(st.lists(st.sampled_from(range(len(counts))), unique=True)) if counts else []
    assert list(zip(*(part.tolist() for part in index.cosines(query)), strict=True)) == wanted
    cosines, units = index.cosines(query, chosen)
    assert list(zip(cosines.tolist(), units.tolist(), strict=True)) == [wanted[chunk] for chunk in chosen]


def test_there_is_none_yet(home, tree):
    home.build(write_tree(tree, {"a.md": "# A\n"}))
    with pytest.raises(CgragError, match="no embeddings yet") as error:
        load(home)
    assert "make dense" in error.value.remedy


def test_the_matrix_of_another_model_is_refused_with_both_ways_out(embedded):
    embedded.settings.embed.model = "BAAI/bge-small-en-v1.5"
    with pytest.raises(
        CgragError, match=r"built with sentence-transformers/all-MiniLM-L6-v2@\S+, 128 tokens \(64\)"
    ) as e:
        load(embedded)
    assert "the settings ask for BAAI/bge-small-en-v1.5, 128 tokens." in e.value.problem
    assert "cgrag run --select chunk_embeddings" in e.value.remedy
    assert "CGRAG_EMBED__MODEL=sentence-transformers/all-MiniLM-L6-v2" in e.value.remedy


@pytest.mark.parametrize(
    "damage",
    [
        lambda f: (f / "vectors.npy").write_bytes((f / "vectors.npy").read_bytes()[:-4]),
        lambda f: (f / "vectors.npy").write_bytes(b""),
        lambda f: (f / "vectors.npy").unlink(),
        lambda f: np.save(f / "vectors.npy", np.zeros((1, 64), dtype=np.float32)),
        lambda f: np.save(f / "vectors.npy", np.zeros((2, 64), dtype=np.float64)),
        lambda f: (f / "chunk_of.npy").write_bytes((f / "chunk_of.npy").read_bytes()[:-1]),
        lambda f: (f / "places.arrow").write_bytes((f / "places.arrow").read_bytes()[:40]),
    ],
    ids=["truncated", "empty", "gone", "short", "of another kind", "no chunks", "no places"],
)
def test_a_damaged_matrix_is_refused_and_built_anew(embedded, damage):
    damage(folder(embedded))
    with pytest.raises(CgragError, match="is damaged") as error:
        load(embedded)
    assert "cgrag run --select chunk_embeddings" in error.value.remedy
    state = embedded.state("chunk_embeddings")
    assert (state.state, state.detail, state.on_request) == ("stale", "damaged", False)
    embed(embedded, FakeEncoder())
    assert embedded.state("chunk_embeddings").state == "fresh"
    assert len(load(embedded).vectors) == 2


def test_numbers_that_are_none_are_seen_when_they_are_met(embedded):
    np.save(folder(embedded) / "vectors.npy", np.full((2, 64), np.nan, dtype=np.float32))
    with pytest.raises(CgragError, match="vectors that are no numbers"):
        load(embedded).cosines(np.ones(64, dtype=np.float32))
    assert embed(embedded, FakeEncoder()).embedded == 2
    assert np.isfinite(load(embedded).vectors).all()


def test_a_question_of_another_dimension_is_refused(embedded):
    with pytest.raises(CgragError, match="has 3 numbers, those of the index 64"):
        load(embedded).cosines(np.ones(3, dtype=np.float32))


def test_vectors_of_other_chunks_than_the_search_index_are_refused(embedded, tree):
    write_tree(tree, {"c.md": "# C\n"})
    embedded.build(tree)
    with pytest.raises(CgragError, match="are of different chunks") as error:
        load(embedded)
    assert "cgrag run" in error.value.remedy


@pytest.mark.parametrize("text", ["{", "{}", "[]"])
def test_a_manifest_that_says_nothing_is_refused_and_built_anew(embedded, text):
    place(embedded).manifest.write_text(text)
    with pytest.raises(CgragError, match="is damaged"):
        load(embedded)
    assert embedded.state("chunk_embeddings").state == "stale"
    embed(embedded, FakeEncoder())
    assert len(load(embedded).vectors) == 2
