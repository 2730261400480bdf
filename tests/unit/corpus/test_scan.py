"""Scanning: what is kept, what is left out and why, and when a scan is another one."""

import os

import pytest

from pipelines.corpus.scan import Unreadable, is_scanned, load_plan, read_file, store_scan
from pipelines.errors import CgragError
from pipelines.layout import Layout
from tests.support import write_tree


def scanned(home, tree):
    found = home.scan(tree)
    return [row["path"] for row in found.files], {row["path"]: (row["reason"], row["detail"]) for row in found.skipped}


def test_a_file_above_the_size_cap_is_skipped_with_its_size(tree, new_home):
    (tree / "at.py").write_bytes(b"#" * 1000)
    (tree / "above.py").write_bytes(b"#" * 1001)
    files, skipped = scanned(new_home(max_file_bytes=1000), tree)
    assert files == ["at.py"]
    assert skipped == {"above.py": ("too large", "1,001 bytes; CGRAG_MAX_FILE_BYTES is 1,000")}


def test_a_one_line_json_of_fifty_megabytes_is_skipped_unread(tree, home, monkeypatch):
    with (tree / "huge.json").open("wb") as file:
        file.truncate(50_000_000)
    opened = []
    really_open = os.open
    monkeypatch.setattr(
        os, "open", lambda path, *more, **named: opened.append(path) or really_open(path, *more, **named)
    )
    files, skipped = scanned(home, tree)
    assert files == []
    assert tree / "huge.json" not in opened
    assert skipped["huge.json"][0] == "too large"


def test_a_one_line_json_of_fifty_megabytes_that_is_let_in_is_minified(tree, new_home):
    with (tree / "huge.json").open("wb") as file:
        file.write(b'{"a":[' + b"1234567," * 6_250_000 + b"0]}")
    files, skipped = scanned(new_home(max_file_bytes=100_000_000), tree)
    assert files == []
    assert skipped["huge.json"][0] == "minified"


def test_minified_is_a_matter_of_line_length_not_of_size(tree, home):
    (tree / "long.js").write_text("x;" * 200_000)
    (tree / "short.js").write_text("x;\n" * 200_000)
    (tree / "small.js").write_text("x;" * 20_000)
    files, skipped = scanned(home, tree)
    assert files == ["short.js", "small.js"]
    assert skipped == {"long.js": ("minified", "lines of 400,000 bytes")}


def test_binary_files_are_skipped(tree, home):
    (tree / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 10)
    assert scanned(home, tree) == ([], {"a.png": ("not text", "binary")})


@pytest.mark.parametrize(
    ("name", "format"),
    [("a.py", "python"), ("a.PYI", "python"), ("A.PY_", "text"), ("README.md", "markdown"), ("a.mdx", "markdown"),
     ("a.rst", "sections"), ("a.txt", "sections"), ("Makefile", "text"), (".py", "text"), ("a.ipynb", "text")],
)  # fmt: skip
def test_the_format_goes_by_the_suffix(tree, home, name, format):
    (tree / name).write_text("x\n")
    assert [row["format"] for row in home.scan(tree).files] == [format]


def test_rows_are_sorted_by_path(tree, home):
    write_tree(tree, dict.fromkeys(("b/z.py", "b.py", "a/y.py", "B.py", "b-c.py"), "x"))
    assert scanned(home, tree)[0] == ["B.py", "a/y.py", "b-c.py", "b.py", "b/z.py"]


