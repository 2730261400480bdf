"""One walk decides what belongs to a corpus: every entry below its root is kept, or skipped with a reason."""

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pipelines.corpus.fetch import Source
from pipelines.corpus.ignore import IgnoreRules

_VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})
_GENERATED = frozenset(
    {"__pycache__", "node_modules", ".venv", ".tox", ".nox", ".eggs", ".mypy_cache", ".ruff_cache", ".pytest_cache"}
)


@dataclass(frozen=True)
class Found:
    """A regular file, not read yet."""

    path: str
    """Corpus-relative, POSIX."""


@dataclass(frozen=True)
class Skip:
    """What is left out; a skipped folder ends in "/" and stands for all below it."""

    path: str
    reason: str
    detail: str = ""


def walk(source: Source, exclude: Path | None = None) -> Iterator[Found | Skip]:
    """Yield every entry below `source.root`, sorted within each folder; `exclude` is our own home, if it lies inside.

    Links are never followed: what they name inside the corpus is reached under its own path, what they name outside is
    not ours to read. Folders of other tools (.git, node_modules, virtual environments) are left out unless git tracks
    a file in them.
    """
    tracked_folders = {parent for path in source.tracked for parent in _parents(path)}
    rules = IgnoreRules()
    if source.ignore_rules:
        rules = rules.below("", source.root / ".git" / "info" / "exclude", ".git/info/exclude")
    yield from _walk_folder(source, "", rules, tracked_folders, exclude.resolve() if exclude else None)


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _walk_folder(
    source: Source, folder: str, rules: IgnoreRules, tracked_folders: set[str], exclude: Path | None
) -> Iterator[Found | Skip]:
    pending = [(folder, rules, False)]
    while pending:
        folder, rules, ignored = pending.pop()
        try:
            with os.scandir(source.root / folder) as listing:
                entries = sorted(listing, key=lambda entry: entry.name)
        except OSError as error:
            yield Skip(f"{folder}/", "unreadable", error.strerror or "")
            continue
        if source.ignore_rules and any(e.name == ".gitignore" and e.is_file(follow_symlinks=False) for e in entries):
            shown = f"{folder}/.gitignore".lstrip("/")
            rules = rules.below(folder, source.root / shown, shown)
        inner = []
        for entry in entries:
            path = f"{folder}/{entry.name}" if folder else entry.name
            try:
                path.encode()
            except UnicodeEncodeError:
                yield Skip(
                    path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"), "name not UTF-8"
                )
                continue
            is_folder = entry.is_dir(follow_symlinks=False)
            skip = _skip_special(source, entry, path, is_folder, exclude)
            if skip is None and is_folder:
                rule = "above" if ignored else rules.reason(path, is_folder=True) if source.ignore_rules else None
                skip = Skip(f"{path}/", "ignored", rule) if rule else _skip_generated(entry, path)
                if skip is None or path in tracked_folders:
                    inner.append((path, rules, skip is not None))
                    continue
            elif skip is None and path not in source.tracked:
                rule = "above" if ignored else rules.reason(path, is_folder=False) if source.ignore_rules else None
                skip = Skip(path, "ignored", rule) if rule else _skip_metadata(path)
            yield skip or Found(path)
        pending.extend(reversed(inner))


def _skip_special(
    source: Source, entry: os.DirEntry[str], path: str, is_folder: bool, exclude: Path | None
) -> Skip | None:
    if entry.is_symlink():
        return Skip(path, "symbolic link", _link_detail(source.root, Path(entry.path)))
    if is_folder:
        if exclude and entry.name == exclude.name and Path(entry.path).resolve() == exclude:
            return Skip(f"{path}/", "home of cgrag")
        return Skip(f"{path}/", "version control") if entry.name in _VERSION_CONTROL else None
    if entry.name in _VERSION_CONTROL:  # a worktree's or submodule's .git file
        return Skip(path, "version control")
    return None if entry.is_file(follow_symlinks=False) else Skip(path, "not a regular file", _kind(entry))


def _skip_generated(entry: os.DirEntry[str], path: str) -> Skip | None:
    if entry.name in _GENERATED or os.path.lexists(os.path.join(entry.path, "pyvenv.cfg")):
        return Skip(f"{path}/", "generated", "made by a tool")
    return Skip(f"{path}/", "generated", "package metadata") if entry.name.endswith(".egg-info") else None


def _skip_metadata(path: str) -> Skip | None:
    return Skip(path, "generated", "package metadata") if path == "PKG-INFO" else None


def _link_detail(root: Path, link: Path) -> str:
    try:
        target = link.resolve(strict=True)
    except (OSError, RuntimeError) as error:
        return "broken" if isinstance(error, FileNotFoundError) else "a loop"
    top = root.resolve()
    return f"to {target.relative_to(top).as_posix()}" if target.is_relative_to(top) else "leaves the corpus"


def _kind(entry: os.DirEntry[str]) -> str:
    try:
        mode = entry.stat(follow_symlinks=False).st_mode
    except OSError:
        return "gone"
    return "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
