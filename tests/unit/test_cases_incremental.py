"""The nasty cases of change (tests/cases: s01, s04, s05), without what needs a model."""

import sys

import pytest

from pipelines.errors import CgragError
from tests.support import Home, assert_covered, assert_exact, case, text_of


@pytest.fixture
def work(tmp_path, home, new_home):
    """Make the work tree a version of a case, build it, and compare with a clean build; return the home."""
    root = tmp_path / "W"

    def step(name: str, part: str) -> Home:
        case(name).copy_to(root, part)
        home.build(root)
        assert_exact(home, root)
        assert_clean(home, root, new_home)
        return home

    return step


def assert_clean(home, root, new_home):
    clean = new_home()
    clean.build(root)
    assert home.hashes() == clean.hashes()
    assert home.graph_hashes() == clean.graph_hashes()


# s01: renames


def test_s01_every_step_equals_a_clean_build(work):
    for version in range(1, 7):
        work("s01", f"v{version}")


def test_s01_a_renamed_file_leaves_nothing_under_its_old_name(work):
    work("s01", "v1")
    home = work("s01", "v2")
    for table in ("files", "documents", "outline", "units", "chunks"):
        assert "root.py" not in {row["path"] for row in home.rows(table)}
    assert {row["path"] for row in home.rows("chunks")} >= {"trunk.py", "start.py"}


def test_s01_a_deleted_file_leaves_nothing(work):
    work("s01", "v5")
    home = work("s01", "v6")
    assert {row["path"] for row in home.rows("chunks")} == {"doc.md", "other.py", "start.py", "two.py"}


def test_s01_a_run_with_nothing_changed_changes_no_file(work, home, tmp_path):
    work("s01", "v1")
    before = {file: file.stat().st_mtime_ns for file in home.layout.partitions.rglob("*")}
    home.build(tmp_path / "W")
    assert {file: file.stat().st_mtime_ns for file in home.layout.partitions.rglob("*")} == before


def test_s01_calls_follow_renames_and_never_end_nowhere(work):
    """v3 re-creates edges of files that did not change; v4 and v6 leave importers of what is gone."""
    for version, wanted in case("s01").expected["edges"].items():
        home = work("s01", version)
        calls = home.edges("CALLS")
        assert {pair for pair in calls if pair[1].endswith("::assist")} == {tuple(pair) for pair in wanted}, version
        named = set(home.entities())
        assert {end for pair in home.edges() for end in pair} <= named
        if version != "v1":
            assert not any(name.startswith("root.py") for name in named)
    assert not any(name.startswith("trunk.py") for name in named)
    assert "start.py::begin" in named
    assert not any(row["entity"].startswith("trunk.py") for row in home.rows("mentions"))


def test_s01_a_run_with_nothing_changed_leaves_the_graph_alone(work, home, tmp_path):
    work("s01", "v1")
    before = {file: file.stat().st_mtime_ns for file in home.layout.graph.rglob("*")}
    home.build(tmp_path / "W")
    assert {file: file.stat().st_mtime_ns for file in home.layout.graph.rglob("*")} == before


# s04: syntax errors

BROKEN = case("s04").expected["error_lines_on_311"]


@pytest.mark.parametrize("version", ["v1", "v2", "v3"])
def test_s04_each_file_that_does_not_parse_is_named_with_its_line(work, version):
    expected = {path: line for path, line in BROKEN.items() if "(" not in path}
    if sys.version_info >= (3, 12):
        del expected["future.py"]
    if version == "v2":
        expected["work.py"] = BROKEN["work.py(v2)"]
    home = work("s04", version)
    assert {path: int(why.split("line ")[1].split(":")[0]) for path, why in home.problems().items()} == expected
    for path in expected:
        assert home.definitions(path) == {}


@pytest.mark.parametrize(
    ("version", "word", "path"),
    [
        ("v1", "nilgai", "py2.py"),
        ("v1", "oryxword", "conflict.py"),
        ("v1", "templateword", "template.py"),
        ("v1", "tabword", "tabs.py"),
        ("v1", "genericword", "future.py"),
        ("v2", "ibexword", "work.py"),
        ("v3", "kuduword", "work.py"),
    ],
)
def test_s04_a_broken_file_is_found_as_text(work, version, word, path):
    assert work("s04", version).paths(word) == [path]


def test_s04_nothing_of_the_version_before_is_left(work, tmp_path):
    before = {row["chunk_id"] for row in work("s04", "v1").rows("chunks", "work.py")}
    home = work("s04", "v2")
    assert home.definitions("work.py") == {}
    assert not before & {row["chunk_id"] for row in home.rows("chunks")}
    assert_covered(text_of(tmp_path / "W" / "work.py"), home.rows("chunks", "work.py"))


def test_s04_a_mended_file_has_its_definitions_back(work):
    for version in ("v1", "v2", "v3"):
        home = work("s04", version)
    assert set(home.definitions("work.py")) == {"first", "third", "Keep", "Keep.use"}
    assert home.paths("ibexword") == home.paths("second") == []


