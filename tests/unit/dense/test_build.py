"""The matrix: a vector for every unit, none computed twice, nothing lost when a run is killed."""

import subprocess
import sys
import threading

import numpy as np
import pytest

from pipelines.corpus.scan import load_plan
from pipelines.dense import build as module
from pipelines.dense import cache
from pipelines.dense.build import build_vectors
from pipelines.dense.index import load_vectors
from pipelines.errors import CgragError
from pipelines.lexical.index import load_index
from pipelines.settings import PROJECT, EmbedSettings
from pipelines.state import chunk_fingerprints
from tests.embedding import FakeEncoder, embed, place
from tests.support import write_tree

FILES = {
    "a.py": "def vole():\n    return 'shrew'\n\n\ndef mole():\n    return 'tunnel'\n",
    "b/c.md": "# Voles\n\nA vole is no mole.\n",
    "b/d.md": "# Otters\n\nAn otter swims.\n",
}


def stored(home):
    """{(chunk, line, name): vector}"""
    vectors = load_vectors(home.settings, load_index(home.settings))
    ids = load_index(home.settings).table["chunk_id"].to_pylist()
    return {
        (ids[chunk], place["start_line"], place["name"]): vector.tobytes()
        for chunk, place, vector in zip(vectors.chunk_of, vectors.places.to_pylist(), vectors.vectors, strict=True)
    }


def cut_off_at(call):
    """What an encoder does at each call: at this one it is interrupted."""

    def act(number):
        if number == call:
            raise KeyboardInterrupt

    return act


@pytest.fixture
def embedded(home, tree):
    home.build(write_tree(tree, FILES))
    embed(home, FakeEncoder())
    return home


def test_every_unit_has_the_vector_of_its_path_trail_and_text(home, tree):
    home.build(write_tree(tree, FILES))
    encoder = FakeEncoder()
    built = embed(home, encoder)
    assert (built.units, built.embedded, built.unusable) == (len(home.rows("units")), len(encoder.asked), 0)
    assert "a.py vole\ndef vole():\n    return 'shrew'" in {text.rstrip() for text in encoder.asked}
    assert home.state("chunk_embeddings").state == "fresh"
    expected = FakeEncoder().encode(["a.py mole\ndef mole():\n    return 'tunnel'\n"], "document")[0]
    assert expected.tobytes() in stored(home).values()


def test_an_edit_embeds_only_what_it_changed_and_equals_a_clean_build(embedded, home, tree):
    before = place(embedded).manifest.read_bytes()
    write_tree(tree, {"b/d.md": "# Otters\n\nAn otter dives.\n", "e.md": "# New\n\nnew\n"})
    (tree / "b/c.md").rename(tree / "b/f.md")  # its path is part of the text
    home.build(tree)
    assert home.state("chunk_embeddings").state == "stale"
    encoder = FakeEncoder()
    assert embed(home, encoder).embedded == 3
    assert {text.split()[0] for text in encoder.asked} == {"b/d.md", "e.md", "b/f.md"}
    by_steps = stored(home)
    place(home).manifest.unlink()
    assert embed(home, FakeEncoder()).embedded == len(home.rows("units"))
    assert stored(home) == by_steps
    assert place(home).manifest.read_bytes() != before
    assert len(list(place(home).folder.glob("matrix-*"))) == 1


def test_with_nothing_new_the_model_is_not_even_opened(embedded, tree):
    write_tree(tree, {"b/c.md": "# Voles\n\nA vole is no mole.\n\n# More\n\nmore\n"})
    embedded.build(tree)
    embed(embedded, FakeEncoder())
    (tree / "b/d.md").unlink()
    embedded.build(tree)

    def opened():
        raise AssertionError("the model was opened")

    chunked = chunk_fingerprints(embedded.layout, load_plan(embedded.layout))
    assert build_vectors(embedded.settings, chunked, opened).embedded == 0
    assert len(stored(embedded)) == len(embedded.rows("units"))


