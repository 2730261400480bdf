"""The walk, against git itself on random trees."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipelines.corpus.fetch import Source
from pipelines.corpus.git import tracked_files
from pipelines.corpus.walk import Found, Skip, walk
from tests.support import git, write_tree

NAMES = ["a", "b", "ab", "a.py", "b.log", "build", "#x", "!y", "x y", "[z]", "c*"]
PATHS = st.lists(st.sampled_from(NAMES), min_size=1, max_size=3).map("/".join)
PATTERNS = st.lists(
    st.sampled_from(
        ["a", "b/", "/a", "/a/", "*.py", "*.log", "!a.py", "!a", "!b.log", "a/b", "a/*", "!a/b", "**/a", "a/**",
         "a/**/b", "*", "!*/", "!*.py", "[ab]", "[!a]", "a?", "build", "/*", "!/a", "#x", r"\#x", r"\!y", "x y",
         r"x\ y", "x y ", "a.py   ", "", "# note", "c\\*", "a\r", "**", "a**", "[[]z]", "/", "!", "a/b/", "*/b",
         "[a-c]*", "a\\", "[a", "[]a]", "[^a]", "**/", "*/", "!**/b", "**b", "?", "*.p[yz]",
         "/**/b", "a//b", "!a/", "\ta", " a"]
    ),
    max_size=4,
)  # fmt: skip


def walked(root, **source):
    return list(walk(Source(root, "t", **source)))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    paths=st.lists(PATHS, min_size=1, max_size=8),
    rules=st.dictionaries(st.sampled_from(["", "a/", "build/", "a/b/"]), PATTERNS, max_size=3),
    exclude=PATTERNS,
    forced=st.booleans(),
)
def test_a_tree_is_walked_as_git_lists_it(tmp_path, paths, rules, exclude, forced):
    root = tmp_path / "random"
    if not root.exists():
        root.mkdir()
        git(root, "init", "-q")
    empty(root)
    for path in paths:
        try:
            write_tree(root, {path: "x"})
        except (FileExistsError, NotADirectoryError, IsADirectoryError):
            continue  # a name that is a folder already, or below one that is a file
    for folder, patterns in rules.items():
        if (root / folder).is_dir():
            write_tree(root, {f"{folder}.gitignore": "\n".join(patterns) + "\n"})
    write_tree(root, {".git/info/exclude": "\n".join(exclude) + "\n"})
    if forced:
        git(root, "add", "-f", "--", next(path for path in sorted(paths) if (root / path).is_file()))
    listing = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    expected = {path for path in git(root, *listing).split("\0") if path}
    found = walked(root, tracked=tracked_files(root))
    assert {entry.path for entry in found if isinstance(entry, Found)} == expected
    assert_all_named(root, found)


def empty(root):
    """Remove all but .git, and what it tracks."""
    (root / ".git" / "index").unlink(missing_ok=True)
    for entry in root.iterdir():
        if entry.name != ".git":
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()


def assert_all_named(root, found):
    """Every file is found, or skipped by its own name or that of a folder above it, and none of them twice."""
    names = [entry.path for entry in found]
    assert len(names) == len(set(names))
    skipped = tuple(entry.path for entry in found if isinstance(entry, Skip))
    for folder, folders, files in os.walk(root):
        for name in [*files, *(name for name in folders if Path(folder, name).is_symlink())]:
            path = os.path.relpath(f"{folder}/{name}", root)
            assert path in names or any(path.startswith(above) for above in skipped if above.endswith("/")), path


def test_entries_come_sorted_within_each_folder(tree):
    write_tree(tree, {"b/y.py": "", "b/x.py": "", "a.py": "", "c.py": ""})
    assert [entry.path for entry in walked(tree)] == ["a.py", "c.py", "b/x.py", "b/y.py"]


@pytest.mark.parametrize(
    ("path", "skip"),
    [
        (".git/config", ("version control", "")),
        ("sub/.hg/store", ("version control", "")),
        ("node_modules/x/index.js", ("generated", "made by a tool")),
        ("deep/__pycache__/x.pyc", ("generated", "made by a tool")),
        ("env/pyvenv.cfg", ("generated", "made by a tool")),
        ("x.egg-info/SOURCES.txt", ("generated", "package metadata")),
        ("PKG-INFO", ("generated", "package metadata")),
    ],
)
def test_what_tools_make_is_skipped_with_a_reason(tree, path, skip):
    write_tree(tree, {path: "x", "kept.py": "x"})
    found = walked(tree)
    assert [entry.path for entry in found if isinstance(entry, Found)] == ["kept.py"]
    (left_out,) = [entry for entry in found if isinstance(entry, Skip)]
    assert (left_out.reason, left_out.detail) == skip
    assert path.startswith(left_out.path)


def test_a_generated_folder_that_git_tracks_is_walked_for_what_is_tracked(tree):
    write_tree(tree, {"node_modules/kept.js": "x", "node_modules/lost.js": "x"})
    git(tree, "init", "-q")
    git(tree, "add", "node_modules/kept.js")
    found = walked(tree, tracked=tracked_files(tree))
    assert [entry.path for entry in found if isinstance(entry, Found)] == ["node_modules/kept.js"]
    assert_all_named(tree, [entry for entry in found if entry.path != ".git/"] + [Skip(".git/", "")])


def test_without_ignore_rules_a_gitignore_is_a_file_like_any_other(tree):
    write_tree(tree, {".gitignore": "*\n", "a.py": "x"})
    assert [entry.path for entry in walked(tree, ignore_rules=False)] == [".gitignore", "a.py"]


def test_our_own_home_inside_the_corpus_is_left_out(tree):
    write_tree(tree, {"data/corpus/files.parquet": "x", "a.py": "x"})
    found = list(walk(Source(tree, "t"), exclude=tree / "data"))
    assert found == [Found("a.py"), Skip("data/", "home of cgrag")] or set(found) == {
        Found("a.py"),
        Skip("data/", "home of cgrag"),
    }


def test_a_name_that_is_no_utf8_is_skipped_by_a_name_that_can_be_printed(tree):
    (tree / os.fsdecode(b"caf\xe9.py")).write_text("x")
    (tree / os.fsdecode(b"d\xff")).mkdir()
    names = {entry.path: entry.reason for entry in walked(tree) if isinstance(entry, Skip)}
    assert names == {"caf\\xe9.py": "name not UTF-8", "d\\xff": "name not UTF-8"}
    assert all(name.encode() for name in names)


def test_a_checkout_in_a_checkout_is_left_to_its_own_ignore_files(tree):
    """A submodule's or worktree's .git file is no text of the corpus."""
    write_tree(tree, {"sub/.git": "gitdir: ../.git/modules/sub", "sub/a.py": "x"})
    assert walked(tree) == [Skip("sub/.git", "version control"), Found("sub/a.py")]


def test_a_very_deep_tree_is_walked(tree):
    folder = tree
    for _ in range(300):
        folder /= "d"
    folder.mkdir(parents=True)
    (folder / "x.py").write_text("x")
    assert [entry.path for entry in walked(tree)] == ["d/" * 300 + "x.py"]


def test_a_folder_that_cannot_be_listed_is_named(tree, monkeypatch):
    write_tree(tree, {"shut/a.py": "x", "b.py": "x"})
    really_scan = os.scandir

    def refuse(path):
        if os.fspath(path).endswith("shut"):
            raise PermissionError(13, "Permission denied", str(path))
        return really_scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    assert walked(tree) == [Found("b.py"), Skip("shut/", "unreadable", "Permission denied")]


def test_a_pipe_is_not_opened(tree):
    subprocess.run(["mkfifo", tree / "pipe.py"], check=True)
    assert walked(tree) == [Skip("pipe.py", "not a regular file", "a pipe")]


def test_a_home_inside_the_corpus_is_left_out_by_whatever_name_it_is_reached(tmp_path):
    root = write_tree(tmp_path / "real", {"a.py": "x = 1\n", "home/corpus.json": "{}\n"})
    (tmp_path / "link").symlink_to(root)
    for home in (root / "home", tmp_path / "link" / "home"):
        found = {entry.path: getattr(entry, "reason", "") for entry in walk(Source(root, "x"), exclude=home)}
        assert found == {"a.py": "", "home/": "home of cgrag"}
