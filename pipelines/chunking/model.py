"""What the parsers of a file return."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Unit:
    """A structural piece of a file: `text[start:end]`, neither blank nor, if it can be helped, above the cap."""

    start: int
    end: int
    kind: Literal["function", "class", "section", "code", "window"]
    symbol: str = ""
    """The qualified name of the definition that it is, or is a part of."""
    trail: tuple[str, ...] = ()
    """`Class.method`, or `H1 > H2` of each heading in it."""


@dataclass(frozen=True)
class Entry:
    """A definition or heading, however small or nested, with its exact span."""

    kind: Literal["function", "class", "heading"]
    name: str
    """`__qualname__`, or the heading's path `H1 > H2`."""
    title: str
    """The bare name or heading."""
    level: int
    """Depth of nesting, 1 for the outermost."""
    start: int
    end: int
    """Of a definition: from its first decorator to the end of its body. Of a heading: to the end of its section."""
    name_line: int
    """The line of the name itself."""


@dataclass(frozen=True)
class Parsed:
    """Units in order, entries by start, and why the format's own parser was not used ("" if it was)."""

    parser: Literal["python", "markdown", "sections", "windows"]
    units: list[Unit]
    outline: list[Entry]
    problem: str = ""
