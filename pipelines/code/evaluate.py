"""Evaluating rows of expressions across files, on demand, each row once."""

import builtins
from collections.abc import Callable

from pipelines.code.calls import call_external, call_method
from pipelines.code.classes import Class, Function, resolve_bases
from pipelines.code.fixtures import fixture_of
from pipelines.code.modules import Binding, Found, Module, Modules
from pipelines.code.receivers import Receivers
from pipelines.code.scopes import NONE, Row
from pipelines.code.values import (
    Value,
    Values,
    as_class,
    element,
    filled,
    has_variable,
    instances,
    item_values,
    too_nested,
    union,
)

_BUILTINS = frozenset(dir(builtins)) | {"__file__", "__name__", "__doc__", "__path__", "__spec__", "__package__"}
_BUILDING = frozenset({"tuple", "list", "dict", "call", "lambda", "sub"})
_DEEPEST = 60
"""How many evaluations may wait for each other; a deeper one knows nothing. Rows are evaluated in order, so that
only a chain through as many files or functions gets there."""


class Evaluator(Receivers):
    """Values of the rows of all modules."""

    def __init__(self, modules: Modules) -> None:
        super().__init__(modules)
        self._depth = 0
        self._lowest = _DEEPEST
        """The outermost evaluation at work that a value asked for and did not get, because it was not done."""
        self._provisional: dict[tuple[Module, int], int] = {}
        """Rows whose values lack what such an evaluation will give, and its depth; forgotten when it is done."""
        self._operators: dict[str, Callable[[Module, Row], Values]] = {
            "unknown": _nothing, "none": _nothing, "int": _nothing, "str": _nothing, "keyword": _nothing,
            "global": self._global, "sym": self._symbol, "var": lambda module, row: self.values(module, row[2]),
            "module": self._module, "from": self._from, "attr": self._attr, "call": self._call, "sub": self._sub,
            "tuple": lambda module, row: (("tuple", tuple(self.values(module, item) for item in row[1:])),),
            "list": lambda module, row: (("sequence", self.values(module, row[1])),), "dict": self._dict,
            "or": lambda module, row: union([self.values(module, part) for part in row[1:]]),
            "iter": lambda module, row: self.each(self.values(module, row[1])),
            "enter": lambda module, row: union([self.enter(value) for value in self.values(module, row[1])]),
            "item": self._item, "narrow": self._narrow,
            "ann": lambda module, row: instances(self.values(module, row[1])),
            "param": self._param,
            "self": lambda module, row: (("instance", self.class_(module, row[1]), ()),),
            "cls": lambda module, row: (("class", self.class_(module, row[1]), ()),),
            "super": lambda module, row: (("super", self.class_(module, row[1]), None),),
            "results": self._results,
            "lambda": lambda module, row: (("callable", self.values(module, row[1])),),
        }  # fmt: skip

    def values(self, module: Module, number: int) -> Values:
        """Return what a row may be; nothing for a row that depends on itself."""
        known: Values | int | None = module.values[number]
        if isinstance(known, tuple):
            if self._provisional and (module, number) in self._provisional:
                self._lowest = min(self._lowest, self._provisional[module, number])
            return known
        if known is not None:
            self._lowest = min(self._lowest, known)
            return ()
        depth = self._depth
        if depth >= _DEEPEST:
            return ()
        before, self._lowest = self._lowest, _DEEPEST
        module.values[number] = depth
        self._depth += 1
        row = module.rows[number]
        found = self._operators[row[0]](module, row)
        self._depth = depth
        if row[0] in _BUILDING and too_nested(found):
            found = ()
        module.values[number] = found
        if self._lowest < depth:
            self._provisional[module, number] = self._lowest
        elif self._lowest == depth:
            self._forget(depth)
        self._lowest = min(before, self._lowest) if self._lowest < depth else before
        return found

    def _forget(self, depth: int) -> None:
        """Forget the values that waited for the evaluation at `depth`, which is done: they will be made anew."""
        for key in [key for key, lowest in self._provisional.items() if lowest >= depth]:
            del self._provisional[key]
            key[0].values[key[1]] = None

    # -- symbols

    def class_(self, module: Module, number: int) -> Class:
        known: Class | None = module.symbols.get(number)
        if known is None:
            known = module.symbols[number] = Class(module, number)
            resolve_bases(known, self.values)
        return known

    def function(self, module: Module, number: int) -> Function:
        known: Function | None = module.symbols.get(number)
        if known is None:
            known = module.symbols[number] = Function(module, number)
        return known

    def _symbol(self, module: Module, row: Row) -> Values:
        if module.facts.symbols[row[1]][0] == "class":
            return (("class", self.class_(module, row[1]), ()),)
        return (("function", self.function(module, row[1]), None),)

    # -- names and imports

    def _global(self, module: Module, row: Row) -> Values:
        return self.named(module, row[1])

    def named(self, module: Module, name: str) -> Values:
        """Return what a global name of a module may be."""
        found = self.modules.binding(module, name)
        if isinstance(found, tuple):
            return self.values(*found)
        if name in _BUILTINS:
            return (("external", f"builtins.{name}", ()),)
        star = self.modules.star_outside(module)
        return (("external", f"{star}.{name}", ()),) if star else ()

    def _module(self, module: Module, row: Row) -> Values:
        found = self.modules.locate(module.folder, row[1], row[2])
        if found is not None:
            return (("module", found),)
        return () if row[2] or self.modules.knows(module.folder, row[1]) else (("external", row[1], ()),)

    def _from(self, module: Module, row: Row) -> Values:
        found = self.imported(module, row)
        if isinstance(found, tuple):
            return self.values(*found)
        if found is not None:
            return (("module", found),)
        if row[2] or self.modules.knows(module.folder, row[1]):
            return ()
        return (("external", f"{row[1]}.{row[3]}", ()),)

    def imported(self, module: Module, row: Row) -> Binding | Found | None:
        """Return what a row `from` imports."""
        source = self.modules.locate(module.folder, row[1], row[2])
        if source is None:
            return None
        return self.member(source, row[3])

    # -- attributes

    def _attr(self, module: Module, row: Row) -> Values:
        base = self.values(module, row[1])
        if len(base) == 1:
            return self.attribute(base[0], row[2])
        return union([self.attribute(value, row[2]) for value in base])

    # -- calls

    def _call(self, module: Module, row: Row) -> Values:
        functions = self.values(module, row[1])
        if len(functions) == 1:
            return self.call(functions[0], module, row)
        return union([self.call(value, module, row) for value in functions])

    def call(self, value: Value, module: Module, row: Row) -> Values:
        """Return what calling a value may give; `row` is the call, whose arguments decide for some functions."""
        kind = value[0]
        if kind == "class":
            return (("instance", value[1], value[2]),)
        if kind == "function":
            return self.result(value[1], value[2], module, row)
        if kind == "instance":
            return union([
                self.result(item[1], value)
                for item in self.attribute(value, "__call__")
                if item[0] == "function"
            ])  # fmt: skip
        if kind == "callable":
            return value[1]  # type: ignore[no-any-return]
        if kind == "external":
            return call_external(self, value[1], module, row)
        if kind == "method":
            return call_method(self, value[1], value[2], module, row)
        if kind == "variable":
            return (("filled", value[1], value[2]),)
        return ()

    def result(
        self, function: Function, receiver: Value | None, module: Module | None = None, row: Row | None = None
    ) -> Values:
        """Return what a function returns when it is called on a receiver."""
        row_of = function.module.results.get(function.number)
        found = self.values(function.module, row_of) if row_of is not None else ()
        if not has_variable(found):
            return found
        types: dict[str, Values] = {}
        if receiver is not None and receiver[0] in ("class", "instance"):
            cls = self._owner(function, receiver)
            types = dict(self.types(receiver, cls)) if cls else {"Self": (("class", receiver[1], receiver[2]),)}
        if module is not None and row is not None:
            types = {**types, **self._matched(function, receiver, module, row)}
        return filled(found, types)

    def _owner(self, function: Function, receiver: Value) -> Class | None:
        parent = function.module.facts.symbols[function.number][2]
        found = function.module.symbols.get(parent)
        return found if isinstance(found, Class) and found in receiver[1].mro else None

    def _results(self, module: Module, row: Row) -> Values:
        """What a function returns, its type variables not filled in; of a fixture what it yields."""
        info = module.facts.functions[row[1]]
        fixture = "fixture" in info["flags"]
        if info["returns"] > NONE:
            found = instances(self.values(module, info["returns"]))
            return self.each(found) if fixture and info["yields"] else found
        if info["yields"]:
            each = union([self.values(module, number) for number in info["yields"]])
            return each if fixture else (("sequence", each),)
        return union([self._returned(module, number) for number in info["values"]])

    def _returned(self, module: Module, number: int) -> Values:
        """The values of a returned row; `self` and `cls(…)` stand for the receiver's own class."""
        row = module.rows[number]
        if row[0] == "self":
            return (("filled", "Self", (("class", self.class_(module, row[1]), ()),)),)
        if row[0] == "call" and module.rows[row[1]][0] == "cls":
            return (("filled", "Self", (("class", self.class_(module, module.rows[row[1]][1]), ()),)),)
        return self.values(module, number)

    def _matched(self, function: Function, receiver: Value | None, module: Module, row: Row) -> dict[str, Values]:
        """What a function's own type variables are, by its positional arguments."""
        types: dict[str, Values] = {}
        params = [param for param in function.info["params"] if param[3] == "positional"]
        for param, argument in zip(params, row[2:], strict=False):
            for wanted in self.values(function.module, param[1]):
                given = self.values(module, argument)
                if wanted[0] == "variable":
                    types.setdefault(wanted[1], as_class(given))
                elif wanted[0] == "external" and len(wanted[2]) == 1:
                    inner = wanted[2][0]
                    if inner and inner[0][0] == "variable":
                        name = wanted[1].rpartition(".")[2]
                        of = given if name in ("type", "Type") else as_class(self.each(given))
                        types.setdefault(inner[0][1], tuple(value for value in of if value[0] == "class"))
        return {name: values for name, values in types.items() if values}

    # -- containers

    def _sub(self, module: Module, row: Row) -> Values:
        return union([self._item_of(value, module, row[2]) for value in self.values(module, row[1])])

    def _item_of(self, value: Value, module: Module, index: int) -> Values:
        kind = value[0]
        key = module.rows[index]
        if kind == "class" or (kind == "external" and not value[2]):
            items = key[1:] if key[0] == "tuple" else [index]
            return ((kind, value[1], tuple(self._argument(module, item) for item in items)),)
        if kind == "tuple" and key[0] == "int" and -len(value[1]) <= key[1] < len(value[1]):
            return tuple(value[1][key[1]])
        if kind == "mapping":
            return item_values(value, key[1] if key[0] == "str" else None)
        if kind == "instance":
            if key[0] == "str" and any(base.endswith(".TypedDict") for base in value[1].external):
                return self.attribute(value, key[1])
            methods = [item[1] for item in self.attribute(value, "__getitem__") if item[0] == "function"]
            if methods:
                return union([self.result(method, value) for method in methods])
            return union([self._item_of(inner, module, index) for inner in self._container(value)])
        return element(value)

    def _argument(self, module: Module, number: int) -> Values:
        if module.rows[number] == ["unknown"]:
            return (("external", "builtins.Ellipsis", ()),)
        return self.values(module, number)

    def _dict(self, module: Module, row: Row) -> Values:
        pairs = [(row[at], self.values(module, row[at + 1])) for at in range(2, len(row), 2)]
        rest = union([values for key, values in pairs if not key])
        return (("mapping", self.values(module, row[1]), rest, tuple(pair for pair in pairs if pair[0])),)

    def _item(self, module: Module, row: Row) -> Values:
        found: list[Values] = []
        for value in self.values(module, row[1]):
            if value[0] == "tuple":
                found.append(value[1][row[2]] if row[2] < len(value[1]) else ())
            else:
                found.append(self._each(value))
        return union(found)

    def _narrow(self, module: Module, row: Row) -> Values:
        classes = instances(self.values(module, row[1]))
        before = self.values(module, row[2])
        wanted = [value[1] for value in classes if value[0] == "instance"]
        kept = tuple(value for value in before if value[0] == "instance" and any(w in value[1].mro for w in wanted))
        return kept or classes

    def _param(self, module: Module, row: Row) -> Values:
        fixture = fixture_of(self, module, row[1], row[2])
        if fixture is not None:
            return self.result(fixture, None)
        return self.values(module, row[3])


def _nothing(module: Module, row: Row) -> Values:
    return ()
