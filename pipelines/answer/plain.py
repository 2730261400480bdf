"""Whether a question asks for one relation of one symbol and for nothing else: only then rows of the graph answer it.

The router (retrieve/route.py) is made for a search, where a wrong guess costs a few places of a ranking. An answer that
is nothing but rows has to be what was asked for: a condition ("on TPU"), an exception ("outside of tests"), a second
name or a "first" make another question of it, which goes to the retriever and a model.
"""

import re
from collections.abc import Collection

from pipelines.answer.names import identifiers
from pipelines.retrieve.cues import (
    ABOVE,
    BE,
    BELOW,
    CALL,
    CALLEES,
    CALLERS,
    EXTEND,
    HAVE,
    IMPORT,
    INHERIT,
    MEMBERS,
    OVERRIDE,
    TAKE,
    USE,
    USERS,
    stem,
)
from pipelines.retrieve.route import Route

OPEN = frozenset(
    """
    a an the of by from in to as which what who whom whose where list show find give name tell enumerate me all any
    every everything anything anyone there it its that these those do does did s function functions method methods class
    classes module modules file files place places symbol symbols definition definitions code codebase corpus project
    repository repo source directly direct please
    """.split()  # noqa: SIM905
)
"""Words that ask, and say what kind of thing is asked for."""
_CALLS = CALL | USE | CALLERS | CALLEES | USERS
_CLASSES = ABOVE | BELOW | INHERIT | EXTEND | MEMBERS | TAKE | {"on", "hierarchy"}
_OF = {
    "callers": _CALLS,
    "callees": _CALLS,
    "bases": _CLASSES,
    "subclasses": _CLASSES,
    "inherited": _CLASSES,
    "base_callees": _CALLS | _CLASSES,
    "base_callers": _CALLS | _CLASSES,
    "importers": IMPORT | CALLERS,
    "imports": IMPORT,
    "overrides": OVERRIDE | _CLASSES,
    "overridden": OVERRIDE | _CLASSES,
    "tests": _CALLS | {"test", "tests", "cover", "check", "verify"},
}
_BEGINNING = re.compile(r"\W*(?:and|so|then|now|ok)\b", re.IGNORECASE)
_WORD = re.compile(r"[^\W\d_]+|\d+")


def is_plain(question: str, route: Route, others: Collection[str] = ()) -> bool:
    """Whether every word of a question is its route's names, a cue of its relation, or a word that asks.

    `others` are words that may stand there beside, in lower case: the name of the corpus.

    >>> is_plain("Which functions call `f` directly?", Route("callers", ("f",), "call"))
    True
    >>> is_plain("Which functions call `f` in tests?", Route("callers", ("f",), "call"))
    False
    """
    if route.relation not in _OF:
        return False
    rest = _BEGINNING.sub(" ", question, count=1) if _BEGINNING.match(question) else question
    for name in sorted(route.names, key=len, reverse=True):
        rest = re.sub(rf"(?<![\w.]){re.escape(name)}(?:\(\))?(?![\w])", " ", rest)
    if identifiers(rest.replace("`", " ")):
        return False
    cues = _OF[route.relation]
    words = [word.lower() for word in _WORD.findall(rest)]
    allowed = OPEN | BE | HAVE | set(others) | ({"indirectly", "through", "via"} if route.indirect else set())
    return all(word in allowed or word in cues or stem(word) in cues for word in words)


def word_forms(names: Collection[str]) -> set[str]:
    """Return names in lower case, with their plurals.

    >>> sorted(word_forms(["City", "River"]))
    ['cities', 'city', 'river', 'rivers']
    """
    words = {name.lower() for name in names}
    return words | {f"{word[:-1]}ies" if word.endswith("y") else f"{word}s" for word in words}
