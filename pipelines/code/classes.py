"""Classes and functions of the corpus: method resolution order, generic arguments, and where an attribute is found."""

from collections.abc import Callable, Sequence
from typing import Any

from pipelines.code.modules import Module
from pipelines.code.values import Value, Values, filled, instances, variables

Evaluate = Callable[[Module, int], Values]


class Function:
    """A function of the corpus."""

    __slots__ = ("flags", "id", "info", "module", "number")

    def __init__(self, module: Module, number: int) -> None:
        self.module = module
        self.number = number
        self.id = module.facts.symbol_id(number)
        self.info: dict[str, Any] = module.facts.functions.get(number) or _NOTHING
        self.flags: frozenset[str] = frozenset(self.info["flags"])


class Class:
    """A class of the corpus."""

    __slots__ = (
        "attributes", "container", "external", "id", "module", "mro", "names", "number", "parameters", "types",
    )  # fmt: skip

    def __init__(self, module: Module, number: int) -> None:
        info = module.facts.classes.get(number) or {"names": {}, "attributes": {}}
        self.module = module
        self.number = number
        self.id = module.facts.symbol_id(number)
        self.names: dict[str, int] = info["names"]
        self.attributes: dict[str, list[int]] = info["attributes"]
        self.mro: list[Class] = [self]
        """Classes of the corpus in the order of C3, filled in by `resolve_bases`."""
        self.external: list[str] = []
        """Dotted names of bases from outside, of any class in the order."""
        self.container: Values = ()
        """What kind of container from outside it is: of `class A(list[B])` a sequence of B."""
        self.parameters: list[str] = []
        """Type variables in the order in which arguments fill them."""
        self.types: dict[Class, dict[str, Values]] = {}
        """For each class in the order, what its type variables are in terms of this class's."""


_NOTHING: dict[str, Any] = {
    "params": [],
    "returns": 0,
    "values": [],
    "yields": [],
    "flags": [],
    "decorators": [],
}


def resolve_bases(cls: Class, evaluate: Evaluate) -> None:
    """Fill in the order of resolution of a class whose bases are resolved by `evaluate`."""
    info = cls.module.facts.classes.get(cls.number)
    bases = [base for row in (info["bases"] if info else ()) for base in evaluate(cls.module, row)]
    known = [base for base in bases if base[0] == "class" and base[1] is not cls]
    cls.mro = linearize(cls, [base[1] for base in known])
    cls.parameters = _parameters(bases)
    for base in bases:
        if base[0] == "external" and base[1] not in cls.external:
            cls.external.append(base[1])
            made = instances((base,))
            cls.container = cls.container or (made if made and made[0][0] != "external" else ())
        if base[0] == "variable" or base[0] == "function":
            cls.external.append("?")
    if info and any(not evaluate(cls.module, row) for row in info["bases"]):
        cls.external.append("?")
    for _, base, arguments in known:
        cls.external += [name for name in base.external if name not in cls.external]
        types = dict(zip(base.parameters, arguments, strict=False))
        cls.container = cls.container or filled(base.container, types)
        cls.types.setdefault(base, types)
        for above, inner in base.types.items():
            cls.types.setdefault(above, {name: filled(values, types) for name, values in inner.items()})


def _parameters(bases: Sequence[Value]) -> list[str]:
    for base in bases:
        if base[0] == "external" and base[1].rpartition(".")[2] in ("Generic", "Protocol") and base[2]:
            return list(dict.fromkeys(name for argument in base[2] for name in variables(argument)))
    arguments = [argument for base in bases if base[0] in ("class", "external") for argument in base[2]]
    return list(dict.fromkeys(name for argument in arguments for name in variables(argument)))


def linearize(cls: Class, bases: list[Class]) -> list[Class]:
    """Return the order of resolution by C3; depth first, each once, where C3 finds none (Python would refuse it)."""
    queues = [list(base.mro) for base in bases] + [list(bases)]
    order = [cls]
    while queues := [queue for queue in queues if queue]:
        for queue in queues:
            head = queue[0]
            if not any(head in other[1:] for other in queues):
                break
        else:
            return list(dict.fromkeys([cls, *(above for base in bases for above in base.mro)]))
        order.append(head)
        for queue in queues:
            if queue[0] is head:
                queue.pop(0)
    return order
