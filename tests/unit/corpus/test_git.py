"""Corpora from git, with real repositories."""

import shutil

import pytest

from pipelines.corpus.fetch import fetch
from pipelines.corpus.git import tracked_files
from pipelines.corpus.spec import parse_spec
from pipelines.errors import CgragError
from tests.support import git, write_tree


@pytest.fixture
def repository(tmp_path):
    """Two commits, a tag on the first, a branch beside main, a submodule, a link, a tracked file that is ignored."""
    inner = write_tree(tmp_path / "inner", {"sub.py": "sub = 1\n"})
    git(inner, "init", "-q")
    git(inner, "add", "-A")
    git(inner, "commit", "-qm", "inner")
    origin = write_tree(
        tmp_path / "origin",
        {
            "a.py": "a = 1\n",
            "dir with blank/é.md": "# É\r\n",
            ".gitattributes": "*.py text eol=crlf\nhidden.py export-ignore\n",
            "hidden.py": "hidden = 1\n",
            ".gitignore": "*.log\n",
            "kept.log": "kept\n",
        },
    )
    git(origin, "init", "-q")
    (origin / "link.py").symlink_to("a.py")
    git(origin, "add", "-A")
    git(origin, "add", "-f", "kept.log")
    git(origin, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(inner), "module")
    git(origin, "commit", "-qm", "one")
    git(origin, "tag", "-a", "v1", "-m", "v1")
    git(origin, "checkout", "-qb", "feature/x")
    write_tree(origin, {"b.py": "b = 1\n"})
    git(origin, "add", "-A")
    git(origin, "commit", "-qm", "feature")
    git(origin, "checkout", "-q", "main")
    write_tree(origin, {"a.py": "a = 2\n"})
    git(origin, "commit", "-qam", "two")
    return origin


def exported(home, repository, ref):
    source = fetch(parse_spec(f"git+{repository}@{ref}"), home.settings)
    found = {path.relative_to(source.root).as_posix(): path.read_bytes() for path in source.root.rglob("*.*")}
    return found, source.note


FIRST = {
    "a.py": b"a = 1\n",
    "dir with blank/é.md": "# É\r\n".encode(),
    ".gitattributes": b"*.py text eol=crlf\nhidden.py export-ignore\n",
    "hidden.py": b"hidden = 1\n",
    ".gitignore": b"*.log\n",
    "kept.log": b"kept\n",
}


def test_a_tag_gives_exactly_the_files_that_git_stores(home, repository):
    found, note = exported(home, repository, "v1")
    assert {path: data for path, data in found.items() if path != ".gitmodules"} == FIRST
    assert note == ""


def test_links_and_submodules_become_no_file(home, repository):
    found, _ = exported(home, repository, "v1")
    assert "link.py" not in found
    assert not any(path.startswith("module") for path in found)


def test_branches_commits_and_head_are_refs(home, repository):
    assert exported(home, repository, "main")[0]["a.py"] == b"a = 2\n"
    assert exported(home, repository, "HEAD")[0]["a.py"] == b"a = 2\n"
    assert exported(home, repository, "feature/x")[0]["b.py"] == b"b = 1\n"
    first = git(repository, "rev-parse", "v1^{commit}").strip()
    assert exported(home, repository, first)[0]["a.py"] == b"a = 1\n"
    assert exported(home, repository, first[:10])[0]["a.py"] == b"a = 1\n"


def test_an_export_is_indexed_as_git_tracks_it(home, repository):
    home.build(f"git+{repository}@v1")
    paths = [row["path"] for row in home.rows("files")]
    assert "kept.log" in paths
    assert "hidden.py" in paths


def test_a_ref_that_moves_is_fetched_again(home, repository):
    assert exported(home, repository, "main")[0]["a.py"] == b"a = 2\n"
    write_tree(repository, {"a.py": "a = 3\n"})
    git(repository, "commit", "-qam", "three")
    assert exported(home, repository, "main")[0]["a.py"] == b"a = 3\n"


