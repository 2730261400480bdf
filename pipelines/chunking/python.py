"""Python by its own parser: definitions with their decorators, and the text between them."""

import ast
import gc
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from pipelines.chunking.lines import Lines
from pipelines.chunking.model import Entry, Parsed, Unit
from pipelines.chunking.windows import cut

Kind = Literal["function", "class", "code"]
Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef


class Unparsable(Exception):
    """CPython cannot parse the text; the argument says why and where."""


@contextmanager
def collector_off() -> Iterator[None]:
    """Parse without cyclic garbage collection: syntax trees make it run all the time and free nothing (4 s, not 20)."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def parse_source(text: str) -> ast.Module:
    """Return the syntax tree of `text`.

    Raises:
        Unparsable: a syntax error, a null byte, or nesting too deep for this CPython.
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # invalid escapes in the corpus are not our user's concern
            return ast.parse(text)
    except SyntaxError as error:
        raise Unparsable(f"line {error.lineno or 1}: {error.msg}") from error
    except ValueError as error:
        raise Unparsable(f"line {text.count(chr(10), 0, max(text.find(chr(0)), 0)) + 1}: {error}") from error
    except (RecursionError, MemoryError) as error:
        raise Unparsable(f"nested too deeply for this Python ({type(error).__name__})") from error


def parse_python(lines: Lines, cap: int) -> Parsed:
    """Return the units and the outline of Python source; see DESIGN for what a unit is.

    Raises:
        Unparsable: see `parse_source`.
    """
    tree = parse_source(lines.text)
    units = list(_body(lines, tree.body, 0, len(lines.text), cap, "", "code"))
    return Parsed("python", units, outline(lines, tree))


def _body(
    lines: Lines, body: list[ast.stmt], start: int, end: int, cap: int, prefix: str, between: Kind
) -> Iterator[Unit]:
    """Yield the units of [start, end): the definitions in `body`, and what lies between, which belongs to `prefix`."""
    position = start
    for node in body:
        if isinstance(node, Definition):
            first, last = _whole_lines(lines, node)
            if first < position:  # a definition after a semicolon or colon on one line: part of what is before
                continue
            yield from _pieces(lines, position, first, cap, between, prefix)
            position = min(last, end)
            name = f"{prefix}.{node.name}" if prefix else node.name
            if isinstance(node, ast.ClassDef) and last - first > cap:
                yield from _body(lines, node.body, first, position, cap, name, "class")
            else:
                kind: Kind = "class" if isinstance(node, ast.ClassDef) else "function"
                yield from _pieces(lines, first, position, cap, kind, name)
    yield from _pieces(lines, position, end, cap, between, prefix)


def _pieces(lines: Lines, start: int, end: int, cap: int, kind: Kind, name: str) -> Iterator[Unit]:
    span = lines.trimmed(start, end)
    for piece in cut(lines, *span, cap) if span else ():
        trimmed = lines.trimmed(*piece)
        if trimmed:
            yield Unit(*trimmed, kind, name, (name,) if name else ())


def _start(lines: Lines, node: Definition) -> int:
    """Where a definition begins: at the `@` of its first decorator, if it has one."""
    if not node.decorator_list:
        return lines.offset(node.lineno, node.col_offset)
    decorator = node.decorator_list[0]
    return lines.text.rfind("@", 0, lines.offset(decorator.lineno, decorator.col_offset))


def _whole_lines(lines: Lines, node: Definition) -> tuple[int, int]:
    return lines.start(lines.number(_start(lines, node))), lines.start((node.end_lineno or node.lineno) + 1)


def outline(lines: Lines, tree: ast.Module) -> list[Entry]:
    """Return every class and function of a module, nested ones too, by start; names as in `__qualname__`."""
    entries = []
    pending: list[tuple[ast.AST, str, int]] = [(tree, "", 0)]
    while pending:  # not recursive: an `elif` chain is as deep as it is long
        node, prefix, level = pending.pop()
        if isinstance(node, Definition):
            name, level = prefix + node.name, level + 1
            prefix = f"{name}." if isinstance(node, ast.ClassDef) else f"{name}.<locals>."
            entries.append(_entry(lines, node, name, level))
        for field in ("body", "orelse", "finalbody", "handlers", "cases"):
            children = getattr(node, field, None)
            if isinstance(children, list):
                pending.extend((child, prefix, level) for child in children)
    return sorted(entries, key=lambda entry: (entry.start, entry.level))


def _entry(lines: Lines, node: Definition, name: str, level: int) -> Entry:
    end = lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
    kind: Literal["class", "function"] = "class" if isinstance(node, ast.ClassDef) else "function"
    return Entry(kind, name, node.name, level, _start(lines, node), end, node.lineno)
