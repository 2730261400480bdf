"""Functions, classes and variables of a file: their symbols, signatures, annotations and scopes."""

import ast
import re
from collections import deque
from typing import Any

from pipelines.chunking.lines import Lines
from pipelines.code.expressions import ExpressionWalker, Step
from pipelines.code.scopes import NONE, UNKNOWN, Scope

Function = ast.FunctionDef | ast.AsyncFunctionDef
Definition = Function | ast.ClassDef
_KEYWORD = re.compile(r"(?:async[\s\\]+def|def|class)[\s\\]+")
_CLASS_FIRST = frozenset({"__new__", "__init_subclass__", "__class_getitem__"})
_FLAGS = {
    "property": "property", "cached_property": "property", "abstractproperty": "property",
    "staticmethod": "static", "classmethod": "class", "overload": "overload", "fixture": "fixture",
    "contextmanager": "context", "asynccontextmanager": "context",
}  # fmt: skip


class DefinitionWalker(ExpressionWalker):
    """Definitions; bodies of functions wait until the scope around them has ended, as they do at run time."""

    def __init__(self, path: str, lines: Lines) -> None:
        super().__init__(path, lines)
        self.symbols: list[list[Any]] = []
        self.functions: dict[int, dict[str, Any]] = {}
        self.classes: dict[int, dict[str, Any]] = {}
        self.bodies: deque[tuple[Function, Scope]] = deque()
        self._numbers: dict[str, int] = {}
        self.add_symbol("module", "", 0, (0, len(lines.text)), (0, 0))

    # -- symbols

    def add_symbol(self, kind: str, name: str, parent: int, span: tuple[int, int], named: tuple[int, int]) -> int:
        """Return the number of a symbol; a later definition of the same name takes the place of an earlier one.

        `span` is all of it, `named` its name alone.
        """
        number_of = self.lines.number
        last = max(span[1] - 1, span[0])
        row = [kind, name, parent, *span, number_of(span[0]), number_of(last), number_of(named[0]), *named]
        number = self._numbers.get(name)
        if number is None:
            number = self._numbers[name] = len(self.symbols)
            self.symbols.append(row)
        elif kind != "variable" or self.symbols[number][0] == "variable":
            self.symbols[number] = row
        return number

    def _qualified(self, name: str) -> str:
        scope = self.scope.holder()
        around = self.symbols[scope.symbol][1]
        return f"{around}.<locals>.{name}" if scope.kind == "function" else f"{around}.{name}" if around else name

    def _define(self, node: Definition, kind: str) -> int:
        first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
        start = self.lines.offset(node.lineno, node.col_offset)
        if node.decorator_list:
            decorator = node.decorator_list[0]
            start = self.lines.text.rfind("@", 0, self.lines.offset(first, decorator.col_offset))
        span = (start, self._span(node)[1])
        named = self._name_after(self._span(node)[0])
        return self.add_symbol(kind, self._qualified(node.name), self.scope.holder().symbol, span, named)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end = self.lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        return self.lines.offset(node.lineno, node.col_offset), end

    def _name_after(self, start: int) -> tuple[int, int]:
        """Where the name in `def name` or `class name` is."""
        text = self.lines.text
        keyword = _KEYWORD.match(text, start)
        first = last = keyword.end() if keyword else start
        while last < len(text) and ("a" + text[last]).isidentifier():
            last += 1
        return first, last

    # -- annotations

    def annotation_steps(self, node: ast.expr | None) -> list[Step]:
        """Steps that visit an annotation, what is written in its strings included."""
        if node is None:
            return []
        if isinstance(node, ast.Name | ast.Attribute):
            return [(self.visit, node)]
        steps: list[Step] = []
        pending: list[ast.AST] = [node]
        while pending:
            part = pending.pop()
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                steps += self._string_steps(part, part.value)
            elif not (isinstance(part, ast.Subscript) and _last_name(part.value) == "Literal"):
                pending.extend(ast.iter_child_nodes(part))
        return [*steps, (self.visit, node)]

    def _string_steps(self, node: ast.Constant, value: str) -> list[Step]:
        start, end = self._span(node)
        at = self.lines.text.find(value, start, end)
        if at < 0 or not value.isascii() or value != value.lstrip() or "\n" in value:
            return []
        try:
            body = ast.parse(value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return []
        return [(self._set_shift, at), (self.visit, body), (self._set_shift, 0), (self._take_value, (node, body))]

    def _set_shift(self, shift: int) -> None:
        self.shift = shift

    def _take_value(self, pair: tuple[ast.expr, ast.expr]) -> None:
        self.values[pair[0]] = self.value(pair[1])

    def typed(self, annotation: ast.expr | None) -> int:
        """The row of a value that is annotated so; unknown without annotation."""
        number = self.value(annotation)
        return self.expressions.add("ann", number) if number > NONE else UNKNOWN

    # -- functions

    def function(self, node: Function) -> None:
        number = self._define(node, "function")
        arguments = node.args
        annotated = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        annotations = [argument.annotation for argument in annotated if argument] + [node.returns]
        defaults = [*arguments.defaults, *(default for default in arguments.kw_defaults if default)]
        self.later(
            *((self.visit, default) for default in defaults),
            *self._decorator_steps(node, number),
            (self._set_source, number),
            *(step for annotation in annotations for step in self.annotation_steps(annotation)),
            (self._set_source, self.source),
            (self._finish_function, (node, number)),
        )

    def _set_source(self, number: int) -> None:
        self.source = number

    def _decorator_steps(self, node: Definition, number: int) -> list[Step]:
        steps: list[Step] = []
        for decorator in node.decorator_list:
            steps += [(self.visit, decorator), (self._refer_decorator, (decorator, number))]
        return steps

    def _refer_decorator(self, pair: tuple[ast.expr, int]) -> None:
        node, number = pair
        named = node.func if isinstance(node, ast.Call) else node
        source, self.source = self.source, number
        self.refer("decorator", self.value(named), named)
        self.source = source

    def _finish_function(self, pair: tuple[Function, int]) -> None:
        node, number = pair
        flags = {_FLAGS[name] for decorator in node.decorator_list if (name := _last_name(decorator)) in _FLAGS}
        flags |= {"async"} if isinstance(node, ast.AsyncFunctionDef) else set()
        accessor = any(_last_name(decorator) in ("setter", "deleter") for decorator in node.decorator_list)
        scope = Scope("function", number, self.scope)
        method = self.scope.kind == "class" and "static" not in flags
        params = self._params(node, scope, number, method, "class" in flags or node.name in _CLASS_FIRST)
        info: dict[str, Any] = {
            "params": params,
            "returns": self.value(node.returns),
            "values": scope.returns,
            "yields": scope.yields,
            "flags": sorted(flags),
            "decorators": [self.value(decorator) for decorator in node.decorator_list],
        }
        before = self.functions.get(number)
        if before and "overload" in before["flags"] and (not info["returns"] or "overload" in flags):
            info["returns"] = self.expressions.either((before["returns"], info["returns"]))
        if not (accessor and before):
            self.functions[number] = info
        self.bind_name(node.name, self.expressions.add("sym", number), definition=True)
        self.bodies.append((node, scope))

    def _params(self, node: Function, scope: Scope, number: int, method: bool, of_class: bool) -> list[list[Any]]:
        """Bind the parameters in the function's scope; return [name, annotation, default, kind] of each."""
        arguments = node.args
        positional = [*arguments.posonlyargs, *arguments.args]
        defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
        pairs = list(zip(positional, [*defaults, *arguments.defaults], strict=True))
        pairs += zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        params: list[list[Any]] = []
        asks_fixtures = node.name.startswith("test") or any(_last_name(d) == "fixture" for d in node.decorator_list)
        for position, (argument, default) in enumerate(pairs):
            if method and position == 0 and positional:
                scope.owner, scope.receiver = self.scope.symbol, argument.arg
                value = self.expressions.add("cls" if of_class else "self", scope.owner)
                params.append([argument.arg, UNKNOWN, UNKNOWN, "receiver"])
            else:
                kind = "positional" if position < len(positional) else "keyword"
                annotation, given = self.value(argument.annotation), self.value(default)
                value = self.typed(argument.annotation)
                if value == UNKNOWN:
                    value = self.expressions.add("param", number, argument.arg, given)
                params.append([argument.arg, annotation, given, kind])
            scope.environment[argument.arg] = value
            scope.bound[argument.arg] = [value]
            if asks_fixtures and params[-1][3] != "receiver":
                asked = self.expressions.add("param", number, argument.arg, UNKNOWN)
                start = self.lines.offset(argument.lineno, argument.col_offset)
                place = (argument.lineno, start, start + len(argument.arg))
                self.references.setdefault((number, "fixture", asked), []).extend(place)
        for rest, row in ((arguments.vararg, ("list",)), (arguments.kwarg, ("dict", UNKNOWN, ""))):
            if rest:
                value = self.expressions.add(*row, self.typed(rest.annotation))
                scope.environment[rest.arg] = value
                scope.bound[rest.arg] = [value]
        return params

    # -- classes

    def class_(self, node: ast.ClassDef) -> None:
        number = self._define(node, "class")
        self.later(
            *self._decorator_steps(node, number),
            (self._set_source, number),
            *((self.visit, base) for base in node.bases),
            *((self.visit, keyword.value) for keyword in node.keywords),
            (self._enter_class, (node, number, self.source)),
        )

    def _enter_class(self, argument: tuple[ast.ClassDef, int, int]) -> None:
        node, number, source = argument
        bases = [base for base in node.bases if not isinstance(base, ast.Starred)]
        for base in bases:
            named = base.value if isinstance(base, ast.Subscript) else base
            self.refer("base", self.value(named), named)
        self.classes[number] = {
            "bases": [self.value(base) for base in bases],
            "decorators": [self.value(decorator) for decorator in node.decorator_list],
            "names": {},
            "attributes": {},
        }
        self.scope = Scope("class", number, self.scope)
        self.later(*self.body_steps(node.body), (self._leave_class, (node.name, number, source)))

    def _leave_class(self, argument: tuple[str, int, int]) -> None:
        name, number, self.source = argument
        self.classes[number]["names"] = self.scope.environment
        assert self.scope.parent
        self.scope = self.scope.parent
        self.bind_name(name, self.expressions.add("sym", number), definition=True)

    # -- variables

    def assign_lambda(self, target: ast.Name, node: ast.Lambda) -> list[Step]:
        """Steps for `name = lambda …`, which defines a function in all but syntax."""
        name, parent = target.id, self.scope.holder().symbol
        number = self.add_symbol("function", self._qualified(name), parent, self._statement, self._span(target))
        self.functions[number] = {
            "params": [], "returns": UNKNOWN, "values": [], "yields": [], "flags": [], "decorators": [],
        }  # fmt: skip
        return [
            (self._set_source, number),
            (self.visit, node),
            (self._set_source, self.source),
            (self._finish_lambda, (name, number, node)),
        ]

    def _finish_lambda(self, argument: tuple[str, int, ast.Lambda]) -> None:
        name, number, node = argument
        body = self.expressions.rows[self.value(node)]
        self.functions[number]["values"] = [body[1]] if body[0] == "lambda" else []
        self.functions[number]["params"] = [[item.arg, UNKNOWN, UNKNOWN, "positional"] for item in node.args.args]
        self.bind_name(name, self.expressions.add("sym", number), definition=True)

    _statement: tuple[int, int] = (0, 0)
    """The span of the statement at work, where it may define a symbol."""

    def begin_statement(self, node: ast.stmt) -> None:
        if self.scope.kind == "module" or isinstance(getattr(node, "value", None), ast.Lambda):
            self._statement = self._span(node)

    def body_steps(self, body: list[ast.stmt]) -> list[Step]:
        raise NotImplementedError

    def variable(self, target: ast.Name, number: int) -> int:
        """The row of a module-level variable with this value; its symbol is new unless the name means a definition."""
        name = target.id
        existing = self._numbers.get(name)
        earlier = self.module.environment.get(name)
        if existing is not None and self.symbols[existing][0] != "variable":
            kept = self.expressions.rows[number]
            arguments = kept[2:] if kept[0] == "call" else ()
            return earlier if earlier in arguments and earlier is not None else number
        if earlier is not None and self.expressions.rows[earlier][0] in ("from", "module") and number <= NONE:
            return number  # `X = None` where the import of X failed
        symbol = self.add_symbol("variable", name, 0, self._statement, self._span(target))
        return self.expressions.add("var", symbol, number)

    def bind_name(self, name: str, number: int, *, definition: bool = False) -> None:
        scope = self.scope
        if name in scope.globals:
            self.module.bound.setdefault(name, []).append(number)
            known = self.module.environment.get(name)
            self.module.environment[name] = number if known is None else self.expressions.either((known, number))
            return
        if name in scope.nonlocals:
            outer = scope.parent
            while outer and not (outer.kind == "function" and name in outer.bound):
                outer = outer.parent
            if outer:
                outer.bound[name].append(number)
                outer.environment[name] = self.expressions.either((outer.environment.get(name, UNKNOWN), number))
            return
        scope.environment[name] = number
        scope.bound.setdefault(name, []).append(number)

    def bind_attribute(self, node: ast.Attribute, number: int) -> None:
        """Record what a method stores on its receiver; nothing else that has attributes is followed."""
        self.later((self.visit, node.value), (self._finish_store, node))
        base = node.value
        if isinstance(base, ast.Name) and number != UNKNOWN:
            scope: Scope | None = self.scope
            while scope and base.id not in scope.bound:
                scope = scope.parent
            if scope and scope.receiver == base.id and scope.owner in self.classes:
                stored = self.classes[scope.owner]["attributes"].setdefault(node.attr, [])
                if number not in stored:
                    stored.append(number)

    def _finish_store(self, node: ast.Attribute) -> None:
        self._finish_member(node)
        self.refer("store", self.value(node), node)


def _last_name(node: ast.expr) -> str:
    """The last part of a dotted name, called or not.

    >>> _last_name(ast.parse("functools.lru_cache(maxsize=1)", mode="eval").body)
    'lru_cache'
    """
    node = node.func if isinstance(node, ast.Call) else node
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
