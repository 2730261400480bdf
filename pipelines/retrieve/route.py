"""What a question asks of the graph: which relation, in which direction, from which name.

A question is read as words with places for the names in it. A cue (a verb or noun of calling, inheriting, overriding,
importing, testing) chooses the relation; whether the name stands before or after the verb, and whether the verb is
passive, chooses the direction: "what does `f` call" and "what is called by `f`" ask for the same, "what calls `f`" and
"where is `f` called" for the opposite. No wording is listed as a whole.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple

from pipelines.retrieve.cues import (
    ABOVE,
    ASKING,
    BE,
    BELOW,
    BY,
    CALL,
    CALLEES,
    CALLERS,
    CASES,
    CLOSED,
    CODE,
    DEFINE,
    DOWNWARD,
    EXTEND,
    HAVE,
    HIERARCHY,
    IMPORT,
    INDIRECT,
    INHERIT,
    MEMBERS,
    NO_CUE,
    NO_SYMBOLS,
    NOT,
    OVERRIDE,
    SPELLINGS,
    TAKE,
    UPWARD,
    USE,
    USERS,
    plurals,
    stem,
)

Relation = Literal[
    "callers", "callees", "bases", "subclasses", "inherited", "base_callees", "base_callers",
    "tests", "importers", "imports", "overrides", "overridden", "definition",
]  # fmt: skip
OF_CLASSES = frozenset({"bases", "subclasses", "inherited"})
"""Relations that only a class has."""
_QUOTED = re.compile(r"`([^`\n]{1,200})`")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:(?:\.|::)[A-Za-z_][A-Za-z0-9_]*)*(?:\(\))?")
_TOKEN = re.compile(r"\x00\d+\x00|[A-Za-z][A-Za-z0-9]*|'s|[?.,;:]")
_LOOKS_LIKE_CODE = re.compile(r"_|\.|::|\(\)$|[a-z][A-Z]|[A-Z]{2,}[a-z]|^[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*$")


_FLOW: "dict[str, Relation]" = {
    "incoming": "callers", "upstream": "callers", "outgoing": "callees", "downstream": "callees",
}  # fmt: skip
_VERBS_UP = frozenset(map(stem, INHERIT)) | EXTEND


@dataclass(frozen=True)
class Route:
    """A typed walk to take: `names` are the identifiers it starts from, as written."""

    relation: Relation
    names: tuple[str, ...]
    cue: str
    """The word that chose the relation."""
    indirect: bool = False
    """Whether it goes through one more call."""


class Names(NamedTuple):
    """What the graph knows of names."""

    is_known: Callable[[str], bool]
    """Whether it resolves to few enough symbols to start from."""
    is_class: Callable[[str], bool]
    is_member: Callable[[str, str], bool]
    """Whether a class, by itself or by its bases, has a method of that name."""


@dataclass(frozen=True)
class _Word:
    text: str
    stem: str
    is_name: bool = False


def route(question: str, known: Names) -> Route | None:
    """Return what a question asks of the graph, or None where it names nothing known or has no cue.

    >>> names = Names(lambda name: name in ("Engine", "Engine.step"), lambda name: name == "Engine", lambda *_: False)
    >>> route("What does `Engine.step` call?", names).relation
    'callees'
    >>> route("Engine.step gets invoked from which places?", names).relation
    'callers'
    """
    normal = NO_CUE.sub(" ", question)
    for spelling, word in SPELLINGS:
        normal = spelling.sub(word, normal)
    words = _read(normal, known)
    names = list(dict.fromkeys(word.text for word in words if word.is_name))
    if not names or not _asks_for_symbols(words):
        return None
    written = " ".join("NAME" if word.is_name else word.text for word in words)  # no cue hides in a name
    found = _relation(words, names, written, known)
    if found is None:
        return None
    if found.relation in ("base_callees", "base_callers"):
        return replace(found, names=_class_and_method(names, known))
    start = found.names or tuple(names[:1])
    if found.relation in OF_CLASSES and not known.is_class(start[0]):
        below = found.relation == "subclasses" and "." in start[0]
        return replace(found, relation="overrides", names=start) if below else None
    return replace(found, names=start)


def _read(question: str, known: Names) -> list[_Word]:
    """Return the words of a question, each known name one word."""
    names: list[str] = []

    def put(name: str) -> str:
        names.append(name)
        return f" \x00{len(names) - 1}\x00 "

    def quoted(match: re.Match[str]) -> str:
        return put(match[1].strip().removesuffix("()"))

    def bare(match: re.Match[str]) -> str:
        name = match[0].removesuffix("()")
        first_word = match.start() == 0 and re.fullmatch("[A-Z][a-z]+", name)
        return match[0] if first_word or not _LOOKS_LIKE_CODE.search(match[0]) else put(name)

    text = _QUOTED.sub(quoted, question.replace("\x00", " "))
    parts = re.split(r"(\x00\d+\x00)", text)
    text = "".join(part if part.startswith("\x00") else _NAME.sub(bare, part) for part in parts)
    classes = [name for name in names if known.is_class(name) and known.is_known(name)]
    words = []
    for token in _TOKEN.findall(text):
        name = names[int(token.strip("\x00"))] if token.startswith("\x00") else token
        a_method = len(name) > 3 and name.lower() not in INHERIT and any(known.is_member(c, name) for c in classes)
        if a_method or (token.startswith("\x00") and known.is_known(name)):
            words.append(_Word(name, "", is_name=True))
        else:
            words += [_Word(word.lower(), stem(word.lower())) for word in _TOKEN.findall(name)]
    return words


def _asks_for_symbols(words: list[_Word]) -> bool:
    """Whether a set of symbols can be the answer: not so for how, why, when, yes or no, or "which setting"."""
    plain = [word.text for word in words if not word.is_name]
    for at, word in enumerate(words):
        if word.text in ("which", "what") and any(other.text in NO_SYMBOLS for other in words[at + 1 : at + 3]):
            return False
    return not plain or plain[0] not in CLOSED or not ASKING.isdisjoint(plain[1:])


def _relation(words: list[_Word], names: list[str], question: str, known: Names) -> Route | None:
    plain = {word.text for word in words if not word.is_name}
    stems = {word.stem for word in words if not word.is_name}
    call = _first(_find(words, CALLERS | CALLEES), _find(words, CALL), _owned_users(words))
    if call is None and stems & CODE:
        call = _find(words, USE)
    above = _find(words, ABOVE | INHERIT)
    upward = (
        above is not None
        or bool(plain & {"super", "extends", "subclasses"} or (len(names) > 1 and stems & OVERRIDE))
        or bool(UPWARD.search(question) and (len(names) > 1 or HIERARCHY.search(question)))
    )
    flow = _find(words, _FLOW)
    if _asks_for_tests(words):
        calls = sum(word.stem in CALL | USE for word in words if not word.is_name)
        return Route("tests", (), "tests", indirect=bool(INDIRECT.search(question)) or calls > 1)
    if call is not None and upward and _has_class_and_method(names, known):
        return _of_base(words, call if flow is None else flow, names, known)
    if flow is not None:
        return Route(_FLOW[words[flow].text], (), words[flow].text)
    override = _find(words, OVERRIDE)
    if override is not None and not _negated(words, override):
        return _by_direction(words, override, "overrides", "overridden")
    inherited = _inheritance(words, plain, question, above is not None, negated=override is not None)
    if inherited is not None and (call is None or known.is_class((inherited.names or tuple(names))[0])):
        return inherited
    if "importers" in plain:
        return Route("importers", (), "import")
    imported = _find(words, IMPORT)
    if imported is not None:
        verb = call if call is not None and words[call].stem in USE else imported
        owned = {"their", "whose"} & {word.text for word in words[max(0, imported - 2) : imported]}
        return Route("importers", (), "import") if owned else _by_direction(words, verb, "importers", "imports")
    if call is not None:
        found = _by_direction(words, call, "callers", "callees")
        if found is not None:
            further = found.relation == "callers" and INDIRECT.search(re.sub(r"(?i)\bcallers?\b", "", question))
            return replace(found, indirect=bool(further))
    defined = _find(words, DEFINE)
    asked_where = any(word.text == "where" for word in words)
    return Route("definition", (), words[defined].text) if defined is not None and asked_where else None


def _inheritance(words: list[_Word], plain: set[str], question: str, above: bool, negated: bool) -> Route | None:
    """Read what stands above or below a class, or what it has from above."""
    taken = "from" in plain and _find(words, TAKE) is not None and _find(words, ABOVE) is not None
    below = BELOW if re.search(r"(?i)\bimplement\w+ of\b", question) else BELOW - plurals("implementation")
    if (plain & MEMBERS or taken) and (above or negated) and not _find(words, below):
        return Route("inherited", (), "inherited")
    given = _find(words, {"inherited"})
    if given is not None and [w.text for w in words[given + 1 : given + 2]] in (["in"], ["by"], ["into"]):
        return Route("inherited", (), "inherited")
    down = _find(words, BELOW)
    if down is not None and words[down].text.endswith(("ed", "ing")):
        if [word.text for word in words[down + 1 : down + 2]] == ["from"]:
            return Route("bases", (), words[down].text)
        return _by_direction(words, down, "subclasses", "bases")
    if down is not None:
        named_after = any(word.is_name for word in words[down + 1 :])
        beside = {word.text for word in (*words[max(0, down - 1) : down], *words[down + 1 : down + 2])}
        is_below = not named_after and bool(beside & {"a", "an", "of", "from"})  # "X is a subclass of what"
        verb_of = words[down - 2 if down > 1 and words[down - 1].text.endswith("ly") else down - 1]
        is_verb = words[down].text == "subclasses" and verb_of.is_name and down >= len(words) - 2
        return Route("bases" if is_below or is_verb else "subclasses", (), words[down].text)
    if HIERARCHY.search(question) and (UPWARD.search(question) or DOWNWARD.search(question)):
        return Route("bases" if UPWARD.search(question) else "subclasses", (), "hierarchy")
    noun = _find(words, ABOVE)
    verb = _find(words, INHERIT)
    if noun is not None:
        of = words[noun + 1 + (words[noun + 1 :] != [] and words[noun + 1].text in ("class", "type")) :][:2]
        if of and of[0].is_name and not (of[1:] and of[1].stem in _VERBS_UP):
            return Route("subclasses", (), words[noun].text)  # "the base class NAME"
        named = next((at for at in range(noun - 1, -1, -1) if words[at].is_name), None)
        linked = {word.text for word in words[named + 1 if named is not None else noun : noun]}
        inverted = named and words[named - 1].text in BE and linked & {"the", "a", "an"}  # "is NAME the parent"
        has_it_above = bool(inverted or linked & {"as", "among", "their", "whose", "is", "are", "being"})
        has_it_above = has_it_above and not linked & ({"s", "'s"} | INHERIT)
        has_it_above = has_it_above and not (named and words[named - 1].text in ("does", "did"))
        return Route("subclasses" if has_it_above else "bases", (), words[noun].text)
    if verb is not None:
        before = any(word.is_name for word in words[:verb])
        return Route("bases" if before else "subclasses", (), words[verb].text)
    verb = _find(words, EXTEND)
    if verb is None:
        return None
    if words[verb + 1 : verb + 2] and words[verb + 1].text == "from":
        return Route("bases", (), words[verb].text)
    return _by_direction(words, verb, "subclasses", "bases")


def _has_class_and_method(names: list[str], known: Names) -> bool:
    owner, _, member = names[0].replace("::", ".").rpartition(".")
    return (len(names) > 1 and any(map(known.is_class, names)) and not all(map(known.is_class, names))) or (
        len(names) == 1 and bool(owner) and bool(member) and not known.is_class(names[0])
    )


def _class_and_method(names: list[str], known: Names) -> tuple[str, ...]:
    classes = [name for name in names if known.is_class(name)]
    others = [name for name in names if name not in classes]
    if classes and others:
        return classes[0], re.split(r"\.|::", others[0])[-1]
    owner, _, member = names[0].replace("::", ".").rpartition(".")
    return owner, member


def _of_base(words: list[_Word], call: int, names: list[str], known: Names) -> Route:
    """What a parent's method calls, unless who calls it is asked for in so many words."""
    member = next((name for name in names if not known.is_class(name)), names[0])
    at = next(place for place, word in enumerate(words) if word.is_name and word.text == member)
    between = {word.text for word in words[call + 1 : at]} if at > call else set()
    subject_is_named = call > 0 and any(word.is_name for word in words[max(0, call - 2) : call])
    acted_upon = at > call and at - call <= 3 and not between & BY and not subject_is_named
    acted_upon = acted_upon and not between & {"super", "do", "does", "did"} and words[call].text not in CALLEES
    inward = words[call].text in CALLERS or acted_upon
    return Route("base_callers" if inward else "base_callees", (), words[call].text)


