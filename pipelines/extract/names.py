"""Names in a text: which strings of a chunk a model may be asked about, and where they stand.

Everything here is read off the surface of the text alone; what a parser knows of it plays no part, so that a model's
answers can be judged against the parser's.
"""

import builtins
import keyword
import re
from collections import Counter
from collections.abc import Iterator

VERSION = 2
"""Raise it when the same text gives other names: it is part of every request's key."""
MOST = 32
_LONGEST = 60
_TITLE_WORDS = 6
_MARKED = 2
"""What a mark (code, a link, a heading, a definition) counts for beside one more mention."""

_TICKED = re.compile(r"`([^`\n]{2,80})`")
_TARGETED = re.compile(r"(.{2,60}?) <([^<>\s]+)>$")
_LINK = re.compile(r"\[([^\[\]\n]{2,80})\]\(\s*<?([^()\s>]+)")
_STRONG = re.compile(r"\*\*([^*\n]{2,60})\*\*")
_HEADING = re.compile(
    r"(?:\A|(?<=\n\n))#{1,6}[ \t]+([^\n]+?)[ \t]*#*[ \t]*(?=\n\s*\n|\s*\Z)"  # a lone line: a comment in code is none
    r"|(?:\A|(?<=\n\n))([^\s#`|][^\n]{1,78})\n[=\-~^]{3,}[ \t]*(?=\n|\Z)"
)
_DEFINED = re.compile(r"\b(?:def|class|import|from|struct|enum|interface|trait|func|fn|function)[ \t]+([^\W\d][\w.]*)")
_CALLED = re.compile(r"(?<![\w.])([^\W\d]\w{2,})\((?!s\))")
_IDENTIFIER = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)*")
_WORD = re.compile(r"(?<!\w)[^\W\d_](?:[\w+#-]*[\w+#])?")
_TERM = re.compile(r"(?<![\w./-])([a-z]{4,20})(?= ([a-z]{4,20})(?![\w/(=-]))")
_LONGEST_SPAN = 4
_LONGER = ("++", "#")
"""What makes another name of a capitalised one: C, C++ and C# are three."""
_JUNK = {"self", "cls", "args", "kwargs", "e.g", "i.e", *(word.lower() for word in keyword.kwlist)}
_BUILT_IN = {name for name in dir(builtins) if name.islower()}
_FUNCTION_WORDS = """
a about above after all also an and any are as at be because been before being below between both but by can could
currently default do does due during each either even every example first following for from given has have here how
if in into is it its just last like made make makes many more most must need needs next no not note of on once
one only or other otherwise over per please same see several should since so some special such supports
than that the their them then there these they this those through to todo too under unless until use used uses using
very via want was we well were what when where which while who why will with without would yes you your
"""
_OPENERS = set(_FUNCTION_WORDS.split())
_NO_TERM = _OPENERS | set(keyword.kwlist)


def is_junk(name: str) -> bool:
    """Whether a string names nothing: a keyword, self, a lone small letter, a number, a web address, or unprintable.

    >>> [is_junk(name) for name in ("self", "x", "C", "C++", "42", "LLMEngine")]
    [True, True, False, False, True, False]
    """
    return (
        not 0 < len(name) <= _LONGEST
        or not name.isprintable()
        or name != name.strip()
        or "://" in name
        or name.lower() in _JUNK
        or (len(name) == 1 and not name.isupper())
        or not any(character.isalpha() for character in name)
    )


def find_name(text: str, name: str) -> list[int]:
    """Return where `name` stands in `text` as a whole word, as it is written: offsets in characters.

    >>> find_name("Beta, not AlphaBeta: `Beta`", "Beta"), find_name("C++, C# and C", "C")
    ([0, 22], [12])
    """
    found: list[int] = []
    at = text.find(name) if name else -1
    while at >= 0:
        end = at + len(name)
        opens = at == 0 or not (_is_word(name[0]) and _is_word(text[at - 1]))
        closes = end == len(text) or not (_is_word(name[-1]) and _is_word(text[end]))
        if opens and closes and not (name[0].isupper() and text.startswith(_LONGER, end)):
            found.append(at)
        at = text.find(name, at + 1)
    return found


