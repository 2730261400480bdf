"""What a module exports without binding it: `__all__`, and names that its `__getattr__` imports when asked."""

import ast
from collections.abc import Iterator


def exported_names(tree: ast.Module) -> list[str] | None:
    """Return `__all__` where each part of it is written out as strings, else None.

    >>> exported_names(ast.parse("__all__ = ['a']\\n__all__ += ['b']"))
    ['a', 'b']
    """
    names: list[str] | None = None
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "__all__":
            value = getattr(node, "value", None)
            if not isinstance(value, ast.List | ast.Tuple):
                return None
            names = [*(names or []), *(item.value for item in value.elts if _is_string(item))]  # type: ignore[attr-defined]
    return names


def lazy_names(tree: ast.Module, text: str) -> dict[str, list[list[str]]]:
    """Return {name: [[module, attribute], …]} of what a module-level `__getattr__` may give, candidates only.

    They are the imports in its body, and, as libraries do by convention, tables of strings at module level:
    `{"Name": ".module:Name"}`, `{"Name": ".module"}`, `{"Name": (".module", "Name")}` or `{"module": ["Name"]}`.
    """
    found: dict[str, list[list[str]]] = {}
    if "__getattr__" not in text and "_LazyModule" not in text:
        return found
    hooks = [
        node for node in _statements(tree.body) if isinstance(node, ast.FunctionDef) and node.name == "__getattr__"
    ]
    if not hooks and "_LazyModule" not in text:
        return found
    for hook in hooks:
        for node in ast.walk(hook):
            if isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    source = "." * node.level + (node.module or "")
                    found.setdefault(alias.asname or alias.name, []).append([source, alias.name])
    for statement in _statements(tree.body):
        value = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign | ast.AnnAssign) and isinstance(value, ast.Dict):
            for key, item in zip(value.keys, value.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    for name, target in _entry(key.value, item):
                        found.setdefault(name, []).append(target)
    return found


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    pending = list(reversed(body))
    while pending:
        node = pending.pop()
        yield node
        if isinstance(node, ast.If | ast.Try):
            pending.extend(reversed([*node.body, *node.orelse]))


def _entry(key: str, item: ast.expr) -> Iterator[tuple[str, list[str]]]:
    if isinstance(item, ast.Constant) and isinstance(item.value, str):
        module, _, attribute = item.value.partition(":")
        yield key, [module, attribute or key]
    elif isinstance(item, ast.Tuple) and len(item.elts) == 2 and all(_is_string(part) for part in item.elts):
        yield key, [part.value for part in item.elts]  # type: ignore[attr-defined]
    elif isinstance(item, ast.List):
        for part in item.elts:
            if _is_string(part):
                yield part.value, [f".{key}", part.value]  # type: ignore[attr-defined]


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)
