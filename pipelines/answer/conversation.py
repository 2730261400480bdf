"""What a question of a conversation refers to, told without a model: the name spoken of last, and its words."""

import re
from collections.abc import Sequence

from pipelines.answer.answer import Answer
from pipelines.answer.names import identifiers
from pipelines.answer.recipe import Turn

_REFERS = re.compile(r"\b(it|its|they|them|their|this|that|these|those|there)\b(?!')", re.IGNORECASE)
_CITES = re.compile(r" ?(?:\[\d+\])+")
_OWNED = ("its", "their")
_FEW_TERMS = 3
MOST_TURNS = 3
"""Of the conversation, that a model is shown."""


def in_full(question: str, turns: Sequence[Turn]) -> str:
    """Return a question with the name it refers to in place of its first pronoun, if it names nothing itself.

    >>> in_full("Who calls it?", [Turn("What does `Engine.step` do?", "It runs the loop.")])
    'Who calls `Engine.step`?'
    >>> in_full("And its subclasses?", [Turn("What is `Engine`?", "A class.")])
    "And `Engine`'s subclasses?"
    """
    pronoun = _REFERS.search(question)
    if pronoun is None or identifiers(question):
        return question
    for turn in reversed(turns):
        for text in turn:
            for name in identifiers(text)[:1]:
                put = f"`{name}`" + ("'s" if pronoun[0].lower() in _OWNED else "")
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
    return Turn(answer.question, _CITES.sub("", answer.text) or "I do not know.")
