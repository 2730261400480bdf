"""Names in a text: which strings of a chunk a model may be asked about, and where they stand."""

import keyword
import re
from collections import Counter
from collections.abc import Iterator

VERSION = 1
"""Raise it when the same text gives other names: it is part of every request's key."""
MOST = 64
_LONGEST = 80
_TICKED = re.compile(r"`([^`\n]{2,80})`")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORD = re.compile(r"(?<!\w)[^\W\d_](?:[\w+#-]*[\w+#])?")
_LONGEST_SPAN = 4
_JUNK = {"self", "cls", "args", "kwargs", *(word.lower() for word in keyword.kwlist)}
_SENTENCE_STARTS = """
a an and are as at be but by can do for from has have how if in is it its no not note of on or see so such that
the their then there these they this those to todo use we what when where which while who why will with you your
"""
_OPENERS = set(_SENTENCE_STARTS.split())


def is_junk(name: str) -> bool:
    """Whether a string names nothing: a keyword, self, a lone lower-case letter, a number, or unprintable.

    >>> [is_junk(name) for name in ("self", "x", "C", "C++", "42", "LLMEngine")]
    [True, True, False, False, True, False]
    """
    return (
        not 0 < len(name) <= _LONGEST
        or not name.isprintable()
        or name.lower() in _JUNK
        or (len(name) == 1 and not name.isupper())
        or not any(character.isalpha() for character in name)
    )


def find_name(text: str, name: str) -> list[int]:
    """Return where `name` stands in `text` as a whole word, as it is written: offsets in characters.

    >>> find_name("Beta, not AlphaBeta: `Beta`", "Beta")
    [0, 22]
    """
    found: list[int] = []
    at = text.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        opens = at == 0 or not (_is_word(name[0]) and _is_word(text[at - 1]))
        if opens and (end == len(text) or not (_is_word(name[-1]) and _is_word(text[end]))):
            found.append(at)
        at = text.find(name, at + 1)
    return found


def names_in(text: str) -> list[str]:
    """Return the names that a text offers, at most `MOST` (the most frequent), in the order of their first place.

    >>> names_in("The `LoRAManager` of vLLM calls load_adapter; see Punica Kernels.")
    ['LoRAManager', 'vLLM', 'load_adapter', 'Punica Kernels']
    """
    found: dict[str, int] = {}
    counts: Counter[str] = Counter()

    def offer(name: str, place: int) -> None:
        counts[name] += 1
        if counts[name] == 1:
            found[name] = place

    for match in _TICKED.finditer(text):
        offer(match[1].strip().removesuffix("()"), match.start(1))
    for match in _IDENTIFIER.finditer(text):
        if _is_identifier(match[0]):
            offer(match[0], match.start())
    for start, end in _capitalised(text):
        offer(text[start:end], start)
    names = [name for name in found if not is_junk(name)]
    names.sort(key=lambda name: (-counts[name], found[name], name))
    return sorted(names[:MOST], key=lambda name: (found[name], name))


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def _is_identifier(word: str) -> bool:
    """Whether a word of a text is written as code is: with an underscore, a dot, or a capital inside."""
    return "_" in word.strip("_") or "." in word or word[1:] != word[1:].lower()


def _capitalised(text: str) -> Iterator[tuple[int, int]]:
    """Yield spans of up to four capitalised words in a row, but for the words that open sentences.

    >>> [("The Quick Fox saw London")[start:end] for start, end in _capitalised("The Quick Fox saw London")]
    ['Quick Fox', 'London']
    """
    start = end = words = 0
    for match in _WORD.finditer(text):
        if not match[0][0].isupper() or match[0].lower() in _OPENERS:
            continue
        if words and words < _LONGEST_SPAN and text[end : match.start()] == " ":
            words += 1
        else:
            if words:
                yield start, end
            start, words = match.start(), 1
        end = match.end()
    if words:
        yield start, end
