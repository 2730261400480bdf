"""Communities through Dagster: built with the graph, with a plot, levels and a data version of their rows."""

import dagster as dg

from pipelines.communities.stored import load_communities
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
