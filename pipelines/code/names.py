"""What a name stands for where it is used: Python's rules of scope."""

from typing import Any

from pipelines.code.scopes import NONE, Expressions, Scope


class NameWalker:
    """Looks names up in the scope at work and in those around it."""

    def __init__(self) -> None:
        self.expressions = Expressions()
        self.module = Scope("module", 0)
        self.scope = self.module

    def load(self, name: str) -> int:
        """Return the row that a name stands for here."""
        scope = self.scope
        while scope.kind == "inner":
            if name in scope.environment:
                return scope.environment[name]
            assert scope.parent
            scope = scope.parent
        number = scope.environment.get(name)
        if scope.kind == "function" and name not in scope.globals:
            if number is None and name in scope.nonlocals:
                return self.free(scope, name)
            if number is None or (number == NONE and len(scope.bound.get(name, ())) > 0):
                return self._late(scope, name)  # bound further down: in a loop, or never, and then it is not local
            return number
        if number is not None:
            return number
        return self.free(scope, name)

    def _late(self, scope: Scope, name: str) -> int:
        number = scope.late.get(name)
        if number is None:
            number = scope.late[name] = len(self.expressions.rows)
            self.expressions.rows.append(["late"])
        return number

    def fill_late(self, scope: Scope) -> None:
        """Fill in, at the end of a function, the names that were used before they were bound in it."""
        for name, number in scope.late.items():
            values = scope.bound.get(name)
            self.expressions.rows[number][:] = ["or", *values] if values else self._copy(self.free(scope, name))

    def _copy(self, number: int) -> list[Any]:
        row = self.expressions.rows[number]
        return ["or", number] if row[0] not in ("global", "sym") else list(row)

    def free(self, scope: Scope, name: str) -> int:
        """The row of a name that `scope` does not bind: of a function around it, else of the module."""
        outer = scope.parent
        while outer is not None and outer.kind != "module":
            if outer.kind != "class" and name in outer.environment:
                return outer.environment[name]
            if outer.kind == "function" and name in outer.bound:
                return self.expressions.either(outer.bound[name])
            outer = outer.parent
        if scope.kind == "class" and self.module.environment.get(name) is not None and self._in_module_body(scope):
            return self.module.environment[name]
        return self.expressions.add("global", name)

    def _in_module_body(self, scope: Scope) -> bool:
        while scope.kind == "class" and scope.parent:
            scope = scope.parent
        return scope.kind == "module"
