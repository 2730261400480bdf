"""The nasty case of partitions that go away (tests/cases: d02); under the daemon: tests/e2e/test_daemon.py."""

import shutil

import pytest

from assets import corpus as corpus_assets
from cgrag.materialize import Materializer
from pipelines.errors import CgragError
from pipelines.progress import no_report
from pipelines.state import asset_states
from tests.dagster.conftest import home_of, take_over
from tests.support import case


@pytest.fixture(scope="module")
def step_1(tmp_path_factory, clean_environment):
    """A folder with the case and a home in which keep and late were built, and gone failed."""
    folder = tmp_path_factory.mktemp("d02")
    root = case("d02").copy_to(folder / "tree")
    really_chunk = corpus_assets.chunk_partition

    def chunk(source, key, *arguments):
        if key == "gone":
            raise OSError("no luck")
        return really_chunk(source, key, *arguments)

    with home_of(folder) as home, pytest.MonkeyPatch.context() as patch:
        patch.setattr(corpus_assets, "chunk_partition", chunk)
        with pytest.raises(CgragError, match="gone: OSError: no luck"):
            Materializer(home.settings, no_report).run(home.scan(root))
    return folder


@pytest.fixture
def failed(tmp_path, home, step_1):
    """Step 1 and 2: gone failed, and then its directory was removed."""
    root = case("d02").copy_to(tmp_path / "tree")
    take_over(step_1, home, root)
    shutil.rmtree(root / "gone")
    return root


@pytest.fixture
def whole(tmp_path, home, run):
    """The case, all of it built."""
    root = case("d02").copy_to(tmp_path / "tree")
    run(root)
    return root


def assert_all_fresh(home):
    assert {state.state for state in asset_states(home.settings)[:3]} == {"fresh"}


def test_d02_resuming_says_that_the_partition_no_longer_exists(failed, home, cli, records):
    said = cli("resume", "--failed")
    assert said.code == 0
    assert "gone no longer exists" in said.err
    assert_all_fresh(home)
    assert records.partitions() == {"keep", "late"}
    assert cli("resume", "--failed").err.startswith("0 failed partitions")


def test_d02_nothing_of_a_removed_partition_is_readable(failed, home, run, records):
    run(failed)
    assert not home.layout.partition("gone", "chunks").parent.exists()
    assert {row["path"] for row in home.rows("chunks")} == {"keep/x.md", "late/x.md"}
    assert "gone/x.md" not in home.paths("word_gone", 10)


def test_d02_a_renamed_directory_is_another_partition(failed, home, run, cli, records):
    run(failed)
    records.new()
    (failed / "late").rename(failed / "late2")
    run(failed)
    assert records.new() == ["late2"]
    assert records.partitions() == {"keep", "late2"}
    assert home.paths("word_late")[0] == "late2/x.md"
    assert "late/x.md" not in home.paths("word_late", 10)
    assert_all_fresh(home)
    listed = {row["key"]: row["state"] for row in cli("status", "--partitions", "--json").json["partition_list"]}
    assert listed == {"keep": "fresh", "late2": "fresh"}


def test_d02_a_directory_that_comes_back_is_new_content(failed, home, run, records, new_home):
    run(failed)
    records.new()
    (failed / "gone").mkdir()
    (failed / "gone" / "x.md").write_text("# back\n\nword_back\n")
    run(failed)
    assert records.new() == ["gone"]
    assert home.paths("word_back")[0] == "gone/x.md"
    clean = new_home()
    clean.build(failed)
    assert home.hashes() == clean.hashes()


def test_d02_a_directory_that_was_built_goes_without_a_trace_and_comes_back_anew(whole, home, run, records):
    assert home.paths("word_gone")[0] == "gone/x.md"
    shutil.rmtree(whole / "gone")
    run(whole)
    assert not home.layout.partition("gone", "chunks").parent.exists()
    assert "gone/x.md" not in home.paths("word_gone", 10)
    assert records.partitions() == {"keep", "late"}
    records.new()
    case("d02").copy_to(whole)
    run(whole)
    assert records.new() == ["gone"]
    assert home.paths("word_gone")[0] == "gone/x.md"


def test_d02_no_graph_part_of_a_removed_partition_is_readable(whole, home, run):
    assert "gone/x.md" in home.entities()
    shutil.rmtree(whole / "gone")
    run(whole)
    assert {row["path"] for row in home.rows("entities")} == {"keep/x.md", "late/x.md"}
    assert not any(end.startswith("gone") for pair in home.edges() for end in pair)
    assert {row["chunk_id"] for row in home.rows("mentions")} <= {row["chunk_id"] for row in home.rows("chunks")}