def test_without_its_origin_the_last_fetched_state_is_used_and_said_to_be(home, repository):
    exported(home, repository, "main")
    shutil.rmtree(repository)
    found, note = exported(home, repository, "main")
    assert found["a.py"] == b"a = 2\n"
    assert "was not reached" in note
    assert "last fetched state" in note


def test_a_cached_commit_needs_no_origin_and_no_note(home, repository):
    first = git(repository, "rev-parse", "v1^{commit}").strip()
    exported(home, repository, first)
    shutil.rmtree(repository)
    assert exported(home, repository, first)[1] == ""


@pytest.mark.parametrize("ref", ["nowhere", "v1^{tree}", "a" * 40, "main:a.py"])
def test_a_ref_that_names_no_commit_is_refused(home, repository, ref):
    with pytest.raises(CgragError, match="has no ref") as refused:
        exported(home, repository, ref)
    assert "git ls-remote" in refused.value.remedy


def test_a_repository_that_is_not_there_is_refused_and_nothing_is_kept(home, tmp_path):
    with pytest.raises(CgragError, match="cannot be cloned"):
        exported(home, tmp_path / "nowhere", "main")
    assert list(home.layout.sources.iterdir()) == []


def test_a_damaged_half_of_a_clone_is_not_taken_for_one(home, repository, monkeypatch):
    from pipelines.corpus import git as module

    def fail(*arguments, **keywords):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(module, "_blobs", fail)
        exported(home, repository, "v1")
    assert exported(home, repository, "v1")[0]["a.py"] == b"a = 1\n"


def test_hooks_and_filters_of_a_repository_are_not_run(home, repository, tmp_path):
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    exported(home, repository, "main")
    assert not (tmp_path / "ran").exists()


def test_tracked_files_are_those_of_the_checkout_itself(repository, tmp_path):
    assert {"a.py", "kept.log", "link.py", "dir with blank/é.md", "module"} <= tracked_files(repository)
    assert tracked_files(repository / "dir with blank") == frozenset()
    assert tracked_files(tmp_path) == frozenset()


def test_a_folder_with_a_damaged_git_folder_is_walked_by_its_ignore_files(home, tree):
    write_tree(tree, {".git/HEAD": "nonsense", "a.py": "x = 1\n", ".gitignore": "b.py\n", "b.py": "x = 1\n"})
    home.build(tree)
    assert [row["path"] for row in home.rows("files")] == [".gitignore", "a.py"]


def test_a_repository_that_the_environment_names_is_left_alone(home, repository, tmp_path, monkeypatch):
    """As in a hook, or where dotfiles are kept by a bare repository."""
    other = write_tree(tmp_path / "other", {"mine.py": "mine = 1\n"})
    git(other, "init", "-q")
    git(other, "add", "-A")
    git(other, "commit", "-qm", "mine")
    git(other, "branch", "local-only")
    before = git(other, "for-each-ref")
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    for _ in range(2):  # cloned, then fetched
        source = fetch(parse_spec(f"git+{repository}@main"), home.settings)
        assert (source.root / "a.py").read_text() == "a = 2\n" and not (source.root / "mine.py").exists()
    assert "kept.log" in tracked_files(repository) and "mine.py" not in tracked_files(repository)
    monkeypatch.delenv("GIT_DIR")
    monkeypatch.delenv("GIT_WORK_TREE")
    assert git(other, "for-each-ref") == before


def test_a_folder_that_brings_a_program_for_git_runs_none(repository, tmp_path):
    marker, script = tmp_path / "ran", repository / ".git" / "monitor.sh"
    script.write_text(f"#!/bin/sh\ntouch {marker}\n")
    script.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(script))
    git(repository, "-c", "core.fsmonitor=true", "update-index", "--fsmonitor")
    marker.unlink(missing_ok=True)
    assert "a.py" in tracked_files(repository)
    assert not marker.exists()
