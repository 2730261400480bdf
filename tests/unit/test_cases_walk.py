"""The nasty cases of walking a folder (tests/cases: w01, w02, w04)."""

import errno
import json
import os
import socket
import subprocess
import sys

import pytest

from pipelines.settings import PROJECT
from tests.support import case, git

# w01: links


@pytest.fixture(params=["folder", "checkout"])
def linked(request, tmp_path, home):
    """The case as a folder and as a git checkout: where it lies, and the home that it was built in."""
    root = case("w01").set_up(tmp_path / "T")
    if request.param == "checkout":
        git(root, "init", "-q")
        git(root, "add", "-A")
    home.build(root)
    return root, home


def test_w01_each_real_file_is_indexed_once_under_its_own_path(linked):
    _, home = linked
    assert [row["path"] for row in home.rows("files")] == ["docs/c.md", "src/a.py", "src/sub/b.py"]
    assert home.paths("ceelinx") == ["docs/c.md"]


def test_w01_an_alias_makes_no_second_function(linked):
    _, home = linked
    assert sorted(row["name"] for row in home.rows("outline") if row["kind"] == "function") == ["a", "b"]


def test_w01_nothing_outside_is_read(linked):
    _, home = linked
    assert home.paths("outsidexyz") == []
    assert not any(row["path"].startswith(("out_link/", "root_link/")) for row in home.rows("skipped"))
    assert home.skipped()["out_link"] == ("symbolic link", "leaves the corpus")
    assert home.skipped()["root_link"] == ("symbolic link", "leaves the corpus")


def test_w01_links_that_lead_nowhere_are_named(linked):
    _, home = linked
    details = {path: detail for path, (reason, detail) in home.skipped().items() if reason == "symbolic link"}
    assert {path: details.pop(path) for path in ("src/dangling.py", "loop_self", "ping", "pong")} == {
        "src/dangling.py": "broken",
        "loop_self": "a loop",
        "ping": "a loop",
        "pong": "a loop",
    }
    assert details.keys() == {
        "out_link", "root_link", "src/alias.py", "src/docs_link", "src/loop_dot", "src/sub/loop_up",
    }  # fmt: skip


def test_w01_the_command_ends_well(tmp_path, cli):
    root = case("w01").set_up(tmp_path / "T")
    assert cli("run", "--corpus", str(root)).code == 0
    assert cli("search", "outsidexyz", "--json").hits == []


def test_w01_the_graph_has_one_function_a_and_one_function_b(linked):
    _, home = linked
    functions = [name for name, row in home.entities().items() if row["type"] == "Function"]
    assert functions == ["src/a.py::a", "src/sub/b.py::b"]
    assert not any(name.startswith(("out_link", "root_link", "src/alias.py")) for name in home.entities())


# w02: ignore rules


def walked(home):
    return [row["path"] for row in home.rows("files")]


def test_w02_a_folder_is_walked_as_git_would_list_it(tmp_path, home):
    home.build(case("w02").set_up(tmp_path / "T"))
    assert walked(home) == case("w02").expected["kept"]


def test_w02_a_checkout_is_walked_as_git_lists_it(tmp_path, home):
    root = case("w02").set_up(tmp_path / "T", "git")
    home.build(root)
    listed = git(root, "ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0")
    assert walked(home) == sorted(path for path in listed if path)
    assert walked(home) == sorted([*case("w02").expected["kept"], "forced.log"])


@pytest.mark.parametrize("path", ["src/reports/y.py", "web/src/extern/e.py", "a/third/f.py"])
def test_w02_what_no_rule_means_is_kept(tmp_path, home, path):
    home.build(case("w02").set_up(tmp_path / "T"))
    assert path in walked(home)


@pytest.mark.parametrize(
    ("path", "skipped"),
    [
        ("reports/x.py", "reports/"),
        ("web/extern/d.py", "web/extern/"),
        ("b/third/g.py", "b/third/"),
        ("addons/theirs/n.py", "addons/theirs/"),
        ("web/.cacheout/bundle.js", "web/.cacheout/"),
        ("tools/build/q.py", "tools/build/"),
        ("err.log", "err.log"),
        ("sp ace.md", "sp ace.md"),
        ("trail.md", "trail.md"),
        ("#hash.md", "#hash.md"),
        ("doc/one/two/a.tmp.md", "doc/one/two/a.tmp.md"),
    ],
)
def test_w02_what_is_ignored_is_named_with_its_rule_file(tmp_path, home, path, skipped):
    home.build(case("w02").set_up(tmp_path / "T"))
    assert path not in walked(home)
    reason, detail = home.skipped()[skipped]
    assert reason == "ignored"
    assert detail == ("web/.gitignore" if path.startswith("web/") else ".gitignore")


def test_w02_the_report_lists_what_was_ignored(tmp_path, cli):
    root = case("w02").set_up(tmp_path / "T")
    cli("run", "--corpus", str(root))
    listed = {row["path"]: row["reason"] for row in cli("status", "--skipped", "--json").json["skipped_list"]}
    assert listed["reports/"] == listed["web/extern/"] == listed["err.log"] == "ignored"
    assert "web/extern/ " in cli("status", "--skipped").out


# w04: files that vanish, change their kind, or cannot be read


