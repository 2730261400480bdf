"""The stored communities: what readers refuse, what makes them stale, and how they are read."""

import pytest

from pipelines.communities import stage
from pipelines.communities.plots import draw
from pipelines.communities.stage import make_communities
from pipelines.communities.stored import load_communities, not_nested
from pipelines.errors import CgragError
from pipelines.settings import Settings
from pipelines.tables import read_json, write_json
from tests.graphs import WrittenHome, write_ring


@pytest.fixture
def ring(tmp_path):
    home = WrittenHome(tmp_path / "home")
    write_ring(home, 200)
    return home


@pytest.fixture
def settings(ring):
    return Settings(home=ring.layout.home, communities={"largest": 9})


def test_communities_are_read_as_they_were_built(settings):
    result = make_communities(settings)
    found = load_communities(settings)
    assert found.levels == result.built.communities["level"].to_pylist()[-1] + 1
    (finest, *above) = found.of("m0.py::f0")
    assert [row.level for row in (finest, *above)] == list(range(finest.level, -1, -1))
    assert "m0.py::f0" in finest.members and finest.summary == "" and finest.cited == []
    assert {row.id for row in found.children(above[-1].id)} == {r.id for r in found.rows if r.parent == above[-1].id}
    assert found.of("nothing.py") == [] and not_nested(found) == []


def test_what_is_not_built_is_refused_with_the_command(settings):
    with pytest.raises(CgragError, match=r"not built.\nBuild them:  cgrag run --select communities"):
        load_communities(settings)


def test_communities_of_another_graph_are_refused(ring, settings):
    make_communities(settings)
    write_ring(ring, 201)
    with pytest.raises(CgragError, match="of another graph"):
        load_communities(settings)


def test_communities_of_other_settings_are_refused(settings):
    make_communities(settings)
    settings.communities.largest = 20
    with pytest.raises(CgragError, match="CGRAG_COMMUNITIES"):
        load_communities(settings)


def test_an_origin_that_is_admitted_since_makes_them_stale(ring, settings):
    make_communities(settings)
    record = read_json(ring.layout.graph_record, "")
    write_json(ring.layout.graph_record, record | {"admission": {"rule": {"admitted": True}}})
    with pytest.raises(CgragError, match="cgrag run --select communities"):
        load_communities(settings)


@pytest.mark.parametrize("name", ["communities", "memberships"])
def test_a_run_that_was_killed_between_the_tables_leaves_nothing_that_is_read(ring, settings, monkeypatch, name):
    make_communities(settings)
    write_ring(ring, 204)
    wrote = []

    def die(path, table, manifest):
        if path.stem == name:
            raise KeyboardInterrupt
        wrote.append(path)
        write(path, table, manifest)

    write = stage.write_arrow
    monkeypatch.setattr(stage, "write_arrow", die)
    with pytest.raises(KeyboardInterrupt):
        make_communities(settings)
    with pytest.raises(CgragError, match="not built"):
        load_communities(settings)
    monkeypatch.undo()
    make_communities(settings)
    assert len(load_communities(settings).of("m20.py::f203")) >= 1


def test_a_damaged_table_is_refused(ring, settings):
    make_communities(settings)
    file = ring.layout.communities / "communities.parquet"
    file.write_bytes(file.read_bytes()[:-9])
    with pytest.raises(CgragError, match="damaged"):
        load_communities(settings)


def test_a_home_without_a_graph_is_refused(tmp_path):
    with pytest.raises(CgragError, match="no knowledge graph"):
        make_communities(Settings(home=tmp_path / "empty"))


def test_an_empty_graph_has_none(ring, settings):
    ring.write([])
    assert make_communities(settings).built.communities.num_rows == 0
    assert (load_communities(settings).levels, load_communities(settings).rows) == (0, [])


def test_the_plot_takes_any_name(settings):
    rows = make_communities(settings).built.communities.to_pylist()
    assert draw(rows)[:4] == b"\x89PNG"
    assert draw([rows[0] | {"name": "$a$ 熊猫 \ud800"}, *rows[1:]])[:4] == b"\x89PNG"
    assert draw([])[:4] == b"\x89PNG"


def test_its_state_follows_the_graph(tree, new_home):
    from tests.support import write_tree

    write_tree(tree, {"a.py": "def f():\n    return g()\n\n\ndef g():\n    return 1\n"})
    home = new_home()
    home.build(tree)
    assert home.state("communities").state == "missing"
    make_communities(home.settings)
    assert home.state("communities").state == "fresh"
    write_tree(tree, {"a.py": "def f():\n    return h()\n\n\ndef h():\n    return 1\n"})
    home.build(tree)
    assert (home.state("communities").state, home.state("communities").detail) == ("stale", "graph changed")
    make_communities(home.settings)
    (home.layout.communities / "memberships.parquet").unlink()
    assert home.state("communities").state == "stale"
