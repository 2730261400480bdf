"""Terms of code and prose: every identifier whole and in its parts, stemmed."""

import re
import unicodedata
from functools import cache, lru_cache

import Stemmer

VERSION = 1
"""Raise it when the same text gives other terms."""
LONGEST_QUESTION = 4_000
"""How many distinct terms of a question are scored: more than questions have, and a pasted file costs no minutes."""
LONGEST_WORD = 64
"""Longer runs are data (base64, hashes), not words."""

WORD = re.compile(r"[A-Za-z](?:\+\+|#)(?![A-Za-z0-9_])|\w+")
_PART = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+|\d+")
_UNSEGMENTED = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff]"
)
_stem = Stemmer.Stemmer("english").stemWord


def words(text: str) -> list[str]:
    """Split text into identifiers, numbers and words, as written.

    `C++`, `C#` and `F#` are words of their own; scripts without blanks (Chinese, Japanese, Thai …) stay one run here.

    >>> words("HTTPServer2.getResponseCode in C++, x = 熊猫")
    ['HTTPServer2', 'getResponseCode', 'in', 'C++', 'x', '熊猫']
    """
    return WORD.findall(text)


@lru_cache(maxsize=1 << 18)
def terms(word: str) -> tuple[str, ...]:
    """Return the index terms of one word: itself in lower case, and its snake and camel parts where they differ.

    One-letter terms and plain numbers are dropped, terms are stemmed. A run of an unsegmented script gives its
    overlapping pairs of characters.

    >>> terms("HTTPServer2"), terms("get_response_code"), terms("searching")
    (('httpserver2', 'http', 'server'), ('get_response_cod', 'get', 'respons', 'code'), ('search',))
    >>> terms("熊猫科"), terms("42")
    (('熊猫', '猫科'), ())
    """
    if len(word) > LONGEST_WORD or word.isdecimal():
        return ()
    if not word.isascii():
        word = unicodedata.normalize("NFKC", word)
        if _UNSEGMENTED.search(word):
            return tuple(word[at : at + 2] for at in range(max(len(word) - 1, 1)))
    whole = word.lower().strip("_") or word
    found = [_stem(whole)] if len(whole) > 1 else []
    parts = _PART.findall(word) if word.isascii() else word.split("_")
    if len(parts) > 1:
        found += [_stem(part.lower()) for part in parts if len(part) > 1 and not part.isdecimal()]
    return tuple(dict.fromkeys(found))


def terms_of(text: str) -> set[str]:
    """Return the distinct terms of a text, those of stop words among them.

    >>> sorted(terms_of("the LoRA loader"))
    ['lo', 'loader', 'lora', 'ra', 'the']
    """
    return {term for word in words(text) for term in terms(word)}


def query_terms(question: str) -> list[str]:
    """Return the distinct terms of a question without English stop words, sorted; the first LONGEST_QUESTION of them.

    >>> query_terms("How do I enable LoRA for the LLMEngine?")
    ['enabl', 'engin', 'llm', 'llmengin', 'lo', 'lora', 'ra']
    """
    stop = _stop_words()
    kept = (word for word in words(question) if word.lower() not in stop)
    return sorted({term for word in kept for term in terms(word)})[:LONGEST_QUESTION]


@cache
def _stop_words() -> frozenset[str]:
    from bm25s.stopwords import STOPWORDS_EN_PLUS

    return frozenset(STOPWORDS_EN_PLUS)
