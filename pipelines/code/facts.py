"""File-local facts of one Python file: all that the linker needs, so that it never parses again."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pipelines.chunking.lines import Lines
from pipelines.chunking.python import parse_source
from pipelines.code.scopes import Row
from pipelines.code.statements import Walker

VERSION = 1
"""Raise it when the same file gives other facts than before."""


@dataclass
class Facts:
    """Facts of one file.

    Symbols, functions and classes refer to each other by position in `symbols`, where the module, named "", is first.
    Values are numbers of rows in `expressions` (see `scopes.Expressions`).
    """

    path: str
    symbols: list[list[Any]]
    """[kind, qualified name, parent, start, end, start_line, end_line, name_line, name_start, name_end]; kind is
    module, class, function or variable."""
    functions: dict[int, dict[str, Any]]
    """Of a function: params [[name, annotation, default, kind], …], returns (annotation), values, yields, flags,
    decorators."""
    classes: dict[int, dict[str, Any]]
    """Of a class: bases, decorators, names (its namespace), attributes (what its methods store on self)."""
    names: dict[str, int]
    """The module's namespace at its end."""
    stars: list[int]
    """Modules imported with *, in order."""
    exported: list[str] | None
    """`__all__`, where it is written out."""
    lazy: dict[str, list[list[str]]]
    """Names that the module's `__getattr__` may give: [module, attribute] candidates."""
    expressions: list[Row] = field(repr=False)
    references: list[list[Any]] = field(repr=False)
    """[source symbol, kind, expression, [line, start, end, line, start, end, …]]."""

    def symbol_id(self, number: int) -> str:
        """`path::Qual.name`; the path alone for the module."""
        name = self.symbols[number][1]
        return f"{self.path}::{name}" if name else self.path


def file_facts(path: str, text: str) -> Facts:
    """Return the facts of a Python file.

    >>> facts = file_facts("a.py", "class A:\\n    def f(self): return g()\\n")
    >>> [facts.symbol_id(number) for number in range(3)]
    ['a.py', 'a.py::A', 'a.py::A.f']

    Raises:
        Unparsable: CPython cannot parse it.
    """
    walker = Walker(path, Lines(text))
    walker.walk(parse_source(text))
    return Facts(
        path,
        walker.symbols,
        walker.functions,
        walker.classes,
        walker.module.environment,
        walker.stars,
        walker.exported,
        walker.lazy,
        walker.expressions.rows,
        [[*key, positions] for key, positions in walker.references.items()],
    )


_FIELDS = ("symbols", "functions", "classes", "names", "stars", "exported", "lazy", "expressions", "references")


def to_row(facts: Facts) -> dict[str, str]:
    """Return facts as a row of `tables.CODE_FACTS`."""
    value = {name: getattr(facts, name) for name in _FIELDS}
    return {"path": facts.path, "facts": json.dumps(value, ensure_ascii=True, separators=(",", ":"))}


def from_row(row: Mapping[str, str]) -> Facts:
    """Return the facts of a row that `to_row` made."""
    value = json.loads(row["facts"])
    for name in ("functions", "classes"):  # JSON keys are strings
        value[name] = {int(number): info for number, info in value[name].items()}
    return Facts(row["path"], **value)