def _find(words: list[_Word], wanted: Iterable[str]) -> int | None:
    """The place of the first word that is, or whose stem is, one of these."""
    cues = frozenset(wanted)
    return next((at for at, w in enumerate(words) if not w.is_name and (w.text in cues or w.stem in cues)), None)


def _first(*places: int | None) -> int | None:
    return next((place for place in places if place is not None), None)


def _owned_users(words: list[_Word]) -> int | None:
    """The place of `clients` in "clients of NAME" or "NAME's clients"."""
    for at, word in enumerate(words):
        if word.text in USERS:
            ahead = words[at + 1 : at + 4]
            behind = words[max(0, at - 2) : at]
            if (ahead and ahead[0].text == "of" and any(w.is_name for w in ahead)) or any(w.is_name for w in behind):
                return at
    return None


def _asks_for_tests(words: list[_Word]) -> bool:
    """Whether tests are asked for: `tests`, `test cases`, `which test`, but not a `test environment`."""
    for at, word in enumerate(words):
        if word.text in ("tests", "testcases", "unittests"):
            return True
        if word.text == "test":
            beside = {other.text for other in (*words[max(0, at - 1) : at], *words[at + 1 : at + 2])}
            if beside & CASES or beside & {"which", "what"}:
                return True
    return False


def _negated(words: list[_Word], at: int) -> bool:
    return not NOT.isdisjoint(word.text for word in words[max(0, at - 3) : at])


