"""chunk_embeddings through Dagster: built when asked for, and from then on kept up to date by every run."""

from pathlib import Path

import dagster as dg
import pytest

from assets import retrieval
from assets.automation import graph_follows
from cgrag.materialize import Materializer
from pipelines.errors import CgragError
from pipelines.progress import no_report
from tests.dagster.test_automation import Ticks
from tests.embedding import FakeEncoder, place
from tests.support import write_tree


@pytest.fixture
def encoder(monkeypatch):
    fake = FakeEncoder()
    monkeypatch.setattr(retrieval, "load_encoder", lambda settings, report, tell: fake)
    return fake


@pytest.fixture
def embedded(built_zoo, run, encoder):
    assert run(built_zoo, ["chunk_embeddings"]) == ["chunk_embeddings"]
    encoder.asked.clear()
    return built_zoo


def test_a_plain_run_embeds_nothing(built_zoo, run, home, encoder):
    write_tree(built_zoo, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    assert "chunk_embeddings" not in run(built_zoo)
    assert (encoder.asked, home.state("chunk_embeddings").state) == ([], "missing")


def test_once_built_a_plain_run_embeds_what_has_changed(embedded, run, home, encoder, records):
    assert run(embedded) == []
    write_tree(embedded, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    assert "chunk_embeddings" in run(embedded)
    assert [text.split()[0] for text in encoder.asked] == ["cat/lion.md"]
    assert home.state("chunk_embeddings").state == "fresh"
    event = records.instance.get_latest_materialization_event(dg.AssetKey("chunk_embeddings"))
    metadata = event.asset_materialization.metadata
    assert (metadata["embedded"].value, metadata["dagster/row_count"].value) == (1, len(home.rows("units")))


def test_its_check_sees_a_matrix_without_numbers(embedded, run, records, encoder):
    def outcome():
        check = dg.AssetCheckKey(dg.AssetKey("chunk_embeddings"), "every_unit_has_a_vector")
        return records.instance.event_log_storage.get_latest_asset_check_execution_by_key([check])[check]

    assert outcome().status.value == "SUCCEEDED"
    encoder.raw = lambda text, vector: vector * 0 if "lion" in text else vector
    write_tree(embedded, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    run(embedded)
    assert outcome().status.value == "FAILED"


def test_the_sensor_asks_for_it_only_where_it_has_been_built(built_zoo, run, home, records, encoder):
    ticks = Ticks(graph_follows, records.instance)
    for built in (False, True):
        write_tree(built_zoo, {"cat/lion.md": f"# Lion\n\nsleeps {built}\n"})
        Materializer(home.settings, no_report).run(home.scan(built_zoo), ["corpus_files", "chunks", "code_facts"])
        (names,) = ([key.to_user_string() for key in request.asset_selection] for request in ticks().run_requests)
        assert ("chunk_embeddings" in names) == built
        run(built_zoo)
        run(built_zoo, ["chunk_embeddings"])


def absent(settings, report, tell):
    raise CgragError("Dense search needs sentence-transformers: no module.", "Install it:  make dense")


def test_what_cannot_be_embedded_fails_alone(built_zoo, monkeypatch, cli):
    monkeypatch.setattr(retrieval, "load_encoder", absent)
    said = cli("run", "--select", "chunk_embeddings")
    assert said.code == 1 and "make dense" in said.err
    assert cli("search", "lion roars").code == 0
    said = cli("search", "lion roars", "--mode", "hybrid")
    assert said.code == 1 and "no embeddings yet" in said.err
    assert cli("run").code == 0


def test_a_plain_run_without_the_library_says_so_and_does_the_rest(embedded, monkeypatch, cli):
    monkeypatch.setattr(retrieval, "load_encoder", absent)
    write_tree(embedded, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    said = cli("run")
    assert said.code == 0 and "Left as it was: chunk_embeddings. Dense search needs" in said.err
    assert cli("search", "lion sleeps", "--json").hits[0] == "cat/lion.md"
    said = cli("search", "lion sleeps", "--mode", "dense")
    assert said.code == 1 and "are of different chunks" in said.err


@pytest.mark.parametrize("damage", [lambda file: file.write_bytes(file.read_bytes()[:-4]), Path.unlink])
def test_a_damaged_matrix_is_mended_by_the_command_that_is_named(embedded, home, run, encoder, damage):
    damage(place(home).matrix(place(home).record()) / "vectors.npy")
    assert run(embedded) == ["chunk_embeddings"]
    assert home.state("chunk_embeddings").state == "fresh"
    assert len(encoder.asked) == len(home.rows("units"))


def test_a_plain_run_with_another_model_leaves_all_as_it_is(embedded, home, cli, encoder, monkeypatch):
    before = place(home).manifest.read_bytes()
    monkeypatch.setenv("CGRAG_EMBED__TOKENS", "64")
    assert cli("run").code == 0 and encoder.asked == []
    assert place(home).manifest.read_bytes() == before


def test_status_names_it_once_it_is_built(embedded, cli):
    assert {"name": "chunk_embeddings", "state": "fresh", "detail": ""} in cli("status", "--json").json["assets"]
    write_tree(embedded, {"cat/lion.md": "# Lion\n\nsleeps\n"})
    cli("run", "--select", "corpus_files,chunks")
    said = cli("status")
    assert "stale   chunk_embeddings  chunks changed" in said.out and "Next:  cgrag run" in said.out
