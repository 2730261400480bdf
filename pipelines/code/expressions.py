"""Walking expressions with an explicit stack: their rows, the names they bind, and the references they make."""

import ast
from collections.abc import Callable
from typing import Any

from pipelines.chunking.lines import Lines
from pipelines.code.names import NameWalker
from pipelines.code.scopes import NONE, UNKNOWN, Scope

Step = tuple[Callable[[Any], None], Any]
_LONGEST_STRING = 200
_KEYWORDS = frozenset({"bound", "default", "default_factory"})
"""Keyword arguments that decide what some well-known functions give."""
_NAMED = frozenset({"global", "sym", "var", "from", "module", "late"})


class ExpressionWalker(NameWalker):
    """Turns expressions into rows. Work waits on `self.stack`, so no nesting is too deep.

    `self.values` holds the row number of each expression node that is done; a missing one is unknown.
    """

    def __init__(self, path: str, lines: Lines) -> None:
        super().__init__()
        self.path = path
        self.lines = lines
        self.source = 0
        """The symbol that references are counted for."""
        self.stack: list[Step] = []
        self.values: dict[ast.AST, int] = {}
        self.references: dict[tuple[int, str, int], list[int]] = {}
        self.shift = 0
        """Of a string annotation that is parsed on its own: where its text begins in the file."""

    def run(self) -> None:
        """Do all work on the stack, and what it adds."""
        stack = self.stack
        while stack:
            step, argument = stack.pop()
            step(argument)

    def later(self, *steps: Step) -> None:
        """Put steps on the stack so that the first is done first."""
        self.stack.extend(reversed(steps))

    def value(self, node: ast.AST | None) -> int:
        return self.values.get(node, UNKNOWN) if node is not None else UNKNOWN

    # -- visiting

    def visit(self, node: ast.expr) -> None:
        visitor = _VISITORS.get(type(node))
        if visitor:
            visitor(self, node)
            return
        if type(node) in _FINISHERS:
            self.stack.append((self._finish, node))
        self.push_children(node)

    def _finish(self, node: ast.expr) -> None:
        self.values[node] = _FINISHERS[type(node)](self, node)

    def push_children(self, node: ast.AST) -> None:
        """Visit the expressions directly below a node, in order."""
        children: list[ast.expr] = []
        for name in node._fields:
            child = getattr(node, name)
            if isinstance(child, ast.expr):
                children.append(child)
            elif isinstance(child, list):
                children.extend(item for item in child if isinstance(item, ast.expr))
        self.push(children)

    def push(self, nodes: list[ast.expr]) -> None:
        """Visit expressions later, but names and constants at once: there are so many that the stack costs time."""
        for node in reversed(nodes):
            kind = type(node)
            if kind is ast.Name:
                self._name(node)  # type: ignore[arg-type]
            elif kind is ast.Constant:
                self._constant(node)  # type: ignore[arg-type]
            else:
                self.stack.append((self.visit, node))

    def _name(self, node: ast.Name) -> None:
        number = self.values[node] = self.load(node.id)
        if self._is_named(number):
            self.refer("read", number, node)

    def _is_named(self, number: int) -> bool:
        row = self.expressions.rows[number]
        return row[0] in _NAMED or (
            row[0] == "or" and any(self.expressions.rows[part][0] in _NAMED for part in row[1:])
        )

    def _constant(self, node: ast.Constant) -> None:
        if node in self.values:  # a string annotation, parsed already
            return
        value = node.value
        if value is None:
            self.values[node] = NONE
        elif isinstance(value, str) and 0 < len(value) <= _LONGEST_STRING:
            if value.isascii() and not any(character.isspace() for character in value):
                number = self.values[node] = self.expressions.add("str", value)
                if is_dotted(value):
                    self.refer("string", number, node)
        elif type(value) is int and -9 < value < 99:
            self.values[node] = self.expressions.add("int", value)

    def _attribute(self, node: ast.Attribute) -> None:
        if isinstance(node.value, ast.Name):
            self._name(node.value)
            self._finish_attribute(node)
        else:
            self.stack.append((self._finish_attribute, node))
            self.stack.append((self.visit, node.value))

    def _finish_attribute(self, node: ast.Attribute) -> None:
        self._finish_member(node)
        if self.value(node.value) != UNKNOWN:
            self.refer("read", self.value(node), node)

    def _finish_member(self, node: ast.Attribute) -> None:
        self.values[node] = self.expressions.add("attr", self.value(node.value), node.attr)

    def _call(self, node: ast.Call) -> None:
        self.stack.append((self._finish_call, node))
        self.push([*node.args, *(keyword.value for keyword in node.keywords)])
        function = node.func
        if isinstance(function, ast.Name):
            self.values[function] = self.load(function.id)
        elif isinstance(function, ast.Attribute):
            if isinstance(function.value, ast.Name):
                self._name(function.value)
                self._finish_member(function)
            else:
                self.stack.append((self._finish_member, function))
                self.stack.append((self.visit, function.value))
        else:
            self.stack.append((self.visit, function))

    def _finish_call(self, node: ast.Call) -> None:
        function = self.value(node.func)
        self.refer("call", function, node.func)
        if isinstance(node.func, ast.Name) and node.func.id == "super" and not node.args:
            holder = self._method_scope()
            self.values[node] = self.expressions.add("super", holder.owner) if holder else UNKNOWN
            return
        arguments = [UNKNOWN if isinstance(item, ast.Starred) else self.value(item) for item in node.args]
        arguments += [
            self.expressions.add("keyword", keyword.arg, self.value(keyword.value))
            for keyword in node.keywords
            if keyword.arg in _KEYWORDS
        ]
        while arguments and arguments[-1] == UNKNOWN:
            arguments.pop()
        self.values[node] = self.expressions.add("call", function, *arguments)

    def _method_scope(self) -> Scope | None:
        scope: Scope | None = self.scope
        while scope and scope.owner < 0:
            scope = scope.parent
        return scope

    def _subscript(self, node: ast.Subscript) -> None:
        self.stack.append((self._finish_subscript, node))
        self.push([node.value, node.slice])

    def _finish_subscript(self, node: ast.Subscript) -> None:
        base = self.value(node.value)
        if isinstance(node.slice, ast.Slice):
            self.values[node] = base
        elif base != UNKNOWN:
            index = UNKNOWN
            if isinstance(node.slice, ast.UnaryOp) and isinstance(node.slice.operand, ast.Constant):
                index = self.expressions.add("int", -1) if node.slice.operand.value == 1 else UNKNOWN
            self.values[node] = self.expressions.add("sub", base, index or self.value(node.slice))

    # -- scopes inside expressions

    def _lambda(self, node: ast.Lambda) -> None:
        defaults = [*node.args.defaults, *(default for default in node.args.kw_defaults if default)]
        self.later(*((self.visit, default) for default in defaults), (self._enter_lambda, node))

    def _enter_lambda(self, node: ast.Lambda) -> None:
        inner = self._enter_inner()
        arguments = node.args
        for argument in (
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            arguments.vararg,
            arguments.kwarg,
        ):
            if argument:
                inner.environment[argument.arg] = UNKNOWN
        self.later((self.visit, node.body), (self._leave_lambda, node))

    def _leave_lambda(self, node: ast.Lambda) -> None:
        self.leave_inner(None)
        self.values[node] = self.expressions.add("lambda", self.value(node.body))

    def _enter_inner(self) -> Scope:
        self.scope = Scope("inner", self.scope.symbol, self.scope)
        return self.scope

    def leave_inner(self, _: object) -> None:
        if self.scope.parent:
            self.scope = self.scope.parent

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        self._enter_inner()
        steps: list[Step] = []
        for generator in node.generators:
            steps += [(self.visit, generator.iter), (self._bind_each, generator)]
            steps += [
                step for condition in generator.ifs for step in ((self.visit, condition), (self.narrow, condition))
            ]
        parts = [node.key, node.value] if isinstance(node, ast.DictComp) else [node.elt]
        steps += [(self.visit, part) for part in parts]
        self.later(*steps, (self._leave_comprehension, node))

    def _bind_each(self, generator: ast.comprehension) -> None:
        self.bind(generator.target, self.expressions.add("iter", self.value(generator.iter)))

    def _leave_comprehension(self, node: Any) -> None:
        self.leave_inner(None)
        if isinstance(node, ast.DictComp):
            self.values[node] = self.expressions.add("dict", self.value(node.key), "", self.value(node.value))
        else:
            self.values[node] = self.expressions.add("list", self.value(node.elt))

    def _walrus(self, node: ast.NamedExpr) -> None:
        self.stack.append((self._finish_walrus, node))
        self.stack.append((self.visit, node.value))

    def _finish_walrus(self, node: ast.NamedExpr) -> None:
        self.values[node] = self.value(node.value)
        scope, self.scope = self.scope, self.scope.holder()
        self.bind(node.target, self.values[node])
        self.scope = scope

    # -- finishing what has only operands

    def _tuple(self, node: ast.Tuple) -> int:
        return self.expressions.add("tuple", *(self.value(item) for item in node.elts))

    def _list(self, node: ast.List | ast.Set) -> int:
        return self.expressions.add("list", self.expressions.either(self.value(item) for item in node.elts))

    def _dict(self, node: ast.Dict) -> int:
        known = [(key.value, self.value(value)) for key, value in zip(node.keys, node.values, strict=True)
                 if isinstance(key, ast.Constant) and isinstance(key.value, str) and self.value(value)]  # fmt: skip
        keys = self.expressions.either(self.value(key) for key in node.keys[:1] if key)
        rest = [self.value(value) for key, value in zip(node.keys, node.values, strict=True)
                if key is not None and not isinstance(key, ast.Constant)]  # fmt: skip
        flat = [part for pair in known for part in pair]
        return self.expressions.add("dict", keys, *flat, *(("", self.expressions.either(rest)) if any(rest) else ()))

    def _bool(self, node: ast.BoolOp) -> int:
        if isinstance(node.op, ast.And):
            return self.value(node.values[-1])
        return self.expressions.either(self.value(item) for item in node.values)

    def _if(self, node: ast.IfExp) -> int:
        return self.expressions.either((self.value(node.body), self.value(node.orelse)))

    def _binary(self, node: ast.BinOp) -> int:
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.op, ast.BitOr):
            return self.expressions.either((left, right))
        if isinstance(node.op, ast.Add) and self.expressions.rows[left][0] in ("list", "tuple"):
            return left
        return UNKNOWN

    def _same(self, node: ast.Await) -> int:
        return self.value(node.value)

    def _yield(self, node: ast.Yield | ast.YieldFrom) -> int:
        number = self.value(node.value)
        if isinstance(node, ast.YieldFrom):
            number = self.expressions.add("iter", number)
        self.scope.holder().yields.append(number)
        return UNKNOWN

    def _starred(self, node: ast.Starred) -> int:
        return self.expressions.add("iter", self.value(node.value))

    # -- binding

    def bind(self, target: ast.expr, number: int, *, variables: bool = False) -> None:
        """Bind a target, however nested, to a value; `variables`: its names are symbols."""
        pending: list[tuple[ast.expr, int]] = [(target, number)]
        while pending:
            node, value = pending.pop()
            if isinstance(node, ast.Name):
                self.bind_name(node.id, self.variable(node, value) if variables else value)
            elif isinstance(node, ast.Tuple | ast.List):
                items = enumerate(node.elts)
                starred = False
                for position, item in items:
                    starred = starred or isinstance(item, ast.Starred)
                    part = UNKNOWN if value == UNKNOWN or starred else self.expressions.add("item", value, position)
                    pending.append((item, part))
            elif isinstance(node, ast.Starred):
                pending.append((node.value, value))
            elif isinstance(node, ast.Attribute):
                self.bind_attribute(node, value)
            else:
                self.push_children(node)

    def bind_name(self, name: str, number: int) -> None:
        raise NotImplementedError

    def variable(self, target: ast.Name, number: int) -> int:
        raise NotImplementedError

    def bind_attribute(self, node: ast.Attribute, number: int) -> None:
        raise NotImplementedError

    def narrow(self, test: ast.expr) -> None:
        raise NotImplementedError

    # -- references

    def refer(self, kind: str, number: int, node: ast.expr) -> None:
        """Record that the text of `node` refers to a row; of `a.b` just the text of `b`."""
        end = self.lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0) if not self.shift else 0
        if self.shift:  # inside a string annotation, which is one line
            start, end = self.shift + node.col_offset, self.shift + (node.end_col_offset or 0)
            line = self.lines.number(start)
            if isinstance(node, ast.Attribute):
                start = end - len(node.attr)
        elif isinstance(node, ast.Attribute):
            line, start = node.end_lineno or node.lineno, end - len(node.attr)
            text = self.lines.text
            if text[start:end] != node.attr:  # NFKC changed the length of the name
                start = end
                while start and ("a" + text[start - 1]).isidentifier():
                    start -= 1
        else:
            line, start = node.lineno, self.lines.offset(node.lineno, node.col_offset)
        self.references.setdefault((self.source, kind, number), []).extend((line, start, end))


