"""What an expression may be at run time: values, what annotations make of them, and type variables filled in.

A value is a tuple whose first item is its kind; *values* are a tuple of alternatives, empty when nothing is known.

| kind | rest | what |
|---|---|---|
| module | Module or Namespace | a module |
| class, instance | Class, arguments | a class of the corpus, an object of it; arguments of generics |
| function | Function, receiver or None | a function, bound to the receiver |
| external | dotted name, arguments | anything from outside the corpus, or made by it |
| sequence | values | a list, set, iterator … of these |
| tuple | one values per item | |
| mapping | keys, values, ((key, values), …) | values of the keys that are not written out, and of those that are |
| callable | values | something whose call gives these |
| method | container, name | a method of a container |
| super | Class, receiver | |
| variable, filled | name, bound | a type variable as a class, as an object of it |
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pipelines.code.classes import Class

Value = tuple[Any, ...]
Values = tuple[Value, ...]
MOST = 64
"""More alternatives are not followed."""

_SEQUENCES = frozenset({
    "list", "List", "UserList", "Sequence", "MutableSequence", "Iterable", "Iterator", "Collection", "set", "Set",
    "MutableSet",
    "frozenset", "FrozenSet", "deque", "Deque", "Generator", "AsyncGenerator", "AsyncIterator", "AsyncIterable",
    "KeysView", "ValuesView", "AbstractSet", "ContextManager", "AbstractContextManager", "AsyncContextManager",
    "AbstractAsyncContextManager",
})  # fmt: skip
_MAPPINGS = frozenset({
    "dict", "Dict", "UserDict", "Mapping", "MutableMapping", "defaultdict", "DefaultDict", "OrderedDict", "ChainMap",
})  # fmt: skip
_TRANSPARENT = frozenset({
    "Annotated", "ClassVar", "Final", "Required", "NotRequired", "InitVar", "ReadOnly",
})  # fmt: skip
_LAST = frozenset({
    "Awaitable", "Coroutine", "Future", "Task",
})  # fmt: skip


def union(parts: Iterable[Values]) -> Values:
    """Return all alternatives, each once, in order.

    >>> union([(("external", "a", ()),), (), (("external", "a", ()),)])
    (('external', 'a', ()),)
    """
    found: dict[Value, None] = {}
    for values in parts:
        found.update(dict.fromkeys(values))
    return tuple(found)[:MOST]


def instances(values: Values) -> Values:
    """Return the values of what is annotated with `values`: of the class A an object of A, of list[A] a sequence."""
    if len(values) == 1:
        return _instances(values[0])
    return union(_instances(value) for value in values)


def _instances(value: Value) -> Values:
    kind = value[0]
    if kind == "class":
        return (("instance", value[1], value[2]),)
    if kind == "variable":
        return (("filled", value[1], value[2]),)
    if kind == "external":
        return _external(value[1], value[2])
    if kind == "tuple":  # isinstance(x, (A, B))
        return union(instances(item) for item in value[1])
    return ()


def _external(dotted: str, arguments: tuple[Values, ...]) -> Values:
    name = dotted.rpartition(".")[2]
    if name == "Self":
        return (("filled", "Self", ()),)
    if not arguments:
        return () if name in ("Any", "None") else (("external", dotted, ()),)
    if name in ("Optional", "Union"):
        return union(instances(argument) for argument in arguments)
    if name in _SEQUENCES:
        return (("sequence", instances(arguments[0])),)
    if name in _MAPPINGS and len(arguments) == 2:
        return (("mapping", instances(arguments[0]), instances(arguments[1]), ()),)
    if name in ("tuple", "Tuple"):
        if len(arguments) == 2 and arguments[1] == (("external", "builtins.Ellipsis", ()),):
            return (("sequence", instances(arguments[0])),)
        return (("tuple", tuple(instances(argument) for argument in arguments)),)
    if name in ("type", "Type"):
        return arguments[0]
    if name in _TRANSPARENT:
        return instances(arguments[0])
    if name in _LAST:
        return instances(arguments[-1])
    if name == "Callable":
        return (("callable", instances(arguments[-1])),)
    return (("external", dotted, ()),)


def has_variable(values: Values) -> bool:
    """Whether a type variable is anywhere in the values."""
    for value in values:
        kind = value[0]
        if kind in ("variable", "filled"):
            return True
        if kind in ("class", "instance", "external"):
            if value[2] and any(has_variable(argument) for argument in value[2]):
                return True
        elif kind in ("sequence", "callable"):
            if has_variable(value[1]):
                return True
        elif kind == "tuple":
            if any(has_variable(item) for item in value[1]):
                return True
        elif kind == "mapping" and (has_variable(value[1]) or has_variable(value[2])):
            return True
    return False


def filled(values: Values, types: Mapping[str, Values]) -> Values:
    """Return the values with type variables replaced by the classes in `types`; those not there stay."""
    if not types or not has_variable(values):
        return values
    return union(_filled(value, types) for value in values)


def _filled(value: Value, types: Mapping[str, Values]) -> Values:
    kind = value[0]
    if kind == "variable":
        return types.get(value[1], (value,))
    if kind == "filled":
        return instances(types[value[1]]) if value[1] in types else (value,)
    if kind in ("class", "instance", "external"):
        return ((kind, value[1], tuple(filled(argument, types) for argument in value[2])),)
    if kind in ("sequence", "callable"):
        return ((kind, filled(value[1], types)),)
    if kind == "tuple":
        return ((kind, tuple(filled(item, types) for item in value[1])),)
    if kind == "mapping":
        return ((kind, filled(value[1], types), filled(value[2], types), value[3]),)
    return (value,)


def variables(values: Values) -> list[str]:
    """Return the names of the type variables in class-level values, in order of appearance."""
    names: dict[str, None] = {}
    pending = list(reversed(values))
    while pending:
        value = pending.pop()
        if value[0] == "variable":
            names[value[1]] = None
        elif value[0] in ("class", "external"):
            pending.extend(part for argument in reversed(value[2]) for part in reversed(argument))
    return list(names)


def too_nested(values: Values, most: int = 5) -> bool:
    """Whether containers are inside each other more than `most` deep: what is in there is not worth its size."""
    for value in values:
        kind = value[0]
        if kind in ("sequence", "callable"):
            parts = value[1:]
        elif kind == "tuple":
            parts = value[1]
        elif kind == "mapping":
            parts = (*value[1:3], *(values for _, values in value[3]))
        else:
            parts = value[2] if kind in ("class", "instance", "external") else ()
        if parts and (most == 0 or any(too_nested(part, most - 1) for part in parts)):
            return True
    return False


def item_values(mapping: Value, key: str | None = None) -> Values:
    """Return what a mapping has under a key; under any where the key is not known or not among those written out."""
    if key is not None:
        for name, values in mapping[3]:
            if name == key:
                return values  # type: ignore[no-any-return]
    return union([mapping[2], *(values for _, values in mapping[3])])


def element(value: Value) -> Values:
    """Return what iterating over a container gives, or entering a context that was made by a generator."""
    kind = value[0]
    if kind == "sequence" or kind == "mapping":
        return value[1]  # type: ignore[no-any-return]
    if kind == "tuple":
        return union(value[1])
    return ()


def as_class(values: Values) -> Values:
    """Return the classes of objects."""
    return tuple(
        ("class", value[1], value[2]) if value[0] == "instance" else ("variable", value[1], value[2])
        for value in values
        if value[0] in ("instance", "filled")
    )


def class_of(value: Value) -> "Class | None":
    return value[1] if value[0] in ("class", "instance", "super") else None
