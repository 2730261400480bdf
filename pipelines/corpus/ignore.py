"""Git's ignore rules, nested, by pathspec.

Compared with git 2.39 on thousands of random trees; it differs in rarities: `[[:alpha:]]`, an escaped bracket inside
brackets, `dir/**/`, and `?` for a letter beyond ASCII (one character here, a byte in git).
"""

import re
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from pathspec.patterns.gitignore.base import GitIgnorePatternError
from pathspec.patterns.gitignore.spec import GitIgnoreSpecPattern

_MARK = "ps_d"
"""The group of pathspec's expressions that matches the slash after a matched folder."""


class Rule(NamedTuple):
    """One line of an ignore file."""

    regex: re.Pattern[str]
    leaves_out: bool


class IgnoreRules:
    """The .gitignore files from the corpus root down to one folder; a deeper file wins, as in git."""

    def __init__(self, rules: tuple[tuple[str, str, list[Rule]], ...] = ()) -> None:
        self._rules = rules  # (folder it applies below, file that holds it, its patterns), outermost first

    def below(self, folder: str, file: Path, shown: str) -> "IgnoreRules":
        """Return these rules and those of `file`, for paths below `folder` (corpus-relative, "" at the root)."""
        if not file.is_file():
            return self
        try:
            lines = file.read_bytes().decode("utf-8", "surrogateescape").removeprefix("\ufeff").split("\n")
        except OSError:
            return self
        return IgnoreRules((*self._rules, (folder, shown, list(_patterns(lines)))))

    def reason(self, path: str, *, is_folder: bool) -> str | None:
        """Return the rule file that leaves `path` out, or None where it stays in."""
        for folder, shown, patterns in reversed(self._rules):
            relative = path[len(folder) + 1 :] if folder else path
            for pattern in reversed(patterns):
                if _speaks_of(pattern.regex, relative, is_folder):
                    return shown if pattern.leaves_out else None
        return None


def _patterns(lines: Iterable[str]) -> Iterator[Rule]:
    for line in lines:
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)  # of brackets that regular expressions may yet nest
                pattern = GitIgnoreSpecPattern(line.removesuffix("\r"))
        except (GitIgnorePatternError, re.error):
            continue  # git passes over a line that it cannot read, such as a lone "!"
        if pattern.regex is not None and pattern.include is not None:
            yield Rule(pattern.regex, pattern.include)


def _speaks_of(regex: re.Pattern[str], path: str, is_folder: bool) -> bool:
    """Whether a pattern matches the path itself.

    pathspec lets a pattern match whatever lies below its match, too; git does not, or `!src/` would take src/build/ in
    again after `build/`. The walk asks of every folder on the way, so what lies below needs no match here.
    """
    has_mark = _MARK in regex.groupindex
    if is_folder and has_mark and any(m.end(_MARK) == len(path) + 1 for m in regex.finditer(f"{path}/")):
        return True
    found = regex.search(path)
    return found is not None and (not has_mark or found[_MARK] is None)