@pytest.fixture
def vanishing(tmp_path):
    """The case; links, pipes and modes are made by its setup.py, m2.md, m4.md and m5.md still are files."""
    return case("w04").set_up(tmp_path / "T")


@pytest.fixture
def unreadable(monkeypatch):
    """noread.md cannot be opened, not even by root, whom the kernel lets read mode 0."""
    if os.geteuid() != 0:
        return
    really_open = os.open

    def refuse(path, *arguments, **keywords):
        if os.fspath(path).endswith("noread.md"):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)
        return really_open(path, *arguments, **keywords)

    monkeypatch.setattr(os, "open", refuse)


def lose(root):
    """m2.md and m4.md go, m5.md becomes a folder."""
    for name in ("m2.md", "m4.md", "m5.md"):
        (root / name).unlink()
    (root / "m5.md").mkdir()


def test_w04_files_lost_between_listing_and_reading_stop_nothing(vanishing, unreadable, home, monkeypatch):
    from pipelines.corpus import scan

    walk = scan.walk

    def listed_first(*arguments, **keywords):
        found = list(walk(*arguments, **keywords))
        lose(vanishing)
        return found

    monkeypatch.setattr(scan, "walk", listed_first)
    home.build(vanishing)
    assert walked(home) == ["looks_like.py/real.md", "m0.md", "m1.md", "m3.md"]
    reasons = {path: reason for path, (reason, _) in home.skipped().items()}
    assert reasons == {
        "m2.md": "vanished",
        "m4.md": "vanished",
        "m5.md": "not a regular file",
        "noread.md": "unreadable",
        "pipe.md": "not a regular file",
        "sock.md": "not a regular file",
    }
    assert home.problems() == {}


def test_w04_files_lost_between_the_walk_and_the_chunking_have_no_chunks(vanishing, unreadable, home):
    found = home.scan(vanishing)
    lose(vanishing)
    home.build_scan(found, vanishing)
    assert {path: why.split(":")[0] for path, why in home.problems().items()} == {
        "m2.md": "vanished",
        "m4.md": "vanished",
        "m5.md": "not a regular file",
    }
    assert {row["path"] for row in home.rows("chunks")} == {"looks_like.py/real.md", "m0.md", "m1.md", "m3.md"}
    assert not {"m2.md", "m4.md", "m5.md"} & set(home.paths("item2 item4 item5", 10))


def test_w04_files_lost_after_they_were_indexed_are_deleted(vanishing, unreadable, home, new_home):
    home.build(vanishing)
    assert home.paths("item2")[0] == "m2.md"
    lose(vanishing)
    home.build(vanishing)
    assert not {"m2.md", "m4.md", "m5.md"} & set(home.paths("item2 item4 item5", 10))
    assert not {"m2.md", "m4.md", "m5.md"} & {row["path"] for row in home.rows("documents")}


def test_w04_files_that_come_back_are_indexed_again(vanishing, unreadable, home, new_home):
    whole = {name: (vanishing / name).read_bytes() for name in ("m2.md", "m4.md")}
    found = home.scan(vanishing)
    lose(vanishing)
    home.build_scan(found, vanishing)
    for name, data in whole.items():
        (vanishing / name).write_bytes(data)
    home.build(vanishing)
    assert home.paths("item2")[0] == "m2.md"
    assert home.paths("item4")[0] == "m4.md"
    clean = new_home()
    clean.build(vanishing)
    assert home.hashes() == clean.hashes()


def test_w04_the_command_reports_and_ends_well(vanishing, unreadable, cli):
    lose(vanishing)
    assert cli("run", "--corpus", str(vanishing)).code == 0
    listed = {row["path"]: row for row in cli("status", "--skipped", "--json").json["skipped_list"]}
    assert listed["noread.md"]["reason"] == "unreadable"
    assert listed["pipe.md"]["detail"] == "a pipe"
    assert listed["sock.md"]["detail"] == "a socket"


WITHOUT_CAPABILITIES = """
import ctypes, json, sys
from pathlib import Path
from pipelines.corpus.fetch import Source
from pipelines.corpus.scan import scan
from pipelines.settings import Settings

if sys.platform == "linux":  # root without capabilities may read no more than the mode of a file says
    header, none = (ctypes.c_uint32 * 2)(0x20080522, 0), (ctypes.c_uint32 * 6)()
    assert ctypes.CDLL(None).capset(header, none) == 0
print(json.dumps(scan(Source(Path(sys.argv[1]), "T"), Settings(home=Path(sys.argv[1]) / "none")).skipped))
"""


def test_w04_a_file_of_mode_zero_is_reported_to_whoever_may_not_read_it(vanishing):
    """The real thing: the kernel refuses, in a process without root's capabilities."""
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_CAPABILITIES, vanishing], check=True, capture_output=True, cwd=PROJECT
    )
    skipped = {row["path"]: (row["reason"], row["detail"]) for row in json.loads(done.stdout)}
    assert skipped["noread.md"] == ("unreadable", "Permission denied")


def test_a_socket_at_the_end_of_a_walk_is_left_alone(tree, home):
    """An unlistened socket would fail on open with ENXIO: the walk must not get that far."""
    holder = socket.socket(socket.AF_UNIX)
    os.chdir(tree)
    holder.bind("live.py")
    with holder:
        home.build(tree)
    assert home.skipped() == {"live.py": ("not a regular file", "a socket")}
