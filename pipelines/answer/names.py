"""Identifiers in prose, and those of an answer that no source has which it cites: a model may have made them up."""

import re
from collections.abc import Iterable

_NAME = re.compile(r"--?[A-Za-z][\w-]+|[^\W\d]\w*(?:(?:\.|::)[^\W\d]\w*)*")
_LOOKS_LIKE_CODE = re.compile(r"^--|_|\w\w\.\w\w|::|[a-z][A-Z]|[A-Z]{2,}[a-z]{2,}")
_QUOTED = re.compile(r"`([^`\n]+)`")
_FIELD = re.compile(r"--[\w-]+|[^\W\d]\w*")


def identifiers(text: str) -> list[str]:
    """Return what is quoted as code or looks like it, in the order of the text, each once.

    Like code looks what has an underscore, a dot or a capital inside, and a flag.

    >>> identifiers("`step` of LLMEngine calls load_model with --eager, and load_model returns.")
    ['step', 'LLMEngine', 'load_model', '--eager']
    """
    quoted = [name for part in _QUOTED.findall(text) for name in _NAME.findall(part)]
    bare = [name for name in _NAME.findall(_QUOTED.sub(" ", text)) if _LOOKS_LIKE_CODE.search(name)]
    return sorted(dict.fromkeys([*quoted, *bare]), key=text.find)


def unsupported(answer: str, texts: Iterable[str]) -> list[str]:
    """Return the identifiers of an answer that stand in none of some texts.

    A dotted one stands in a text where each of its parts does.

    >>> unsupported("`Engine.run` calls load_model with --eager.", ["class Engine:  def run(self): load_model()"])
    ['--eager']
    """
    there = {word for text in texts for word in _FIELD.findall(text)}
    return [name for name in identifiers(answer) if not all(part in there for part in _FIELD.findall(name))]
