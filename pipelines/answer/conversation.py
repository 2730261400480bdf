"""What a question of a conversation refers to, told without a model: the name spoken of last, and its words."""

import re
from collections.abc import Callable, Sequence

from pipelines.answer.answer import Answer
from pipelines.answer.names import identifiers
from pipelines.answer.recipe import Turn

_REFERS = re.compile(
    r"\b(?:(?P<owned>its|their)|it|they|them"
    r"|(?:this|that|these|those)(?: (?:function|method|class|module|file|symbol|one)s?)?(?=\s*(?:[?.,;!]|$)))\b(?!')",
    re.IGNORECASE,
)
"""What stands for a name: "it", and "that" where it ends a clause; "that" is mostly another word."""
_CITES = re.compile(r" ?(?:\[\d+\])+")
_FEW_TERMS = 3
_LONGEST = 1_000
MOST_TURNS = 3
"""Of the conversation, that a model is shown."""


def in_full(question: str, turns: Sequence[Turn], is_known: Callable[[str], bool]) -> str:
    """Return a question with a name in place of its first pronoun, if it names nothing itself.

    It is the name that the last question with one was about, else the first of its answer; only a known one counts.

    >>> in_full("Who calls it?", [Turn("What does `Engine.step` do?", "It runs `loop`.")], lambda name: True)
    'Who calls `Engine.step`?'
    >>> in_full("And its subclasses?", [Turn("What is the engine?", "`Engine` is a class.")], lambda name: True)
    "And `Engine`'s subclasses?"
    """
    pronoun = _REFERS.search(question)
    if pronoun is None or identifiers(question):
        return question
    for turn in reversed(turns):
        for text in turn:
            named = [name for name in identifiers(text) if is_known(name)]
            if named:
                put = f"`{named[0]}`" + ("'s" if pronoun["owned"] else "")
                return question[: pronoun.start()] + put + question[pronoun.end() :]
    return question


def to_search(question: str, asked: str, turns: Sequence[Turn]) -> str:
    """Return what is searched for: the question in full, with the last one before it where it says little by itself.

    >>> to_search("And on a GPU?", "And on a GPU?", [Turn("How is LoRA enabled?", "By a flag.")])
    'And on a GPU? How is LoRA enabled?'
    """
    if not turns:
        return asked
    from pipelines.lexical.tokens import query_terms

    refers = _REFERS.search(question) is not None and asked == question
    if refers or len(query_terms(asked)) < _FEW_TERMS:
        return f"{asked} {turns[-1].question}"
    return asked


def turn_of(answer: Answer) -> Turn:
    """Return what is remembered of an answer: its text without citations, whose numbers count only once.

    >>> turn_of(Answer(question="How?", text="So. [1]\\nAnd so. [1][2]")).answer
    'So.\\nAnd so.'
    """
    said = _CITES.sub("", answer.text) or "I do not know."
    return Turn(answer.question[:_LONGEST], said[:_LONGEST])