def _by_direction(words: list[_Word], verb: int, inward: Relation, outward: Relation) -> Route | None:
    """Read who acts on whom: `inward` where the name is acted upon, `outward` where it acts."""
    word = words[verb]
    subject = next((at for at in range(1, len(words)) if words[at].stem in CALL and words[at - 1].text == "it"), None)
    objects = {other.text for other in words[subject + 1 : subject + 2]} if subject else set()
    if subject and word.stem in CALL | USE and not objects & {"it", "them"}:  # "what does it call"
        named = next((other.text for other in words if other.is_name), "")
        return Route(outward, (named,), words[subject].text)
    after = next((at for at in range(verb + 1, len(words)) if words[at].is_name), None)
    before = next((at for at in range(verb - 1, -1, -1) if words[at].is_name), None)
    nearest = after if after is not None else before
    if nearest is None:
        return None
    if word.text in CALLERS | USERS or word.text in CALLEES:
        return Route(outward if word.text in CALLEES else inward, (words[nearest].text,), word.text)
    if after is not None and any(other.text in ("make", "makes") for other in words[after + 1 : after + 3]):
        return Route(outward, (words[after].text,), word.text)  # "which calls does NAME make"
    if any(other.text in ("it", "them") for other in words[verb + 1 : verb + 3]) and before is not None:
        return Route(inward, (words[before].text,), word.text)  # "… because they call it"
    asked = {other.text for other in words[before + 1 : verb]} if before is not None else set()
    if after is not None and asked & {"which", "what", "who"} and not asked & {"do", "does", "did"}:
        before = None  # "apart from OTHER, which functions call NAME"
    participle = word.text.endswith(("ed", "run", "hit", "made", "lt", "en"))
    if after is not None and (before is None or not participle):
        between = {other.text for other in words[verb + 1 : after]}
        if between & BY and "for" not in between:
            return Route(outward, (words[after].text,), word.text)
        if before is None:
            return Route(inward, (words[after].text,), word.text)
    if before is None:
        return None
    helpers = {other.text for other in (*words[max(0, verb - 4) : verb], *words[max(0, before - 2) : before])}
    passive = participle and bool(helpers & BE) and not helpers & HAVE - {"been"}
    ends_with_by = any(other.text in ("by", "from") for other in words[verb + 1 : verb + 2])
    if participle and ({"been"} & helpers or (not helpers & (BE | HAVE) and ends_with_by)):
        passive = True
    return Route(inward if passive else outward, (words[before].text,), word.text)
