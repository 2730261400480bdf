"""Git's ignore rules, nested, by pathspec."""

from pathlib import Path

from pathspec import GitIgnoreSpec


class IgnoreRules:
    """The .gitignore files from the corpus root down to one folder; a deeper file wins, as in git."""

    def __init__(self, rules: tuple[tuple[str, str, GitIgnoreSpec], ...] = ()) -> None:
        self._rules = rules  # (folder it applies below, file that holds it, its patterns), outermost first

    def below(self, folder: str, file: Path, shown: str) -> "IgnoreRules":
        """Return these rules and those of `file`, for paths below `folder` (corpus-relative, "" at the root)."""
        try:
            lines = file.read_bytes().decode("utf-8", "surrogateescape").removeprefix("\ufeff").splitlines()
        except OSError:
            return self
        return IgnoreRules((*self._rules, (folder, shown, GitIgnoreSpec.from_lines(lines))))

    def reason(self, path: str, *, is_folder: bool) -> str | None:
        """Return the rule file that leaves `path` out, or None where it stays in."""
        for folder, shown, spec in reversed(self._rules):
            relative = path[len(folder) + 1 :] if folder else path
            included = spec.check_file(relative + "/" if is_folder else relative).include
            if included is not None:
                return shown if included else None
        return None