_W = ExpressionWalker
# Tables of plain functions: bound methods in the walker would be a cycle that keeps every syntax tree alive.
_VISITORS: dict[type, Callable[[Any, Any], None]] = {
    ast.Name: _W._name, ast.Constant: _W._constant, ast.Attribute: _W._attribute, ast.Call: _W._call,
    ast.Subscript: _W._subscript, ast.Lambda: _W._lambda, ast.NamedExpr: _W._walrus, ast.ListComp: _W._comprehension,
    ast.SetComp: _W._comprehension, ast.GeneratorExp: _W._comprehension, ast.DictComp: _W._comprehension,
}  # fmt: skip
_FINISHERS: dict[type, Callable[[Any, Any], int]] = {
    ast.Tuple: _W._tuple, ast.List: _W._list, ast.Set: _W._list, ast.Dict: _W._dict, ast.BoolOp: _W._bool,
    ast.IfExp: _W._if, ast.BinOp: _W._binary, ast.Await: _W._same, ast.Yield: _W._yield, ast.YieldFrom: _W._yield,
    ast.Starred: _W._starred,
}  # fmt: skip


def is_dotted(value: str) -> bool:
    """Whether a string could name a symbol: `pkg.module.Class`, or an entry point `pkg.module:Class`.

    >>> [is_dotted(value) for value in ("a.b.C", "a.b:C", "a", "a..b", "1.2")]
    [True, True, False, False, False]
    """
    parts = value.replace(":", ".", 1).split(".")
    return len(parts) > 1 and all(part.isidentifier() for part in parts)
