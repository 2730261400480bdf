"""Walking statements: control flow decides which values reach a use."""

import ast
from collections.abc import Callable
from typing import Any

from pipelines.chunking.lines import Lines
from pipelines.code.definitions import DefinitionWalker
from pipelines.code.expressions import Step
from pipelines.code.lazy import exported_names, lazy_names
from pipelines.code.scopes import NONE, UNKNOWN, Environment, merged

_Branch = tuple[Environment, bool]
"""An environment, and whether control never leaves it by its end."""


class Walker(DefinitionWalker):
    """Walks a whole module. Branches see a copy of the environment, and their ends are merged.

    >>> walker = Walker("a.py", Lines("if t:\\n    x = 'a'\\nelse:\\n    x = 'b'\\ny = x\\n"))
    >>> walker.walk(ast.parse(walker.lines.text))
    >>> rows = walker.expressions.rows
    >>> [rows[part] for part in rows[rows[walker.module.environment["y"]][2]][1:]]
    [['var', 1, 3], ['var', 1, 5]]
    """

    def __init__(self, path: str, lines: Lines) -> None:
        super().__init__(path, lines)
        self.stars: list[int] = []
        self.exported: list[str] | None = None
        self.lazy: dict[str, list[list[str]]] = {}
        self.ended: list[list[_Branch]] = []
        """Of each match statement at work, how its cases ended."""

    def walk(self, tree: ast.Module) -> None:
        """Walk the module, then the bodies of its functions, the outer ones first."""
        self.later(*self.body_steps(tree.body))
        self.run()
        while self.bodies:
            node, scope = self.bodies.popleft()
            self.scope, self.source = scope, scope.symbol
            self.later(*self.body_steps(node.body))
            self.run()
            self.fill_late(scope)
        self.exported = exported_names(tree)
        self.lazy = lazy_names(tree, self.lines.text)

    def body_steps(self, body: list[ast.stmt]) -> list[Step]:
        return [(self._step, node) for node in body]

    def _step(self, node: ast.stmt) -> None:
        handler = _STATEMENTS.get(type(node))
        if handler:
            handler(self, node)
        else:
            self.push_children(node)

    # -- simple statements

    def _expression(self, node: ast.Expr) -> None:
        self.stack.append((self.visit, node.value))

    def _assign(self, node: ast.Assign) -> None:
        target = node.targets[0]
        self.begin_statement(node)
        if isinstance(node.value, ast.Lambda) and len(node.targets) == 1 and isinstance(target, ast.Name):
            self.later(*self.assign_lambda(target, node.value))
        else:
            self.later((self.visit, node.value), (self._finish_assign, node))

    def _finish_assign(self, node: ast.Assign) -> None:
        self.begin_statement(node)
        for target in node.targets:
            self._bind_value(target, self.value(node.value))

    def _bind_value(self, target: ast.expr, number: int) -> None:
        self.bind(target, number, variables=self.scope.kind == "module")

    def _annotated(self, node: ast.AnnAssign) -> None:
        alias = _is_alias(node.annotation) and node.value is not None
        value = self.annotation_steps(node.value) if alias else [(self.visit, node.value)] if node.value else []
        self.later(*self.annotation_steps(node.annotation), *value, (self._finish_annotated, node))

    def _finish_annotated(self, node: ast.AnnAssign) -> None:
        self.begin_statement(node)
        alias = _is_alias(node.annotation) and node.value is not None
        number = self.value(node.value) if alias else self.typed(node.annotation) or self.value(node.value)
        if node.value is not None or self.scope.kind != "function":
            self._bind_value(node.target, number)
        else:
            self.bind(node.target, number)

    def _augmented(self, node: ast.AugAssign) -> None:
        self.push([node.value])
        if isinstance(node.target, ast.Attribute | ast.Subscript):
            self.push([node.target])

    def _return(self, node: ast.Return) -> None:
        self.later(*([(self.visit, node.value)] if node.value else []), (self._finish_return, node))

    def _finish_return(self, node: ast.Return) -> None:
        number = self.value(node.value)
        if number > NONE and number not in self.scope.returns:
            self.scope.returns.append(number)
        self.scope.dead = True

    def _raise(self, node: ast.Raise) -> None:
        self.later(*((self.visit, part) for part in (node.exc, node.cause) if part), (self._die, None))

    def _die(self, _: object) -> None:
        self.scope.dead = True

    def _leave_loop(self, _: ast.stmt) -> None:
        self.scope.breaks.append(dict(self.scope.environment))
        self.scope.dead = True

    def _global(self, node: ast.Global) -> None:
        if self.scope.kind != "module":
            self.scope.globals.update(node.names)

    def _nonlocal(self, node: ast.Nonlocal) -> None:
        self.scope.nonlocals.update(node.names)

    def _assert(self, node: ast.Assert) -> None:
        steps: list[Step] = [(self.visit, node.test), (self.narrow, node.test)]
        self.later(*steps, *([(self.visit, node.msg)] if node.msg else []))

    # -- imports

    def _import(self, node: ast.Import) -> None:
        for alias in node.names:
            whole = self.expressions.add("module", alias.name, 0)
            self._refer_import(whole, alias)
            top = alias.name.partition(".")[0]
            if alias.asname:
                self.bind_name(alias.asname, whole)
            else:
                self.bind_name(top, self.expressions.add("module", top, 0))

    def _import_from(self, node: ast.ImportFrom) -> None:
        name = node.module or ""
        module = self.expressions.add("module", name, node.level)
        self._refer_module(module, node)
        for alias in node.names:
            if alias.name == "*":
                if self.scope.kind == "module":
                    self.stars.append(module)
            else:
                number = self.expressions.add("from", name, node.level, alias.name)
                self._refer_import(number, alias)
                self.bind_name(alias.asname or alias.name, number)

    def _refer_import(self, number: int, alias: ast.alias) -> None:
        start = self.lines.offset(alias.lineno, alias.col_offset)
        end = self.lines.offset(alias.end_lineno or alias.lineno, alias.end_col_offset or 0)
        written = self.lines.text[start:end]
        end = start + len(written.split()[0]) if written else end  # without `as name`
        self._record_import(number, alias.lineno, start, end)

    def _refer_module(self, number: int, node: ast.ImportFrom) -> None:
        start = self.lines.offset(node.lineno, node.col_offset)
        end = self.lines.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
        written = "." * node.level + (node.module or "")
        at = self.lines.text.find(written, start + len("from"), end)
        first = at if at >= 0 else start
        self._record_import(number, node.lineno, first, first + len(written) if at >= 0 else end)

    def _record_import(self, number: int, line: int, start: int, end: int) -> None:
        self.references.setdefault((self.source, "import", number), []).extend((line, start, end))

    # -- branches

    def _branch(self, node: ast.If) -> None:
        self.later((self.visit, node.test), (self._then, node))

    def _then(self, node: ast.If) -> None:
        before, dead = self.scope.environment, self.scope.dead
        self.scope.environment = dict(before)
        self.narrow(node.test)
        self.later(*self.body_steps(node.body), (self._else, (node, before, dead)))

    def _else(self, argument: tuple[ast.If, Environment, bool]) -> None:
        node, before, dead = argument
        body = (self.scope.environment, self.scope.dead)
        self.scope.environment, self.scope.dead = before, dead
        self.narrow_else(node.test)
        self.later(*self.body_steps(node.orelse), (self._join, body))

    def _join(self, branch: _Branch) -> None:
        """Merge the branch at work with another that has ended."""
        environment, dead = branch
        if self.scope.dead:
            self.scope.environment, self.scope.dead = environment, dead
        elif not dead:
            self.scope.environment = merged(self.expressions, environment, self.scope.environment)

    def narrow(self, test: ast.expr) -> None:
        """Give names the class that `isinstance` in a test that holds says they have."""
        pending = [test]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And):
                pending.extend(node.values)
            elif isinstance(node, ast.Call) and _is_check(node) and isinstance(node.args[0], ast.Name):
                name, classes = node.args[0].id, self.value(node.args[1])
                if classes > NONE:
                    self.scope.environment[name] = self.expressions.add("narrow", classes, self.load(name))

    def narrow_else(self, test: ast.expr) -> None:
        """The same for a test that does not hold: `if not isinstance(x, A): raise`."""
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            self.narrow(test.operand)
        elif isinstance(test, ast.BoolOp) and isinstance(test.op, ast.Or):
            for part in test.values:
                if isinstance(part, ast.UnaryOp) and isinstance(part.op, ast.Not):
                    self.narrow(part.operand)

    # -- loops

    def _for(self, node: ast.For | ast.AsyncFor) -> None:
        self.later((self.visit, node.iter), (self._loop, node))

    def _while(self, node: ast.While) -> None:
        self.later((self.visit, node.test), (self._loop, node))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While) -> None:
        scope = self.scope
        before, breaks = scope.environment, scope.breaks
        scope.environment, scope.breaks = dict(before), []
        if isinstance(node, ast.While):
            self.narrow(node.test)
        else:
            self.bind(node.target, self.expressions.add("iter", self.value(node.iter)))
        self.later(*self.body_steps(node.body), (self._end_loop, (node, before, scope.dead, breaks)))

    def _end_loop(self, argument: tuple[Any, Environment, bool, list[Environment]]) -> None:
        node, before, dead, outer = argument
        scope = self.scope
        left, scope.breaks = scope.breaks, outer
        self._join((before, False))
        for environment in left:
            scope.environment = merged(self.expressions, scope.environment, environment)
        scope.dead = dead
        self.later(*self.body_steps(node.orelse))

    # -- with, try, match

    def _with(self, node: ast.With | ast.AsyncWith) -> None:
        steps: list[Step] = []
        for item in node.items:
            steps += [(self.visit, item.context_expr), (self._enter, item)]
        self.later(*steps, *self.body_steps(node.body))

    def _enter(self, item: ast.withitem) -> None:
        if item.optional_vars is not None:
            self.bind(item.optional_vars, self.expressions.add("enter", self.value(item.context_expr)))

    def _try(self, node: ast.Try | ast.TryStar) -> None:
        before = dict(self.scope.environment)
        self.later(*self.body_steps(node.body), (self._end_body, (node, before, self.scope.dead)))

    def _end_body(self, argument: tuple[ast.Try, Environment, bool]) -> None:
        node, before, dead = argument
        raised = merged(self.expressions, before, self.scope.environment)
        steps = [*self.body_steps(node.orelse)]
        for handler in node.handlers:
            steps += [(self._handler, (handler, raised, dead))]
        self.later(*steps, *self.body_steps(node.finalbody))

    def _handler(self, argument: tuple[ast.ExceptHandler, Environment, bool]) -> None:
        handler, raised, dead = argument
        done = (self.scope.environment, self.scope.dead)
        self.scope.environment, self.scope.dead = dict(raised), dead
        caught: list[Step] = [(self.visit, handler.type)] if handler.type else []
        steps: list[Step] = [*caught, (self._catch, handler), *self.body_steps(handler.body), (self._join, done)]
        self.later(*steps)

    def _catch(self, handler: ast.ExceptHandler) -> None:
        if handler.name:
            self.bind_name(handler.name, self.expressions.add("narrow", self.value(handler.type), UNKNOWN))

    def _match(self, node: ast.Match) -> None:
        self.later((self.visit, node.subject), (self._cases, node))

    def _cases(self, node: ast.Match) -> None:
        before, dead = self.scope.environment, self.scope.dead
        steps: list[Step] = []
        for case in node.cases:
            steps += [(self._begin_case, (case, before, dead)), *([(self.visit, case.guard)] if case.guard else [])]
            steps += [*self.body_steps(case.body), (self._end_case, None)]
        self.ended.append([(before, dead)])
        self.later(*steps, (self._end_match, None))

    def _begin_case(self, argument: tuple[ast.match_case, Environment, bool]) -> None:
        case, before, dead = argument
        self.scope.environment, self.scope.dead = dict(before), dead
        pending: list[ast.AST] = [case.pattern]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.MatchAs | ast.MatchStar) and node.name:
                self.bind_name(node.name, UNKNOWN)
            elif isinstance(node, ast.MatchMapping) and node.rest:
                self.bind_name(node.rest, UNKNOWN)
            if isinstance(node, ast.MatchValue):
                self.push([node.value])
            elif isinstance(node, ast.MatchClass):
                self.push([node.cls])
            pending.extend(child for child in ast.iter_child_nodes(node) if isinstance(child, ast.pattern))

    def _end_case(self, _: object) -> None:
        self.ended[-1].append((self.scope.environment, self.scope.dead))

    def _end_match(self, _: object) -> None:
        self.scope.environment, self.scope.dead = {}, True
        for environment, dead in self.ended.pop():
            self._join((dict(environment), dead))