CHANGES = {
    "edit": lambda tree: (tree / "a.py").write_text("x = 2\n"),
    "add": lambda tree: (tree / "new.py").write_text("x = 1\n"),
    "remove": lambda tree: (tree / "a.py").unlink(),
    "rename": lambda tree: (tree / "a.py").rename(tree / "z.py"),
    "ignore": lambda tree: (tree / ".gitignore").write_text("a.py\n"),
    "binary": lambda tree: (tree / "new.png").write_bytes(b"\0" * 100),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_every_change_changes_the_fingerprint(tree, home, change):
    write_tree(tree, {"a.py": "x = 1\n", "b.py": "y = 1\n"})
    before = home.build(tree)
    assert is_scanned(home.layout, home.scan(tree), home.settings)
    change(tree)
    after = home.scan(tree)
    assert after.fingerprint != before.fingerprint
    assert not is_scanned(home.layout, after, home.settings)


def test_touching_a_file_changes_nothing(tree, home):
    write_tree(tree, {"a.py": "x = 1\n"})
    before = home.scan(tree).fingerprint
    os.utime(tree / "a.py", (1, 1))
    (tree / "a.py").chmod(0o755)
    assert home.scan(tree).fingerprint == before


def test_another_partition_target_is_another_plan(tree, new_home):
    write_tree(tree, {"a/x.py": "x = 1\n", "b/y.py": "y = 1\n"})
    home = new_home()
    home.build(tree)
    assert list(load_plan(home.layout)) == ["."]
    home.settings = home.settings.model_copy(update={"partition_chunks": 0})
    assert not is_scanned(home.layout, home.scan(tree), home.settings)
    home.build(tree)
    assert list(load_plan(home.layout)) == ["a", "b"]


def test_a_plan_without_a_scan_is_missing_with_the_command_to_build_it(home):
    with pytest.raises(CgragError, match="missing") as missing:
        load_plan(home.layout)
    assert "cgrag run" in missing.value.remedy


def test_a_scan_that_dies_between_its_files_leaves_a_readable_plan(tree, home, monkeypatch):
    from pipelines.corpus import scan

    write_tree(tree, {"a.py": "x = 1\n", "b.py": "y = 1\n"})
    home.build(tree)
    (tree / "c.py").write_text("z = 1\n")
    (tree / "a.py").unlink()
    found = home.scan(tree)
    for survivors in range(2):
        dying = dies_after(scan.write_table, survivors)
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            patch.setattr(scan, "write_table", dying)
            store_scan(found, home.settings)
        assert not is_scanned(home.layout, found, home.settings)
        load_plan(home.layout)
    home.build(tree)
    assert [row["path"] for row in home.rows("documents")] == ["b.py", "c.py"]


def dies_after(function, calls):
    """Return `function`, interrupted at the first call after so many."""
    left = [None] * calls

    def dying(*arguments):
        if not left:
            raise KeyboardInterrupt
        left.pop()
        return function(*arguments)

    return dying


def test_nothing_is_recorded_of_a_corpus_that_cannot_be_had(tmp_path, home):
    with pytest.raises(CgragError, match="does not exist"):
        home.scan(tmp_path / "nowhere")
    (tmp_path / "file").write_text("x")
    with pytest.raises(CgragError, match="not a folder"):
        home.scan(tmp_path / "file")
    assert not Layout(home.settings.home).corpus_record.exists()


def test_only_regular_files_are_read(tree):
    (tree / "folder").mkdir()
    (tree / "link").symlink_to("/etc/hostname")
    os.mkfifo(tree / "pipe")
    for name, reason in (
        ("folder", "not a regular file"),
        ("link", "not a regular file"),
        ("pipe", "not a regular file"),
        ("gone", "vanished"),
        ("folder/gone/x", "vanished"),
    ):
        with pytest.raises(Unreadable) as refused:
            read_file(tree, name)
        assert refused.value.args[0] == reason


def test_reading_what_is_no_file_leaves_no_descriptor_open(tree):
    (tree / "folder").mkdir()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        with pytest.raises(Unreadable):
            read_file(tree, "folder")
    assert len(os.listdir("/proc/self/fd")) == before


def test_an_ignore_file_that_is_a_pipe_or_a_link_is_not_read(tree, home):
    """Git does not follow it either, and a pipe would be waited for."""
    write_tree(tree, {"sub/a.py": "x", "b.py": "x"})
    os.mkfifo(tree / ".gitignore")
    (tree.parent / "rules").write_text("*\n")
    (tree / "sub" / ".gitignore").symlink_to(tree.parent / "rules")
    assert scanned(home, tree)[0] == ["b.py", "sub/a.py"]
