"""What jedi knows of a corpus's code: the definitions that a call or a base names, and from these who calls whom.

It stands beside our own resolver and shares nothing with it but the parser, so that questions made from it can judge
it. A place where jedi knows nothing is told apart from one that leads out of the corpus: all callers are asked for only
where every place is known.
"""

import ast
import importlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.chunking.lines import Lines
from pipelines.chunking.python import Unparsable, collector_off, parse_source
from pipelines.errors import CgragError

_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_ENDS = ("function", "class", "property")


class Definition(NamedTuple):
    """A function, method or class; nested ones belong to the function around them and are none of their own."""

    path: str
    start: int
    end: int
    """Characters, decorators included; a class ends where its first method begins."""
    name: str
    """`Class.method`."""
    kind: str

    @property
    def last(self) -> str:
        return self.name.rpartition(".")[2]


class Place(NamedTuple):
    """Where a name is written that jedi can be asked about: line from 1, column in characters from 0."""

    path: str
    line: int
    column: int
    name: str


class Site(NamedTuple):
    """A call or a base, and the definition around it; None at the top of a module."""

    place: Place
    inside: Definition | None


class Code:
    """The definitions, calls and bases of Python files, by path; a file that CPython cannot parse has none."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self.texts: dict[str, str] = {}
        self.at: dict[tuple[str, int, str], Definition] = {}
        """By path, line of the name, and last name."""
        self.by_name: dict[str, list[Definition]] = defaultdict(list)
        self.members: dict[Definition, dict[str, Definition]] = defaultdict(dict)
        self.calls: dict[Definition, list[Place]] = defaultdict(list)
        self.bases: dict[Definition, list[Place]] = defaultdict(list)
        self.callers: dict[str, list[Site]] = defaultdict(list)
        """Calls by the last name that is called."""
        self.heirs: dict[str, list[Site]] = defaultdict(list)
        """Bases by the last name that is written."""
        with collector_off():
            for path, text in sorted(texts.items()):
                try:
                    tree = parse_source(text)
                except Unparsable:
                    continue
                self.texts[path] = text
                self._read(path, Lines(text), tree.body, "", None)

    def _read(self, path: str, lines: Lines, nodes: list[Any], prefix: str, owner: Definition | None) -> None:
        for node in nodes:
            if isinstance(node, _FUNCTION | ast.ClassDef):
                self._define(path, lines, node, prefix, owner)
            else:
                nested = list(ast.iter_child_nodes(node)) if _holds_definitions(node) else []
                for place in [] if nested else _calls(path, lines, [node]):
                    self.callers[place.name].append(Site(place, None))
                self._read(path, lines, nested, prefix, owner)

    def _define(self, path: str, lines: Lines, node: Any, prefix: str, owner: Definition | None) -> None:
        first = _first_line(node)
        kind = "class" if isinstance(node, ast.ClassDef) else "function"
        start, end = lines.start(first), lines.offset(node.end_lineno, node.end_col_offset)
        start += len(lines.text_of(first)) - len(lines.text_of(first).lstrip())
        methods = [inner for inner in node.body if isinstance(inner, _FUNCTION | ast.ClassDef)]
        if kind == "class" and methods:
            end = start + len(lines.text[start : lines.start(_first_line(methods[0]))].rstrip())
        found = Definition(path, start, end, prefix + node.name, kind)
        self.at[path, node.lineno, node.name] = found
        self.by_name[found.name].append(found)
        if owner:
            self.members[owner].setdefault(node.name, found)
        if kind == "class":
            for base in node.bases:
                for place in _named(path, lines, base.value if isinstance(base, ast.Subscript) else base):
                    self.bases[found].append(place)
                    self.heirs[place.name].append(Site(place, found))
            self._read(path, lines, node.body, f"{found.name}.", found)
        else:
            for place in _calls(path, lines, node.body):
                self.calls[found].append(place)
                self.callers[place.name].append(Site(place, found))


def _first_line(node: Any) -> int:
    return int(min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)]))


def _holds_definitions(node: ast.AST) -> bool:
    kinds = (ast.If, ast.Try, ast.With, ast.For, ast.While, ast.ExceptHandler)
    return isinstance(node, kinds) and any(isinstance(n, _FUNCTION | ast.ClassDef) for n in ast.walk(node))


def _calls(path: str, lines: Lines, body: list[Any]) -> Iterator[Place]:
    """Yield the calls below some nodes, in the order of the text; those in nested definitions are among them."""
    found = [node for top in body for node in ast.walk(top) if isinstance(node, ast.Call)]
    places = [place for node in found for place in _named(path, lines, node.func)]
    yield from sorted(set(places))


def _named(path: str, lines: Lines, node: ast.expr) -> Iterator[Place]:
    """Yield the place of a name, of `a.b` that of `b`."""
    if isinstance(node, ast.Attribute):
        end = lines.offset(node.end_lineno or 1, node.end_col_offset or 0)
        name, start = node.attr, end - len(node.attr)
    elif isinstance(node, ast.Name):
        name, start = node.id, lines.offset(node.lineno, node.col_offset)
    else:
        return
    line = lines.number(start)
    yield Place(path, line, start - lines.start(line), name)


class Oracle:
    """Asks jedi what a place names.

    Raises:
        CgragError: jedi is not installed.
    """

    def __init__(self, root: Path, code: Code) -> None:
        try:
            self._jedi: Any = importlib.import_module("jedi")
        except ImportError as error:
            raise CgragError(
                "Structural questions get their answers from jedi, which is not installed.",
                "Install it:  python -m pip install 'jedi>=0.19'",
            ) from error
        self._root = root.resolve()
        self._code = code
        self._project = self._jedi.Project(self._root, sys_path=[str(self._root)], load_unsafe_extensions=False)
        self._environment = self._jedi.InterpreterEnvironment()
        self._script = cache(self._open)
        self.named = cache(self._named)

    def _named(self, place: Place) -> frozenset[Definition] | None:
        """Return the definitions of the corpus at the end of a name, none where it leads out of it.

        None where jedi does not know.
        """
        script = self._script(place.path)
        try:
            names = script.goto(place.line, place.column, follow_imports=True)
            if not any(name.type in _ENDS for name in names):
                names = script.infer(place.line, place.column)
        except Exception:  # jedi's own failures are its own affair
            return None
        ends = [name for name in names if name.type in _ENDS]
        return frozenset(found for name in ends if (found := self._definition(name))) if ends else None

    def _definition(self, name: Any) -> Definition | None:
        if name.module_path is None or not name.module_path.is_relative_to(self._root):
            return None
        return self._code.at.get((name.module_path.relative_to(self._root).as_posix(), name.line, name.name))

    def _open(self, path: str) -> Any:
        return self._jedi.Script(
            self._code.texts[path], path=self._root / path, project=self._project, environment=self._environment
        )

    def targets(self, places: list[Place]) -> list[Definition]:
        """Return what some names mean, each once, in their order; names that jedi does not know are passed over."""
        found = [target for place in places for target in sorted(self.named(place) or ())]
        return list(dict.fromkeys(found))

    def sources(self, sites: list[Site], target: Definition) -> list[Definition] | None:
        """Return the definitions around those sites that name `target`, None where jedi knows one of them not."""
        found = []
        for site in sites:
            named = self.named(site.place)
            if named is None:
                return None
            if target in named and site.inside and site.inside != target:
                found.append(site.inside)
        return list(dict.fromkeys(found))
