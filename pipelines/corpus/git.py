"""Git: what a checkout tracks, and the exact files of one commit."""

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from pipelines.corpus.spec import CorpusSpec
from pipelines.errors import CgragError
from pipelines.layout import file_name
from pipelines.progress import Progress, silent

_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_LONGEST_SECONDS = 600.0
_COMMAND = ("git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
"""Runs nothing that a repository names: an unpacked folder may bring a .git of its own."""
_OTHERS = frozenset(
    (
        *("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"),
        *("GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_NAMESPACE", "GIT_PREFIX", "GIT_SHALLOW_FILE", "GIT_GRAFT_FILE"),
        *("GIT_IMPLICIT_WORK_TREE", "GIT_REPLACE_REF_BASE"),
    )
)
"""Where these are set, as in a hook, git works on their repository, whatever folder it is told."""


def _environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if name not in _OTHERS}
    return own | {"GIT_TERMINAL_PROMPT": "0", "LC_ALL": "C"}


def _git(*arguments: str, folder: Path | None = None, stdin: bytes = b"") -> bytes:
    """Return git's output; never asks for a password, never runs what the repository names."""
    command = [*_COMMAND, *(["-C", str(folder)] if folder else []), *arguments]
    try:
        return subprocess.run(
            command, check=True, capture_output=True, input=stdin, env=_environment(), timeout=_LONGEST_SECONDS
        ).stdout
    except FileNotFoundError as error:
        raise CgragError("git is not installed.", "Install git, or give a folder.") from error


def tracked_files(root: Path) -> frozenset[str]:
    """Return the paths that git tracks in a checkout whose top is `root`; empty for any other folder."""
    if not (root / ".git").exists():
        return frozenset()
    try:
        listing = _git("-c", "safe.directory=*", "ls-files", "-z", "--cached", folder=root)
    except (subprocess.CalledProcessError, CgragError):
        return frozenset()  # not a repository after all: the ignore files alone decide
    return frozenset(os.fsdecode(name) for name in listing.split(b"\0") if name)


def export_commit(spec: CorpusSpec, sources: Path, progress: Progress = silent) -> tuple[Path, str]:
    """Return a folder with the files of the commit that `spec.version` names, and a note when it may be an old one.

    The blobs are written as git stores them: no line-end conversion, no export-ignore. Symlinks and submodules become
    no file. Clone and export are cached; without network the last fetched state of the ref is used. Progress counts
    git's objects.

    Raises:
        CgragError: the repository cannot be cloned, or it has no such ref.
    """
    from pipelines.corpus.fetch import staging

    clone = sources / file_name(f"git+{spec.location}")
    note = ""
    if not clone.exists():
        with staging(clone) as folder:
            _clone(spec.location, folder / "repository", progress)
    elif not _COMMIT.fullmatch(spec.version) or _commit(clone, spec.version) is None:
        try:
            _git("fetch", "--quiet", "--prune", "--force", "--tags", "origin", "+refs/heads/*:refs/heads/*",
                 folder=clone / "repository")  # fmt: skip
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
            said = (error.stderr or b"fatal: no answer in time").decode(errors="replace").splitlines()
            note = f"{spec.location} was not reached ({_reason(said)}); its last fetched state is used."
    commit = _commit(clone, spec.version)
    if commit is None:
        raise CgragError(
            f"{spec.location} has no ref {spec.version!r}.", f"See what it has:  git ls-remote {spec.location}"
        )
    tree = sources / file_name(f"git+{spec.location}@{commit}")
    if not tree.exists():
        with staging(tree) as folder:
            for path, content in _blobs(clone / "repository", commit):
                target = folder / path
                target.parent.mkdir(parents=True, exist_ok=True)
                target.write_bytes(content)
    return tree, note


def _clone(location: str, target: Path, progress: Progress) -> None:
    command = [*_COMMAND, "clone", "--progress", "--bare", "--", location, str(target)]
    said: list[str] = []
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_environment(), text=True, errors="replace"
    ) as process:
        assert process.stderr
        for line in process.stderr:  # universal newlines: git ends its counts with a CR
            said.append(line)
            counted = re.search(r"Receiving objects: .*\((\d+)/(\d+)\)", line)
            if counted:
                progress(int(counted[1]), int(counted[2]))
    if process.returncode:
        raise CgragError(f"{location} cannot be cloned: {_reason(said)}", "Check the URL: git ls-remote URL")


def _commit(clone: Path, ref: str) -> str | None:
    for name in (ref, f"refs/heads/{ref}", f"refs/tags/{ref}"):
        try:
            return _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}",
                        folder=clone / "repository").decode().strip()  # fmt: skip
        except subprocess.CalledProcessError:
            continue
    return None


def _blobs(repository: Path, commit: str) -> Iterator[tuple[str, bytes]]:
    """Yield (path, bytes) of every regular file of a commit."""
    entries = []
    for line in _git("ls-tree", "-r", "-z", "--full-tree", commit, folder=repository).split(b"\0"):
        if line:
            meta, name = line.split(b"\t", 1)
            mode, _, blob = meta.split()
            path = PurePosixPath(os.fsdecode(name))
            if mode in (b"100644", b"100755") and not path.is_absolute() and ".." not in path.parts:
                entries.append((str(path), blob))
    for begin in range(0, len(entries), 1000):  # as many at once as git holds in its pipe and we in memory
        some = entries[begin : begin + 1000]
        names = b"".join(blob + b"\n" for _, blob in some)
        output = _git("cat-file", "--batch", folder=repository, stdin=names)
        position = 0
        for target, _ in some:
            header_end = output.index(b"\n", position)
            size = int(output[position:header_end].split()[2])
            yield target, output[header_end + 1 : header_end + 1 + size]
            position = header_end + 1 + size + 1


def _reason(said: list[str]) -> str:
    """What git gave as the reason of a failure: the first fatal line of its standard error."""
    return next((line.strip() for line in said if line.startswith("fatal:")), said[-1].strip() if said else "no reason")
