"""The words that questions about structure are asked with: verbs by their stem, nouns as written."""

import re

import Stemmer

stem = Stemmer.Stemmer("english").stemWord


def _words(words: str) -> frozenset[str]:
    return frozenset(words.split())


def _stems(words: str) -> frozenset[str]:
    return frozenset(stem(word) for word in words.split())


def plurals(words: str) -> frozenset[str]:
    return frozenset(form for word in words.split() for form in (word, f"{word}s"))


CALL = _stems("call invoke trigger execute dispatch delegate hand")
USE = _stems(
    "use utilize utilise depend rely consume reference run employ need reach leverage exercise hit enter touch "
    "land lead"
)
"""Verbs of calling only where the question is about code: who, places, functions …"""
CODE = _stems(
    "function method code caller routine helper place place spot site symbol callable procedure module class who where "
    "definition piece part else directly indirectly subroutine entry everything"
)
CALLERS = plurals("caller invoker usage callsite")
CALLEES = plurals("callee") | {"dependency", "dependencies"}
USERS = plurals("user consumer client dependent dependant")
"""Callers only as "clients of NAME" or "NAME's clients"."""
ABOVE = plurals("base parent superclass ancestor supertype super mixin baseclass father mother") | {"superclasses"}
BELOW = plurals(
    "subclass child descendant implementation implementor implementer heir specialization specialisation subtype "
    "successor offspring inheritor"
) | {"subclasses", "children"}
INHERIT = _words(
    "inherit inherits inherited inheriting inheritance derive derives derived deriving descend descends "
    "descended descending based build builds built building stem stems"
)
"""Verbs with "from" or "on", whose passive means the same as the active."""
TAKE = _stems("get take receive acquire obtain gain adopt")
EXTEND = _stems("extend subclass implement specialize specialise")
MEMBERS = plurals("method member function behaviour behavior attribute implementation version")
IMPORT = _stems("import")
OVERRIDE = _stems("override overrides overridden reimplement redefine overwrite overwritten shadow customise customize")
DEFINE = frozenset({"defined", "definition", "declared", "implemented"})

NOT = _words("not without minus except never t unless non")
BY = _words("by in inside within from throughout during under when while")
BE = _words("is are was were be been being get gets got gotten getting")
HAVE = _words("has have had having")
ASKING = _words(
    "which what who whom whose where list show find any anything anyone anybody anywhere somewhere every all "
    "many give tell enumerate name collect everything look"
)
CLOSED = _words(
    "how why when is are was do does did can could should would will has have must may might am write explain describe"
)
"""Openers of questions that ask for no set of symbols, unless a word of ASKING follows."""
NO_SYMBOLS = plurals("setting variable flag option parameter argument version value exception error")
"""What "which …" may ask for that is no symbol."""
INDIRECT = re.compile(
    r"indirect|transitiv|(?:one|single) (?:call|hop|step|level)\b|once removed|two (?:calls|hops|steps|levels)|"
    r"second[- ]hand|at one remove|through (?:a|an|one|some|its|another|other)|via\b|by way of|intermedia|"
    r"another function|exactly one|by means of|between them|in between|not directly|"
    r"without (?:calling|touching|invoking) it directly|\bcallers?\b|"
    r"in turn|under test|middle",
    re.IGNORECASE,
)
NO_CUE = re.compile(
    r"(?:are|is) (?:they|it|these|those) called|called that|so[- ]called|call(?:ed)? stack|"
    r"(?:system|network|api|http|rpc|tool) calls?|function[- ]call(?!s)|"
    r"\b(?:code|data|knowledge|user) base\b|base (?:models?|urls?|images?|paths?|learning|director\w+|address|case)\b|"
    r"usage examples?|example usages?|"
    r"(?:older|newer|old|new|current|previous|original|reference|default) implementation|"
    r"import (?:path|error|time|cost|hook|cycle|format)s?|user[- ]defined|(?:one|single|each|per) call\b(?! away)",
    re.IGNORECASE,
)
"""Words of the cues that mean something else."""
SPELLINGS = (
    (re.compile(r"\bcall[- ]?sites?\b", re.IGNORECASE), "callsites"),
    (re.compile(r"\b(sub|super)[- ](class|type)", re.IGNORECASE), r"\1\2"),
    (
        re.compile(r"\b(?:derived|inheriting|descending|extending|deriving) (?:class|type)(?:es|s)?\b", re.I),
        "subclasses",
    ),
    (
        re.compile(r"\b(?:own|different|other) (?:version|implementation|copy|variant|one)s?\b", re.IGNORECASE),
        "overrides",
    ),
    (re.compile(r"\b(?:with|define|have) their own\b", re.IGNORECASE), "overrides"),
    (re.compile(r"\b(?:pass|hand)(?:ed|es|s)? (?:down|on)\b", re.IGNORECASE), "inherited"),
    (re.compile(r"\bimport (?:statement|line)s?\b", re.IGNORECASE), "importers"),
)
"""Ways to write a cue, and the one word that the rules know."""
CASES = plurals("function case file suite method module")
HIERARCHY = re.compile(r"hierarch|inherit|class (?:tree|diagram)|\bmro\b", re.IGNORECASE)
UPWARD = re.compile(r"\b(?:up|above|upwards?|higher|ancest)", re.IGNORECASE)
DOWNWARD = re.compile(r"\b(?:down|below|beneath|downwards?|lower|underneath)", re.IGNORECASE)
