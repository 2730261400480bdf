"""The asset graph as the UI shows it."""

import dagster as dg
import pytest

from assets.partitions import ranges
from assets.preview import preview
from cgrag.definitions import defs
from pipelines.state import ASSETS

GRAPH = defs.resolve_asset_graph()
NODES = [GRAPH.get(key) for key in sorted(GRAPH.get_all_asset_keys())]
names = [node.key.to_user_string() for node in NODES]


def test_the_definitions_can_be_loaded():
    dg.Definitions.validate_loadable(defs)
    assert set(ASSETS) <= set(names)


@pytest.mark.parametrize("node", NODES, ids=names)
def test_every_asset_has_a_group_a_kind_and_a_description(node):
    assert node.group_name in ("corpus", "retrieval", "graph", "eval")
    assert node.kinds
    assert len(node.description) > 30


def test_assets_depend_on_each_other_as_designed():
    parents = {node.key.to_user_string(): {key.to_user_string() for key in node.parent_keys} for node in NODES}
    assert parents["corpus_files"] == set()
    assert parents["directory_contents"] == {"corpus_files"}
    assert parents["chunks"] == {"directory_contents"}
    assert parents["bm25_index"] == {"chunks"}


def test_partitioned_assets_share_one_definition_of_directories():
    shared = {node.partitions_def for node in NODES if node.partitions_def}
    assert shared == {dg.DynamicPartitionsDefinition(name="directories")}
    partitioned = {node.key.to_user_string() for node in NODES if node.partitions_def}
    assert {"directory_contents", "chunks"} <= partitioned


def test_assets_whose_rows_depend_on_code_have_a_code_version():
    assert all(GRAPH.get(dg.AssetKey(name)).code_version for name in ASSETS)


def test_every_asset_of_the_corpus_has_a_check():
    checked = {key.asset_key.to_user_string() for key in GRAPH.asset_check_keys}
    assert set(ASSETS) <= checked


def test_a_backfill_of_chunks_is_one_run():
    assert GRAPH.get(dg.AssetKey("chunks")).backfill_policy == dg.BackfillPolicy.single_run()


def test_scattered_partitions_take_few_runs():
    keys = [f"d{number:02}" for number in range(30)]
    assert list(ranges(keys, keys)) == [("d00", "d29")]
    assert list(ranges(keys, keys[::2])) == [("d00", "d28")]
    assert list(ranges(keys, ["d03", "d04", "d10"])) == [("d03", "d04"), ("d10", "d10")]
    assert list(ranges(keys, [])) == []


def test_a_preview_shortens_and_escapes():
    table = preview([{"path": "a|b", "text": "x\ny" * 200}], ["path", "text"]).md_str
    assert "a\\|b" in table
    assert max(len(line) for line in table.splitlines()) < 130
