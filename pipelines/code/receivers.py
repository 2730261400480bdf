"""What a value has: its attributes through the order of resolution, its elements, what entering it gives."""

from collections.abc import Iterator, Mapping

from pipelines.code.classes import Class, Function
from pipelines.code.modules import Binding, Found, Module, Modules, Namespace
from pipelines.code.scopes import Row
from pipelines.code.values import Value, Values, element, filled, has_variable, instances, union


class Receivers:
    """Attributes and elements of values; the evaluator of rows builds on it."""

    def __init__(self, modules: Modules) -> None:
        self.modules = modules

    def values(self, module: Module, number: int) -> Values:
        raise NotImplementedError

    def result(
        self, function: Function, receiver: Value | None, module: Module | None = None, row: Row | None = None
    ) -> Values:
        raise NotImplementedError

    def member(self, found: Found, name: str) -> Binding | Found | None:
        """Return what a name is in a module or folder."""
        if isinstance(found, Namespace):
            return self.modules.below(found, name)
        return self.modules.binding(found, name)

    # -- attributes

    def attribute(self, value: Value, name: str) -> Values:
        """Return what `.name` of a value may be, a property's result rather than the property."""
        kind = value[0]
        if kind == "instance":
            return self._of_instance(value, name)
        if kind == "class" or kind == "super":
            return self._of_class(value, name)
        if kind == "module":
            found = self.member(value[1], name)
            if isinstance(found, tuple):
                return self.values(*found)
            return (("module", found),) if found is not None else ()
        if kind == "external":
            return (("external", f"{value[1]}.{name}", ()),)
        if kind == "filled":
            return union([self.attribute(bound, name) for bound in instances(value[2])])
        if kind == "variable":
            return union([self.attribute(bound, name) for bound in value[2]])
        if kind == "function":
            return (("external", f"builtins.function.{name}", ()),)
        return (("method", value, name),)

    def find(self, value: Value, name: str) -> Iterator[tuple[Class, int]]:
        """Yield the classes, in order of resolution, whose namespace binds `name`, with the row."""
        cls: Class = value[1]
        for above in cls.mro[1:] if value[0] == "super" else cls.mro:
            number = above.names.get(name)
            if number is not None:
                yield above, number

    def _of_instance(self, value: Value, name: str) -> Values:
        cls: Class = value[1]
        for above in cls.mro:
            number = above.names.get(name)
            stored = above.attributes.get(name)
            found: Values = ()
            if number is not None:
                found = self._bound(value, above, self.values(above.module, number), number)
                if not found and above.module.rows[number][0] == "ann":
                    return ()
            if stored and not found:
                annotated = [row for row in stored if above.module.rows[row][0] == "ann"]
                found = union([self.values(above.module, row) for row in annotated or stored])
            if found:
                return filled(found, self.types(value, above)) if has_variable(found) else found
        if self._stored(cls, name):
            return ()
        if cls.container:
            return union([self.attribute(inner, name) for inner in self._container(value)])
        return (("external", f"{cls.external[0]}.{name}", ()),) if cls.external else ()

    def _stored(self, cls: Class, name: str) -> bool:
        return any(name in above.names or name in above.attributes for above in cls.mro)

    def _of_class(self, value: Value, name: str) -> Values:
        for above, number in self.find(value, name):
            found = self.values(above.module, number)
            if not found and any(base.startswith("enum.") for base in above.external):
                return (("instance", above, ()),)
            if value[0] == "super":
                return filled(self._bound(("instance", value[1], ()), above, found, number), self.types(value, above))
            return tuple(
                ("function", item[1], value) if item[0] == "function" and "class" in item[1].flags else item
                for item in found
            )
        cls: Class = value[1]
        return (("external", f"{cls.external[0]}.{name}", ()),) if cls.external else ()

    def _bound(self, receiver: Value, owner: Class, found: Values, number: int) -> Values:
        """Bind functions of a class to the receiver, and call those that are properties."""
        if not any(item[0] == "function" for item in found):
            return found
        bound: list[Values] = []
        for item in found:
            if item[0] != "function" or item[2] is not None:
                bound.append((item,))
            elif "property" in item[1].flags:
                bound.append(self.result(item[1], receiver))
            else:
                bound.append((("function", item[1], None if "static" in item[1].flags else receiver),))
        return union(bound)

    def types(self, value: Value, owner: Class) -> Mapping[str, Values]:
        """What the type variables of `owner`, a class above the value's own, are for this value."""
        cls: Class = value[1]
        arguments = value[2] if value[0] != "super" else ()
        own = dict(zip(cls.parameters, arguments or (), strict=False))
        types = own if owner is cls else {n: filled(v, own) for n, v in cls.types.get(owner, {}).items()}
        return {**types, "Self": (("class", cls, arguments or ()),)}

    # -- elements

    def each(self, values: Values) -> Values:
        """Return what iterating over values gives."""
        return union([self._each(value) for value in values])

    def _each(self, value: Value) -> Values:
        if value[0] == "instance":
            methods = [item[1] for item in self.attribute(value, "__iter__") if item[0] == "function"]
            made = union([self.result(method, value) for method in methods]) if methods else self._container(value)
            return union([element(item) for item in made])
        if value[0] == "class" and any(base.startswith("enum.") for base in value[1].external):
            return (("instance", value[1], ()),)
        if value[0] == "external":
            return (("external", f"{value[1]}[]", ()),)
        return element(value)

    def _container(self, value: Value) -> Values:
        """What an object of a class like `class A(list[B])` is, apart from an A."""
        return filled(value[1].container, self.types(value, value[1]))

    def enter(self, value: Value) -> Values:
        """Return what `with … as` binds."""
        if value[0] == "instance":
            for name in ("__enter__", "__aenter__"):
                for item in self.attribute(value, name):
                    if item[0] == "function":
                        return self.result(item[1], value)
            return (value,)
        if value[0] == "external":
            return (("external", f"{value[1]}.__enter__()", ()),)
        return element(value)