def ranked_names(text: str) -> list[tuple[int, str]]:
    """Return (first place, name) of the names that a text offers, the most salient first, at most `MOST`.

    Salient is what is often named, or marked: as code, by a link, in a heading, by its definition.

    >>> ranked_names("Of vLLM, the `LoRAManager` calls load_adapter; see [the kernels](punica.md).")
    [(14, 'LoRAManager'), (65, 'punica.md'), (52, 'the kernels'), (3, 'vLLM'), (33, 'load_adapter')]
    """
    first: dict[str, int] = {}
    weights: Counter[str] = Counter()
    for name, place, weight in _offers(text):
        weights[name] += weight
        first[name] = min(place, first.get(name, place))
    names = [name for name in first if not is_junk(name) and find_name(text, name)]
    names.sort(key=lambda name: (-weights[name], first[name], name))
    return [(first[name], name) for name in names[:MOST]]


def _offers(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield (name, place, weight): marked names, identifiers, capitalised spans, and terms that recur."""
    for match in _TICKED.finditer(text):
        inside = match[1].strip()
        if targeted := _TARGETED.match(inside):
            yield targeted[1].strip(), match.start(1), _MARKED
            yield _target(targeted[2]), match.start(1), _MARKED
        else:
            yield inside.removesuffix("()"), match.start(1), _MARKED
    for match in _LINK.finditer(text):
        yield match[1].strip().strip("`*_"), match.start(1), _MARKED
        yield _target(match[2]), match.start(2), _MARKED
    for match in _STRONG.finditer(text):
        yield match[1].strip().strip("`_:. "), match.start(1), _MARKED
    for match in _HEADING.finditer(text):
        title = (match[1] or match[2]).strip().strip("`*_")
        if len(title.split()) <= _TITLE_WORDS:
            yield title, match.start(match.lastindex or 0), _MARKED
    for match in _DEFINED.finditer(text):
        yield match[1].strip("."), match.start(1), _MARKED
    for match in _CALLED.finditer(text):
        if match[1] not in _BUILT_IN:
            yield match[1], match.start(1), 1
    for match in _IDENTIFIER.finditer(text):
        name = match[0].removeprefix("self.").removeprefix("cls.")
        if is_identifier(name):
            yield name, match.end() - len(name), 1
    for start, end in _capitalised(text):
        yield text[start:end], start, 1
    terms = Counter[str]()
    for match in _TERM.finditer(text):
        if match[1] not in _NO_TERM and match[2] not in _NO_TERM:
            term = f"{match[1]} {match[2]}"
            terms[term] += 1
            if terms[term] == 2:
                yield term, text.index(term), 2


def _target(link: str) -> str:
    """What a link leads to inside the project, without its anchor; "" for an address of the web."""
    return "" if "://" in link or link.startswith(("mailto:", "#")) else link.partition("#")[0].removeprefix("./")


def _is_word(character: str) -> bool:
    return character.isalnum() or character == "_"


def is_identifier(word: str) -> bool:
    """Whether a word of a text is written as code is: with an underscore, a dot, or a capital inside."""
    return "_" in word.strip("_") or "." in word or word[1:] != word[1:].lower()


def _capitalised(text: str) -> Iterator[tuple[int, int]]:
    """Yield spans of up to four capitalised words in a row, but for the words that open sentences.

    A lone capital that stands as a variable does in code is none: `T = TypeVar`, `dict[K, V]`.

    >>> [("The Quick Fox saw London")[start:end] for start, end in _capitalised("The Quick Fox saw London")]
    ['Quick Fox', 'London']
    """
    start = end = words = 0
    for match in _WORD.finditer(text):
        if not match[0][0].isupper() or match[0].lower() in _OPENERS or _is_variable(text, match):
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


def _is_variable(text: str, match: re.Match[str]) -> bool:
    if len(match[0]) > 1:
        return False
    before, after = text[: match.start()].rstrip(" ")[-1:], text[match.end() :].lstrip(" ")[:1]
    return after in ("=", "[", "]", "(", ":", ")") or before in ("[", "(", "=", ":") or text[match.end() :][:1] == "."
