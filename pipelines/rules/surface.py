"""What the surface of a piece of Python shows without a parser: definitions by their indentation, bases, and calls.

It knows the text alone, no symbol table: it is what a model's answers about code are compared with.
"""

import builtins
import re
from dataclasses import dataclass, field

_DEFINED = re.compile(r"([ \t]*)(?:async[ \t]+)?(def|class)[ \t]+([A-Za-z_]\w*)[ \t]*(\(([^()]*)\))?")
_CALLED = re.compile(r"(?<![\w.])(self\.|cls\.)?([A-Za-z_]\w*)\(")
_STRING = re.compile(r"(\"\"\"|''').*?(?:\1|\Z)|\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|#[^\n]*", re.DOTALL)
_BUILT_IN = frozenset(dir(builtins)) | {
    "super",
    "def",
    "class",
    "if",
    "elif",
    "while",
    "return",
    "and",
    "or",
    "not",
    "in",
}
_NEVER = frozenset({"object", "ABC", "Enum", "Protocol", "Generic", "Exception"})


@dataclass
class Surface:
    """Types by name, and (source, relation, target)."""

    types: dict[str, str] = field(default_factory=dict)
    edges: set[tuple[str, str, str]] = field(default_factory=set)


def read_surface(text: str) -> Surface:
    """Return what a piece of Python shows; where it begins within a definition, that is not known.

    A call counts of `self`, of a name that the text defines, and of one that is written as code is.

    >>> found = read_surface("class A(B):\\n    def f(self):\\n        return self.g(run_it())\\n")
    >>> sorted(found.edges)
    [('A', 'INHERITS_FROM', 'B'), ('f', 'CALLS', 'g'), ('f', 'CALLS', 'run_it'), ('f', 'DEFINED_IN', 'A')]
    """
    found = Surface()
    plain = _STRING.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    own = {match[3]: match[2] for line in plain.splitlines() if (match := _DEFINED.match(line))}
    inside: list[tuple[int, str]] = []
    for line in plain.splitlines():
        if not line.strip():
            continue
        indent = len(line) - len(line.lstrip())
        while inside and indent <= inside[-1][0] and not line.lstrip().startswith((")", "]", "}")):
            inside.pop()
        if match := _DEFINED.match(line):
            _define(found, match, inside[-1][1] if inside else "")
            inside.append((indent, match[3]))
            line = line[match.end(3) :] if match[2] == "def" else ""
        source = inside[-1][1] if inside else ""
        for match in _CALLED.finditer(line) if source else ():
            _call(found, source, match[2], bool(match[1]), own)
    return found


def _define(found: Surface, match: re.Match[str], outer: str) -> None:
    name = match[3]
    found.types[name] = "Class" if match[2] == "class" else "Function"
    if outer:
        found.edges.add((name, "DEFINED_IN", outer))
    if match[2] == "class":
        for base in (match[5] or "").split(","):
            last = base.partition("[")[0].strip().rpartition(".")[2]
            if last.isidentifier() and "=" not in base and last not in _NEVER:
                found.types.setdefault(last, "Class")
                found.edges.add((name, "INHERITS_FROM", last))


def _call(found: Surface, source: str, name: str, of_self: bool, own: dict[str, str]) -> None:
    is_class = bool(re.search(r"[a-z]", name)) and name[0].isupper()
    if name in _BUILT_IN or name == source or not (of_self or name in own or is_class or "_" in name.strip("_")):
        return
    found.types.setdefault(name, "Class" if own.get(name) == "class" or (is_class and name not in own) else "Function")
    found.edges.add((source, "CALLS", name))
