"""Communities through Dagster: built with the graph, with a plot, levels and a data version of their rows."""

import dagster as dg
import pytest

from pipelines.communities.stored import load_communities
from tests.fake_model import MODEL, FakeModel
from tests.support import write_tree

NAME = dg.AssetKey("communities")


def latest(records):
    return records.instance.get_latest_materialization_event(NAME).asset_materialization


def test_a_run_divides_the_graph_and_tells_of_it(built_zoo, home, records):
    write_tree(built_zoo, {"cat/lion.md": "# Lion\n\nroars\n\n## More\n\nof it\n"})
    metadata = latest(records).metadata
    assert metadata["dagster/row_count"].value == len(load_communities(home.settings).rows) > 0
    assert set(metadata["communities_by_level"].value) == set(metadata["modularity_by_level"].value) == {"0"}
    assert "data:image/png" in metadata["plot"].md_str
    assert "Panda" in metadata["communities_preview"].md_str


def test_only_another_graph_makes_others(built_zoo, run, home, records):
    version = latest(records).tags["dagster/data_version"]
    records.new("communities")
    assert run(built_zoo) == [] and records.new("communities") == []
    write_tree(built_zoo, {"bear/panda.py": "class Panda:\n    food = 'bamboo'\n\n\nclass Cub(Panda):\n    pass\n"})
    assert "communities" in run(built_zoo)
    assert latest(records).tags["dagster/data_version"] != version
    assert home.state("communities").state == "fresh"


@pytest.fixture
def fake(monkeypatch):
    with FakeModel() as model:
        monkeypatch.setenv("CGRAG_LLM_URLS", model.url)
        monkeypatch.setenv("CGRAG_EXTRACT__MODEL", MODEL)
        monkeypatch.setenv("CGRAG_EXTRACT__BACKOFF", "0")
        yield model


def summaries(cli):
    return cli("status", "--json").json["summaries"]


def test_summaries_are_asked_for_only_when_selected(built_zoo, fake, cli, records):
    assert cli("run").code == 0 and fake.requests == 0
    assert "community_summaries" not in cli("status").out
    said = cli("run", "--select", "community_summaries")
    assert (said.code, fake.requests) == (1, 0) and "--select community_summaries --yes" in said.err
    said = cli("run", "--select", "community_summaries", "--yes")
    assert said.code == 0 and f"{fake.requests} communities in {fake.requests} requests" in said.err
    found = summaries(cli)
    assert found["ok"] == found["communities"] == fake.requests > 0
    assert f"model: {found['ok']} of {found['ok']} communities summarised" in cli("status").out
    event = records.instance.get_latest_materialization_event(dg.AssetKey("community_summaries"))
    metadata = event.asset_materialization.metadata
    assert (metadata["asked"].value, metadata["statuses"].value) == (found["ok"], {"ok": found["ok"]})
    assert "On such things" in metadata["summaries_preview"].md_str
    asked = fake.requests
    assert "No community is left" in cli("run", "--select", "community_summaries", "--yes").err
    assert fake.requests == asked


def test_a_plain_run_brings_the_table_up_to_the_graph_and_asks_nothing(built_zoo, fake, cli, home):
    assert cli("run", "--select", "community_summaries", "--yes").code == 0
    asked = fake.requests
    write_tree(built_zoo, {"dog/wolf.md": "# Wolf\n\nhowls\n\n## Pack\n\nof wolves\n"})
    assert cli("run").code == 0
    assert (fake.requests, summaries(cli)["ok"], summaries(cli)["pending"]) == (asked, asked, 1)
    assert "Nothing to do" in cli("run").err
    assert cli("run", "--select", "community_summaries", "--yes").code == 0
    assert (fake.requests, summaries(cli)["pending"]) == (asked + 1, 0)


def test_a_failed_summary_is_told_and_asked_again(built_zoo, fake, cli):
    fake.act = lambda text: {"status": 400}
    said = cli("run", "--select", "community_summaries", "--yes")
    assert said.code == 1 and "communities have no summary" in said.err and "http 400" in said.err
    assert summaries(cli)["failed"] > 0 and "failed" in cli("status").out
    fake.act = lambda text: None
    assert cli("run", "--select", "community_summaries", "--yes").code == 0
    assert summaries(cli)["failed"] == 0