def _is_check(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Name) and node.func.id == "isinstance" and len(node.args) == 2


def _is_alias(annotation: ast.expr) -> bool:
    name = annotation.attr if isinstance(annotation, ast.Attribute) else getattr(annotation, "id", "")
    return name == "TypeAlias"


_STATEMENTS: dict[type, Callable[[Any, Any], None]] = {
    ast.Expr: Walker._expression, ast.Assign: Walker._assign, ast.AnnAssign: Walker._annotated,
    ast.AugAssign: Walker._augmented, ast.Return: Walker._return, ast.If: Walker._branch, ast.For: Walker._for,
    ast.AsyncFor: Walker._for, ast.While: Walker._while, ast.With: Walker._with, ast.AsyncWith: Walker._with,
    ast.Try: Walker._try, ast.TryStar: Walker._try, ast.Match: Walker._match, ast.FunctionDef: Walker.function,
    ast.AsyncFunctionDef: Walker.function, ast.ClassDef: Walker.class_, ast.Import: Walker._import,
    ast.ImportFrom: Walker._import_from, ast.Assert: Walker._assert, ast.Raise: Walker._raise,
    ast.Global: Walker._global, ast.Nonlocal: Walker._nonlocal, ast.Break: Walker._leave_loop,
    ast.Continue: Walker._leave_loop,
}  # fmt: skip
