"""What a model may say: a sentence or two, each with the numbers of sources that it was given, or that they lack it.

    The endpoint is `/v1/load_lora_adapter`. [1]
    It takes a POST request. [1][3]

A sentence is bounded by its words: bounded by its characters, the grammar's mask took 4 to 400 ms a token, and so 0.1.
In EBNF as xgrammar and llguidance read it.
"""

import re
from dataclasses import dataclass

NOT_IN_SOURCES = "Not in the sources."
MOST_TOKENS = 1024
"""Of an answer. Two sentences of the longest words would have more; what is cut off so is read up to its last whole
sentence."""
_WORDS, _WORD = 40, 40
_CITES = 3
_LINE = re.compile(r"(?P<sentence>\S.*?) ?(?P<cites>(?:\[\d+\] ?)+)")


class Unreadable(ValueError):
    """An answer is none."""


@dataclass(frozen=True)
class Said:
    """An answer as it is shown, and the numbers that it cites, ascending; none where the sources do not hold it."""

    text: str
    cites: tuple[int, ...]


def grammar_of(sources: int) -> str:
    """Return the grammar of answers from so many sources, which are numbered from 1.

    A word may hold a bracket (`list[int]`), but no number in one: only a citation looks like a citation.
    """
    numbers = " | ".join(f'"{n}"' for n in range(1, sources + 1))
    bracket = rf'("[" [^0-9\n\[ ] [^\n\[ ]{{0,{_WORD}}})?'
    return "\n".join(
        [
            f'root ::= cited ("\\n" cited)? | "{NOT_IN_SOURCES}"',
            f'cited ::= first (" " word){{2,{_WORDS}}} " " cite{{1,{_CITES}}}',
            rf"first ::= [A-Z`] [^\n\[ ]{{0,{_WORD}}} {bracket}",
            rf"word ::= [^\n\[ ]{{1,{_WORD}}} {bracket}",
            'cite ::= "[" number "]"',
            f"number ::= {numbers}",
        ]
    )


def read(content: str, sources: int, cut: bool = False) -> Said:
    """Return what a model said of so many sources; with `cut`, as far as its sentences are whole.

    >>> read("It is `f`. [2][2]\\nSo it says. [1]", 3)
    Said(text='It is `f`. [2]\\nSo it says. [1]', cites=(1, 2))
    >>> read("Not in the sources.", 3)
    Said(text='Not in the sources.', cites=())

    Raises:
        Unreadable: a sentence cites nothing, or what was not given.
    """
    if content.strip() == NOT_IN_SOURCES:
        return Said(NOT_IN_SOURCES, ())
    lines, cites = list[str](), set[int]()
    for line in content.strip().splitlines():
        match = _LINE.fullmatch(line.strip())
        if match is None:
            if cut and lines:
                break
            raise Unreadable(f"a sentence has no source: {line[:80]!r}")
        numbers = sorted({int(number) for number in re.findall(r"\d+", match["cites"])})
        if not all(1 <= number <= sources for number in numbers):
            raise Unreadable(f"it cites {numbers}; there are {sources} sources")
        cites.update(numbers)
        lines.append(f"{match['sentence']} {''.join(f'[{number}]' for number in numbers)}")
    if not lines:
        raise Unreadable("it is empty")
    return Said("\n".join(lines), tuple(sorted(cites)))
