"""Whether two spellings may be of one name; what a mark or a number tells apart stays apart: C, C++, C#; FP8, FP16."""

import re
import unicodedata
from functools import cache

import Stemmer
from rapidfuzz.distance import OSA
from rapidfuzz.fuzz import ratio

_stem = Stemmer.Stemmer("english").stemWord
_BETWEEN = re.compile(r"(?<=[^\W_])[\s_.-]+(?=[^\W_])")
_PLURAL = re.compile(r"(?<=[A-Z])s$")
_CODE = re.compile(r"[^\W_]*[\W_\d]|.*[a-z][A-Z]|[A-Z]{2}")
"""A word with a mark, a digit or a capital inside is spelt as it is meant."""
_SHORTEST_TYPO = 7
"""Letters of a word of which one may be wrong; of shorter ones it makes another word."""


@cache
def bare_key(name: str) -> str:
    """Return a name without case and without what stands between its words; marks and numbers stay.

    >>> [bare_key(name) for name in ("Node.js", "load_User", "KV-cache", "C++", ".NET", "--max-lora", "v1.0")]
    ['nodejs', 'loaduser', 'kvcache', 'c++', '.net', '--maxlora', 'v1.0']
    """
    folded = unicodedata.normalize("NFKC", name).strip().casefold()
    return _BETWEEN.sub(_kept_between_digits, folded.strip("_")) or folded


def _kept_between_digits(match: re.Match[str]) -> str:
    text = match.string
    return match[0] if text[match.start() - 1].isdigit() and text[match.end()].isdigit() else ""


def is_near(a: str, b: str) -> bool:
    """Whether two names have the same words but for an ending or a slip; words written as code have to be the same.

    >>> is_near("tensor parallel", "Tensor Parallelism"), is_near("GPUs", "GPU"), is_near("tokeniser", "tokenizer")
    (True, True, True)
    >>> is_near("HTTP", "HTTPS"), is_near("loadUser", "loadUsers"), is_near("offline mode", "online mode")
    (False, False, False)
    """
    words, others = a.strip().split(), b.strip().split()
    return len(words) == len(others) and all(map(_is_near_word, words, others))


def _is_near_word(a: str, b: str) -> bool:
    a, b = _PLURAL.sub("", a), _PLURAL.sub("", b)
    if a.casefold() == b.casefold():
        return True
    if _CODE.match(a) or _CODE.match(b):
        return False
    a, b = a.casefold(), b.casefold()
    if _stem(a) == _stem(b):
        return True
    return a[0] == b[0] and min(len(a), len(b)) >= _SHORTEST_TYPO and OSA.distance(a, b, score_cutoff=1) <= 1


def likeness(a: str, b: str) -> float:
    """Return how alike two spellings are, from 0 to 1, by what has to be inserted and deleted (rapidfuzz's ratio).

    >>> likeness("GPU", "gpu"), round(likeness("tensor parallel", "tensor parallelism"), 2)
    (1.0, 0.9)
    """
    return float(ratio(bare_key(a), bare_key(b))) / 100