def test_s04_the_command_names_the_broken_files_and_ends_well(tmp_path, cli):
    root = case("s04").copy_to(tmp_path / "W", "v2")
    assert cli("run", "--corpus", str(root)).code == 0
    report = cli("status", "--skipped")
    assert "work.py" in report.out
    assert "line 5" in report.out
    problems = {row["path"]: row for row in cli("status", "--skipped", "--json").json["problem_list"]}
    assert {row["reason"] for row in problems.values()} == {"read as plain text"}


def test_s04_edges_of_a_broken_file_go_and_those_of_a_mended_one_come_back(work):
    work("s04", "v1")
    home = work("s04", "v2")
    assert not any(name.startswith("work.py::") for name in home.entities())
    assert not [pair for pair in home.edges("CALLS") if pair[0] == "caller.py::outside"]
    home = work("s04", "v3")
    assert {
        ("caller.py::outside", "work.py::first"),
        ("work.py::first", "work.py::third"),
        ("work.py::Keep.use", "work.py::first"),
    } <= home.edges("CALLS")
    assert not any("second" in name for name in home.entities())


# s05: out of scope


@pytest.fixture
def scope(tmp_path, home, new_home):
    root = case("s05").copy_to(tmp_path / "tree")
    home.build(root)
    return root


def functions(home):
    return {(row["path"], row["name"]) for row in home.rows("outline") if row["kind"] == "function"}


def test_s05_a_file_that_becomes_ignored_is_gone_and_comes_back(scope, home, new_home):
    at_first = home.hashes()
    (scope / ".gitignore").write_text("a.py\n")
    home.build(scope)
    assert home.paths("gnuword") == []
    assert functions(home) == {("b.py", "b")}
    assert_clean(home, scope, new_home)
    (scope / ".gitignore").unlink()
    home.build(scope)
    assert home.hashes() == at_first


def test_s05_an_emptied_file_is_an_empty_document(scope, home, new_home):
    whole = (scope / "a.py").read_bytes()
    (scope / "a.py").write_bytes(b"")
    home.build(scope)
    assert functions(home) == {("b.py", "b")}
    assert [(row["characters"], row["chunks"]) for row in home.rows("documents", "a.py")] == [(0, 0)]
    assert_clean(home, scope, new_home)
    (scope / "a.py").write_bytes(whole)
    home.build(scope)
    assert functions(home) == {("a.py", "a"), ("b.py", "b")}


def test_s05_the_last_file_of_a_partition_takes_the_partition_with_it(tmp_path, new_home):
    root = case("s05").copy_to(tmp_path / "tree")
    home = new_home(partition_chunks=0)
    home.build(root)
    assert home.paths("yakword") == ["only/last.md"]
    (root / "only" / "last.md").unlink()
    home.build(root)
    assert home.paths("yakword") == []
    assert [path.name for path in home.layout.partitions.iterdir()] == [
        home.layout.partition(".", "chunks").parent.name
    ]
    assert [row["path"] for row in home.rows("chunks")] == ["a.py", "b.py"]


def test_s05_a_file_that_is_no_longer_python_is_text(scope, home, new_home):
    (scope / "a.py").rename(scope / "A.PY_")
    home.build(scope)
    assert functions(home) == {("b.py", "b")}
    assert home.paths("gnuword") == ["A.PY_"]
    assert_clean(home, scope, new_home)


def test_s05_an_emptied_corpus_is_empty_everywhere(scope, home):
    for file in scope.rglob("*.*"):
        file.unlink()
    home.build(scope)
    assert all(home.rows(table) == [] for table in ("files", "documents", "outline", "units", "chunks"))
    assert home.search("gnuword") == []


def test_s05_a_missing_source_is_not_an_empty_one(scope, home, cli, tmp_path):
    before = home.hashes()
    scope.rename(tmp_path / "moved")
    said = cli("run")
    assert said.code == 1
    assert str(scope) in said.err
    assert home.hashes() == before
    assert home.paths("gnuword") == ["a.py"]


def test_s05_an_unreadable_source_is_not_an_empty_one(scope, home, monkeypatch):
    from pathlib import Path

    before = home.hashes()

    def refuse(self):
        raise PermissionError(13, "Permission denied", str(self))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "iterdir", refuse)
        with pytest.raises(CgragError, match=f"{scope} cannot be read"):
            home.build(scope)
    assert home.hashes() == before


def test_s05_calls_go_and_come_back_with_their_file(scope, home):
    at_first = home.graph_hashes()
    assert home.edges("CALLS") == {("b.py::b", "a.py::a")}
    (scope / ".gitignore").write_text("a.py\n")
    home.build(scope)
    assert home.edges("CALLS") == set()
    assert not any(name.startswith("a.py") for name in home.entities())
    (scope / ".gitignore").unlink()
    whole = (scope / "a.py").read_bytes()
    (scope / "a.py").write_bytes(b"")
    home.build(scope)
    assert home.edges("CALLS") == set()
    assert "a.py::a" not in home.entities()
    (scope / "a.py").write_bytes(whole)
    home.build(scope)
    assert home.graph_hashes() == at_first


def test_s05_no_part_of_the_graph_is_left_of_an_emptied_corpus(scope, home):
    for file in scope.rglob("*.*"):
        file.unlink()
    home.build(scope)
    assert all(home.rows(table) == [] for table in ("entities", "edges", "mentions"))
