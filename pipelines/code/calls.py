"""What calls of well-known functions give: builtins, typing, functools, and the methods of containers."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from pipelines.code.modules import Module
from pipelines.code.scopes import Row
from pipelines.code.values import Value, Values, as_class, element, instances, item_values, union

if TYPE_CHECKING:
    from pipelines.code.evaluate import Evaluator

Rule = Callable[["Evaluator", Module, Row], Values]


def call_external(evaluator: "Evaluator", dotted: str, module: Module, row: Row) -> Values:
    """Return what a call of a function from outside gives; usually something just as external."""
    rule = _RULES.get(dotted) or _BY_NAME.get(dotted.rpartition(".")[2])
    found = rule(evaluator, module, row) if rule else ()
    return found or (("external", f"{dotted}()", ()),)


def _argument(evaluator: "Evaluator", module: Module, row: Row, position: int = 0) -> Values:
    if len(row) <= 2 + position or module.rows[row[2 + position]][0] == "keyword":
        return ()
    return evaluator.values(module, row[2 + position])


def _same(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return _argument(evaluator, module, row)


def _sequence(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return (("sequence", evaluator.each(_argument(evaluator, module, row))),)


def _each(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return evaluator.each(_argument(evaluator, module, row))


def _cast(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return instances(_argument(evaluator, module, row))


def _type(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return as_class(_argument(evaluator, module, row))


def _enumerate(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return (("sequence", (("tuple", ((), evaluator.each(_argument(evaluator, module, row)))),)),)


def _zip(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    items = tuple(evaluator.each(evaluator.values(module, argument)) for argument in row[2:])
    return (("sequence", (("tuple", items),)),)


def _map(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    functions = _argument(evaluator, module, row)
    return (("sequence", union([evaluator.call(value, module, ["call", row[1]]) for value in functions])),)


def _filter(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return (("sequence", evaluator.each(_argument(evaluator, module, row, 1))),)


def _super(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return tuple(("super", value[1], None) for value in _argument(evaluator, module, row) if value[0] == "class")


def _getattr(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    name = module.rows[row[3]] if len(row) > 3 else ["unknown"]
    if name[0] != "str":
        return ()
    return union([evaluator.attribute(value, name[1]) for value in _argument(evaluator, module, row)])


def _type_variable(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    name = module.rows[row[2]] if len(row) > 2 else ["unknown"]
    bounds = [module.rows[argument] for argument in row[3:] if module.rows[argument][0] == "keyword"]
    bound = union([_written(evaluator, module, keyword[2]) for keyword in bounds if keyword[1] == "bound"])
    return (("variable", name[1], bound),) if name[0] == "str" else ()


def _written(evaluator: "Evaluator", module: Module, number: int) -> Values:
    """The values of a row, or of the name that is written in a string."""
    row = module.rows[number]
    return evaluator.named(module, row[1]) if row[0] == "str" else evaluator.values(module, number)


def _enter(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    return union([evaluator.enter(value) for value in _argument(evaluator, module, row)])


def _field(evaluator: "Evaluator", module: Module, row: Row) -> Values:
    found: list[Values] = []
    for argument in row[2:]:
        keyword = module.rows[argument]
        if keyword[0] == "keyword" and keyword[1] == "default_factory":
            factories = evaluator.values(module, keyword[2])
            found += [evaluator.call(value, module, ["call", 0]) for value in factories]
        elif keyword[0] == "keyword" and keyword[1] == "default":
            found.append(evaluator.values(module, keyword[2]))
    return union(found)


_RULES: dict[str, Rule] = {
    "builtins.super": _super, "builtins.type": _type, "builtins.list": _sequence, "builtins.set": _sequence,
    "builtins.tuple": _sequence, "builtins.frozenset": _sequence, "builtins.sorted": _sequence,
    "builtins.reversed": _sequence, "builtins.iter": _sequence, "builtins.next": _each, "builtins.min": _each,
    "builtins.max": _each, "builtins.anext": _each, "builtins.enumerate": _enumerate, "builtins.zip": _zip,
    "builtins.map": _map, "builtins.filter": _filter, "builtins.getattr": _getattr, "typing.cast": _cast,
    "functools.partial": _same, "copy.copy": _same, "copy.deepcopy": _same, "weakref.proxy": _same,
    "asyncio.wait_for": _same, "asyncio.run": _same, "asyncio.shield": _same, "collections.deque": _sequence,
    "contextlib.nullcontext": lambda *call: (("sequence", _same(*call)),), "contextlib.closing": lambda *call: (
        ("sequence", _same(*call)),), "dataclasses.field": _field, "dataclasses.replace": _same,
    "functools.wraps": lambda *call: (), "functools.lru_cache": lambda *call: (),
}  # fmt: skip
_BY_NAME: dict[str, Rule] = {
    "TypeVar": _type_variable,
    "enter_context": _enter,
    "enter_async_context": _enter,
    "Field": _field,
}


def call_method(evaluator: "Evaluator", container: Value, name: str, module: Module, row: Row) -> Values:
    """Return what a method of a container gives."""
    if name == "copy":
        return (container,)
    if container[0] == "mapping":
        keys, values = container[1], item_values(container)
        if name in ("get", "pop", "setdefault"):
            wanted = module.rows[row[2]] if len(row) > 2 else ["unknown"]
            found = item_values(container, wanted[1] if wanted[0] == "str" else None)
            return union([found, _argument(evaluator, module, row, 1)])
        if name == "values":
            return (("sequence", values),)
        if name == "keys":
            return (("sequence", keys),)
        if name == "items":
            return (("sequence", (("tuple", (keys, values)),)),)
        if name == "popitem":
            return (("tuple", (keys, values)),)
    elif name in ("pop", "popleft"):
        return element(container)
    return ()
