"""Which file an import means: module roots anywhere in the tree, packages, relative imports, star and lazy exports."""

from collections.abc import Iterable, Iterator
from posixpath import dirname
from typing import Any

from pipelines.code.facts import Facts
from pipelines.code.scopes import Row


class Module:
    """A file of facts, with what has been worked out about its rows so far."""

    __slots__ = ("facts", "folder", "is_package", "path", "results", "rows", "symbols", "values")

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.path = facts.path
        self.folder = dirname(facts.path)
        self.is_package = facts.path.rpartition("/")[2] in ("__init__.py", "__init__.pyi")
        self.rows: list[Row] = [*facts.expressions, *(["results", number] for number in facts.functions)]
        self.results = {number: len(facts.expressions) + at for at, number in enumerate(facts.functions)}
        """Rows, added here, of what functions return."""
        self.values: list[Any] = [None] * len(self.rows)
        """The values of each row once evaluated."""
        self.symbols: dict[int, Any] = {}
        """Class and Function objects by symbol number."""


class Namespace:
    """A folder with modules somewhere below it, but no `__init__.py` of its own."""

    __slots__ = ("folder",)

    def __init__(self, folder: str) -> None:
        self.folder = folder


Found = Module | Namespace
Binding = tuple[Module, int]
"""A row of a module: what a name is bound to."""


class Modules:
    """All modules of a corpus, and how names lead from one to another.

    An absolute import is looked for beside the file, then in each folder above it, then in any other folder that could
    be on the path (a `src` folder, say), as long as that is only one. Folders of packages are no roots.
    """

    def __init__(self, files: Iterable[Facts]) -> None:
        self.all = [Module(facts) for facts in sorted(files, key=lambda facts: facts.path)]
        self.by_path = {module.path: module for module in self.all}
        self._by_stem: dict[str, Module] = {}
        self._packages: set[str] = set()
        self._folders: dict[str, Namespace] = {}
        self._roots: dict[str, list[str]] = {}
        self._located: dict[tuple[str, str], Found | None] = {}
        self._bindings: dict[tuple[Module, str], Binding | Found | None] = {}
        for module in sorted(self.all, key=lambda module: (module.is_package, not module.path.endswith(".pyi"))):
            stem = module.folder if module.is_package else module.path.rpartition(".")[0]
            self._by_stem[stem] = module  # of the same name a package wins, and a stub loses, as in CPython
            if module.is_package:
                self._packages.add(module.folder)
            folder = module.folder
            while folder and folder not in self._folders:
                self._folders[folder] = Namespace(folder)
                folder = dirname(folder)
        for place in sorted({*self._by_stem, *self._folders}):
            self._roots.setdefault(place.rpartition("/")[2], []).append(dirname(place))

    # -- imports

    def locate(self, folder: str, name: str, level: int) -> Found | None:
        """Return what `from …name` (`level` dots) means in a file of `folder`, None if it is not in the corpus."""
        if level:
            for _ in range(level - 1):
                if not folder:
                    return None
                folder = dirname(folder)
            return self._at(folder, name)
        key = (folder, name)
        if key not in self._located:
            self._located[key] = self._absolute(folder, name)
        return self._located[key]

    def _absolute(self, folder: str, name: str) -> Found | None:
        above = list(upwards(folder))
        for root in above:
            if root not in self._packages and (found := self._at(root, name)):
                return found
        others = [root for root in self._roots.get(name.partition(".")[0], ()) if root not in above]
        matches = [self._at(root, name) for root in others if root not in self._packages]
        modules = [found for found in matches if isinstance(found, Module)]
        return modules[0] if len(modules) == 1 else None

    def _at(self, root: str, name: str) -> Found | None:
        place = "/".join(part for part in (root, name.replace(".", "/")) if part)
        return self._by_stem.get(place) or self._folders.get(place)

    def knows(self, folder: str, name: str) -> bool:
        """Whether a dotted name begins with a module of the corpus (a mere folder may just share a library's name)."""
        return isinstance(self.locate(folder, name.partition(".")[0], 0), Module)

    def star_outside(self, module: Module) -> str:
        """The name of a module from outside that a file imports with *, or ""."""
        for star in module.facts.stars:
            _, name, level = module.rows[star]
            if not level and self.locate(module.folder, name, level) is None:
                return str(name)
        return ""

    def below(self, found: Found, name: str) -> Found | None:
        """Return the submodule of a package or folder."""
        if isinstance(found, Module) and not found.is_package:
            return None
        return self._at(found.folder, name)

    # -- names

    def binding(self, module: Module, name: str) -> Binding | Found | None:
        """Return what `name` is in a module: its own, a star import's, a lazy export's, or a submodule."""
        number = module.facts.names.get(name)
        if number is not None:
            return module, number
        key = (module, name)
        if key not in self._bindings:
            self._bindings[key] = None  # while it is looked for: star imports may go in circles
            self._bindings[key] = self._elsewhere(module, name) or self.below(module, name)
        return self._bindings[key]

    def _elsewhere(self, module: Module, name: str) -> Binding | Found | None:
        for star in reversed(module.facts.stars):
            _, dotted, level = module.rows[star]
            source = self.locate(module.folder, dotted, level)
            if isinstance(source, Module) and source is not module and _exports(source, name):
                found = self.binding(source, name)
                if isinstance(found, tuple):
                    return found
        for target, attribute in module.facts.lazy.get(name, ()):
            dotted = target.lstrip(".")
            source = self.locate(module.folder, dotted, len(target) - len(dotted))
            if isinstance(source, Module) and source is not module and (found := self.binding(source, attribute)):
                return found
        return None


def _exports(module: Module, name: str) -> bool:
    exported = module.facts.exported
    return not name.startswith("_") if exported is None else name in exported


def upwards(folder: str) -> Iterator[str]:
    """A folder and all above it, the root "" last."""
    while folder:
        yield folder
        folder = dirname(folder)
    yield ""