def test_a_run_that_is_cut_off_goes_on_from_its_last_flush(home, tree, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(cache, "FLUSH_SECONDS", 0.0)
    home.build(write_tree(tree, {f"{number}.md": f"# T{number}\n\n{'word ' * number}\n" for number in range(12)}))
    first, second = FakeEncoder(act=cut_off_at(4)), FakeEncoder()
    with pytest.raises(KeyboardInterrupt):
        embed(home, first)
    assert home.state("chunk_embeddings").state == "missing"
    assert embed(home, second).embedded == 12 - 6
    assert not set(first.asked) & set(second.asked)
    assert list(place(home).segments.glob("*.parquet")) == []


_EMBED = """
import sys
from pathlib import Path
from pipelines.dense import build, cache
from pipelines.settings import Settings
from tests.embedding import FakeEncoder, embed
from tests.support import Home

build.BATCH, cache.FLUSH_SECONDS = 2, 0.0

def act(number):
    print(number, flush=True)
    sys.stdin.readline()

embed(Home(Path(sys.argv[1])), FakeEncoder(act=act))
"""


def test_a_process_that_is_killed_loses_at_most_what_it_was_doing(home, tree):
    home.build(write_tree(tree, {f"{number}.md": f"# T{number}\n\n{'word ' * number}\n" for number in range(12)}))
    with subprocess.Popen(
        [sys.executable, "-c", _EMBED, str(home.settings.home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=PROJECT,
        text=True,
    ) as process:
        for number in range(1, 5):  # the fourth call is under way
            assert process.stdout.readline() == f"{number}\n"
            if number < 4:
                process.stdin.write("\n")
                process.stdin.flush()
        process.kill()
    assert home.state("chunk_embeddings").state == "missing"
    assert embed(home, FakeEncoder()).embedded == 12 - 6
    assert home.state("chunk_embeddings").state == "fresh"


def test_a_damaged_segment_is_embedded_again(home, tree, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    monkeypatch.setattr(cache, "FLUSH_SECONDS", 0.0)
    home.build(write_tree(tree, {f"{number}.md": f"# T{number}\n\ntext\n" for number in range(6)}))
    with pytest.raises(KeyboardInterrupt):
        embed(home, FakeEncoder(act=cut_off_at(3)))
    segment = next(place(home).segments.glob("*.parquet"))
    segment.write_bytes(segment.read_bytes()[:-20])
    assert embed(home, FakeEncoder()).embedded == 4
    assert len(stored(home)) == 6


def test_another_model_has_vectors_of_its_own_and_going_back_embeds_nothing(embedded):
    units, before = len(embedded.rows("units")), stored(embedded)
    embedded.settings.embed.model = "somebody/else"
    assert embedded.state("chunk_embeddings").on_request
    assert embed(embedded, FakeEncoder(dimension=8)).embedded == units
    assert load_vectors(embedded.settings, load_index(embedded.settings)).vectors.shape == (units, 8)
    embedded.settings.embed.model = EmbedSettings().model
    assert embedded.state("chunk_embeddings").state == "fresh"
    assert (embed(embedded, FakeEncoder()).embedded, stored(embedded)) == (0, before)


def test_equal_texts_are_embedded_once_and_keep_their_places(home, tree):
    home.build(write_tree(tree, {"a.txt": "\n\n".join(["word " * 350] * 4) + "\n"}))
    encoder = FakeEncoder()
    built = embed(home, encoder)
    assert (built.embedded, len(encoder.asked)) == (1, 1) and built.units == len(home.rows("units")) == 4
    lines = {line for _, line, _ in stored(home)}
    assert lines == {row["start_line"] for row in home.rows("units")} and len(lines) == 4
    assert len(set(stored(home).values())) == 1


def test_a_vector_that_is_no_number_is_counted_and_found_by_no_question(home, tree):
    home.build(write_tree(tree, FILES))
    encoder = FakeEncoder()
    encoder.raw = lambda text, vector: vector * np.nan if "otter" in text.lower() else vector
    built = embed(home, encoder)
    assert built.unusable == 1
    vectors = load_vectors(home.settings, load_index(home.settings))
    cosines, _ = vectors.cosines(FakeEncoder().encode(["an otter swims"], "query")[0])
    paths = load_index(home.settings).table["path"].to_pylist()
    assert cosines[paths.index("b/d.md")] == 0
    again = FakeEncoder()
    assert (embed(home, again).unusable, len(again.asked)) == (0, 1)


def test_a_model_that_gives_nothing_is_refused_and_nothing_is_kept_of_it(embedded, tree):
    write_tree(tree, {"e.md": "# New\n\nnew\n"})
    embedded.build(tree)
    embedded.settings.embed.model = "somebody/broken"
    broken = FakeEncoder()
    broken.raw = lambda text, vector: vector * 0
    with pytest.raises(CgragError, match="somebody/broken gives no vector"):
        embed(embedded, broken)
    assert list(place(embedded).segments.glob("*.parquet")) == []


def test_an_empty_corpus_has_an_empty_matrix(home, tree):

    home.build(tree)
    assert embed(home, FakeEncoder()).units == 0
    cosines, units = load_vectors(home.settings, load_index(home.settings)).cosines(np.zeros(64, dtype=np.float32))
    assert (len(cosines), len(units)) == (0, 0)


def test_how_long_it_takes_is_told_early(home, tree, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 1)
    monkeypatch.setattr(module, "_MEASURED_SECONDS", 0.0)
    home.build(write_tree(tree, {f"{number}.md": f"# T{number}\n\ntext\n" for number in range(5)}))
    said = []
    embed(home, FakeEncoder(), said.append)
    assert len(said) == 1 and said[0].startswith("5 units to embed at ")


def test_two_runs_at_once_embed_each_text_once(home, tree):
    home.build(write_tree(tree, FILES))
    inside, on = threading.Event(), threading.Event()

    def hold(number):
        inside.set()
        assert on.wait(60)

    first, second, built = FakeEncoder(act=hold), FakeEncoder(), []
    runs = [threading.Thread(target=lambda e=encoder: built.append(embed(home, e))) for encoder in (first, second)]
    runs[0].start()
    assert inside.wait(60)
    runs[1].start()
    on.set()
    for run in runs:
        run.join(60)
    assert sorted(one.embedded for one in built) == [0, len(home.rows("units"))] and second.asked == []
    assert len(stored(home)) == len(home.rows("units"))
