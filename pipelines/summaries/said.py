"""What a model may say of numbered facts: a title, and one to three sentences that name things and cite facts.

    Loading of adapters
    The class `LoRAModelManager` keeps and activates what `LoRAModel` loads. [3][7]

Names stand between backticks, and are those of the facts; all other words are plain. A sentence is bounded by its
words: in EBNF as xgrammar and llguidance read it, the mask takes .14 ms a token, and compiling 20 ms with 50 names.
(With words that may have a hyphen between two bounded halves the mask took 11 ms.)
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pipelines.answer.names import unsupported
from pipelines.extract.answer import InvalidAnswer
from pipelines.extract.grammar import literal

_LETTERS = 16
_TITLE, _BEFORE, _AFTER, _NAMES, _CITES, _SENTENCES = 6, 6, 6, 3, 3, 3
"""Words of a title after its first, and of a sentence before its first name and after each; names, citations, sentences
at most."""
_FACT = re.compile(r"^(\d+)\. (.*)$", re.MULTILINE)
_NAME = re.compile(r"`([^`\n]+)`")
_SENTENCE = re.compile(r"(?P<text>\S.*\.) (?P<cites>(?:\[\d+\])+)")


@dataclass(frozen=True)
class Sentence:
    """Its words, and the numbers of the facts that it cites, ascending."""

    text: str
    cites: tuple[int, ...]


@dataclass(frozen=True)
class Said:
    """A summary, at least one sentence of which is grounded."""

    title: str
    sentences: tuple[Sentence, ...]
    dropped: int = 0
    moved: int = 0


def written(facts: Iterable[str]) -> str:
    """Return facts as a model is shown them.

    >>> written(["`A` calls `B`", "`B` calls `C`"])
    '1. `A` calls `B`\\n2. `B` calls `C`'
    """
    return "\n".join(f"{number}. {fact}" for number, fact in enumerate(facts, 1))


def names_in(text: str) -> list[str]:
    """Return the names of written facts, each once, in their order."""
    return list(dict.fromkeys(_NAME.findall(text)))


def grammar_of(text: str) -> str:
    """Return the grammar of summaries of written facts, which name something."""
    numbers = " | ".join(f'"{number}"' for number, _ in _FACT.findall(text))
    names = " | ".join(literal(f"`{name}`") for name in names_in(text))
    return "\n".join(
        [
            f'root ::= title ("\\n" sentence){{1,{_SENTENCES}}}',
            f'title ::= first (" " plain){{1,{_TITLE}}}',
            f'sentence ::= first (" " plain){{0,{_BEFORE}}} (" " name (" " plain){{1,{_AFTER}}}){{1,{_NAMES}}} ". "'
            f" cite{{1,{_CITES}}}",
            f"first ::= [A-Z] [a-z]{{0,{_LETTERS}}}",
            f'plain ::= [A-Z]? [a-z] [a-z]{{0,{_LETTERS}}} ","?',
            f"name ::= {names}",
            'cite ::= "[" number "]"',
            f"number ::= {numbers}",
        ]
    )


def longest(text: str) -> int:
    """Return the bytes of the longest summary that the grammar lets through: no tokenizer gives more tokens."""
    plain, first = _LETTERS + len(" Aa,"), _LETTERS + 1
    name = max(len(f" `{name}`".encode()) for name in names_in(text))
    cites = _CITES * len(f"[{len(_FACT.findall(text))}]")
    sentence = len("\n") + first + _BEFORE * plain + _NAMES * (name + _AFTER * plain) + len(". ") + cites
    return first + _TITLE * plain + _SENTENCES * sentence


def read(text: str, content: str) -> Said:
    """Return what a model said of written facts.

    A sentence with an identifier that no fact has is dropped. One none of whose citations names anything of it cites
    the facts that name most of it instead: the reader is led to a place about what is said.

    >>> read("1. `A.go` calls `B`\\n2. `B` calls `C`", "On things\\nHere `A.go` calls the others. [2]")
    Said(title='On things', sentences=(Sentence(text='Here `A.go` calls the others.', cites=(1,)),), dropped=0, moved=1)

    Raises:
        InvalidAnswer: it is none, cites a fact that there is not, or no sentence is left.
    """
    facts = {int(number): fact for number, fact in _FACT.findall(text)}
    title, *lines = content.strip().split("\n")
    sentences: list[Sentence] = []
    dropped = moved = 0
    if not lines:
        raise InvalidAnswer(f"there is no sentence: {title[:80]!r}")
    for line in lines:
        match = _SENTENCE.fullmatch(line.strip())
        if match is None:
            raise InvalidAnswer(f"a sentence cites nothing: {line[:80]!r}")
        cites = {int(number) for number in re.findall(r"\d+", match["cites"])}
        if not cites <= facts.keys():
            raise InvalidAnswer(f"it cites {sorted(cites)}; there are {len(facts)} facts")
        if unsupported(match["text"], [text]):
            dropped += 1
            continue
        kept = _supported(match["text"], cites, facts)
        moved += not kept & cites
        sentences.append(Sentence(match["text"], tuple(sorted(kept))))
    if not sentences:
        raise InvalidAnswer("every sentence has an identifier that the facts do not have")
    return Said(title, tuple(sentences), dropped, moved)


def _supported(sentence: str, cites: set[int], facts: dict[int, str]) -> set[int]:
    """Those of the cited facts that share a name with the sentence; if there are none, those that share most of all."""
    named = set(names_in(sentence))
    shared = {number: len(named & set(names_in(fact))) for number, fact in facts.items()}
    most = max(shared.values())
    if not named or not most:
        return cites
    return {number for number in cites if shared[number]} or set(_first(n for n in facts if shared[n] == most))


def _first(numbers: Iterable[int]) -> Sequence[int]:
    return sorted(numbers)[:_CITES]
