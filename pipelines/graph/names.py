"""Names as a search compares them."""

import re
import unicodedata


def search_key(name: str) -> str:
    """What two spellings of a name have in common: NFKC, case and underscores aside, the last part of a dotted name.

    >>> search_key("Engine.tokenizer_group"), search_key("TokenizerGroup"), search_key("C++"), search_key("_")
    ('tokenizergroup', 'tokenizergroup', 'c++', '_')
    """
    name = unicodedata.normalize("NFKC", name).strip().casefold()
    last = name.rpartition(".")[2] if re.fullmatch(r"[\w.<>]+\w", name) else name
    return last.replace("_", "") or last
