"""What a name stands for at a point of a file: expressions as a table of rows, and one environment per scope.

A name is not looked up later by its position. While a file is walked, each scope keeps an environment (name to the row
of the value bound last), which branches copy and joins merge; a use of the name *is* that row.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

UNKNOWN = 0
"""The row of every expression that nothing is known about."""
NONE = 1
"""The row of `None`."""
_MOST_ALTERNATIVES = 32
Row = list[Any]
Environment = dict[str, int]


class Expressions:
    """The expressions of a file, each a row `[operator, operand, …]`; equal rows are one, operands are row numbers.

    >>> table = Expressions()
    >>> a, b = table.add("global", "a"), table.add("global", "b")
    >>> table.add("attr", a, "x") == table.add("attr", a, "x"), table.either([a, UNKNOWN, b, a]), table.rows[4:]
    (True, 5, [['attr', 2, 'x'], ['or', 2, 3]])
    """

    def __init__(self) -> None:
        self.rows: list[Row] = [["unknown"], ["none"]]
        self._numbers: dict[tuple[Any, ...], int] = {}

    def add(self, *row: Any) -> int:
        number = self._numbers.get(row)
        if number is None:
            number = self._numbers[row] = len(self.rows)
            self.rows.append(list(row))
        return number

    def either(self, numbers: Iterable[int]) -> int:
        """The row of a value that is one of several; what is unknown adds nothing."""
        parts: dict[int, None] = {}
        none = False
        for number in numbers:
            row = self.rows[number]
            if row[0] == "or":
                parts.update(dict.fromkeys(row[1:]))
            elif number > NONE:
                parts[number] = None
            none = none or number == NONE
        if not parts:
            return NONE if none else UNKNOWN
        return next(iter(parts)) if len(parts) == 1 else self.add("or", *list(parts)[:_MOST_ALTERNATIVES])


@dataclass(eq=False)
class Scope:
    """A module, class, function, bound lambda, or (as `inner`) a comprehension or lambda inside an expression."""

    kind: Literal["module", "class", "function", "inner"]
    symbol: int
    parent: "Scope | None" = None
    environment: Environment = field(default_factory=dict)
    bound: dict[str, list[int]] = field(default_factory=dict)
    """Every value a name of this scope was given, in order."""
    globals: set[str] = field(default_factory=set)
    nonlocals: set[str] = field(default_factory=set)
    late: dict[str, int] = field(default_factory=dict)
    """Names used where no value has reached them yet, with the row that is filled in when the scope ends."""
    dead: bool = False
    """Whether control never gets here: after return, raise, break or continue."""
    breaks: list[Environment] = field(default_factory=list)
    """Environments at the break and continue statements of the innermost loop."""
    owner: int = -1
    """Of a method: its class's symbol."""
    receiver: str = ""
    """Of a method: the name of its first parameter."""
    returns: list[int] = field(default_factory=list)
    yields: list[int] = field(default_factory=list)

    def holder(self) -> "Scope":
        """The scope that statements in this one bind names in."""
        scope = self
        while scope.kind == "inner" and scope.parent:
            scope = scope.parent
        return scope


def merged(expressions: Expressions, first: Environment, second: Environment) -> Environment:
    """Return the environment where two branches join; `first` is changed and returned."""
    if first == second:
        return first
    for name, number in second.items():
        other = first.get(name)
        if other is None:
            first[name] = number
        elif other != number:
            first[name] = expressions.either((other, number))
    return first
