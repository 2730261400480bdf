"""What a community is called: the words that tell it from the rest, and its central members."""

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+\d*")
_SHORTEST, _MOST_WORDS, _MOST_CENTRAL = 3, 8, 10
_IN_NAME = 3, 2
"""Words and central members of a name."""
_IMPLIED = 0.7
_SAY_NOTHING = frozenset(
    {"test", "tests", "init", "util", "utils", "base", "common", "impl", "main", "json", "the", "and", "for", "with"}
)
"""Of what something is about."""


def folders_of(paths: Iterable[str]) -> frozenset[str]:
    """Return the names of all folders of some paths, in lower case."""
    return frozenset(folder.lower() for path in set(paths) for folder in path.split("/")[:-1])


def words_of(name: str, path: str, folders: frozenset[str]) -> frozenset[str]:
    """Return the words of an entity's path and name, in lower case: folders whole, the rest in its parts, of which two
    that together are the name of a folder are one.

    >>> sorted(words_of("MultiModalLoRA", "vllm/tool_parsers/fp8.py", frozenset({"multimodal", "lora"})))
    ['fp8', 'lora', 'modal', 'multi', 'multimodal', 'tool_parsers', 'vllm']
    """
    *around, file = path.split("/")
    stem = file.partition(".")[0]
    parts = [part.lower() for part in _PART.findall(stem if name == path else f"{stem} {name}")]
    together = (word for word in map("".join, pairwise(parts)) if word in folders)
    found = (*(folder.lower() for folder in around), *parts, *together)
    return frozenset(word for word in found if len(word) >= _SHORTEST and word not in _SAY_NOTHING)


def key_words(inside: Sequence[frozenset[str]], everywhere: Mapping[str, int], total: int) -> list[str]:
    """Return the words that tell some units from all others, best first.

    `inside` are the words of each of the units, `everywhere` counts the units of the whole graph, `total` in number,
    that have a word. A word counts its share inside times the log of how much larger that is than outside: its part of
    the divergence of the two, in which tf-idf's idf is by units, not by communities, since the largest of these have
    nearly every word. Of words that are a part of each other the better one is taken, and of two where most units
    with the better have the other, too (a folder and the one around it), the one that is rarer in the whole graph.
    """
    having: dict[str, set[int]] = defaultdict(set)
    for number, words in enumerate(inside):
        for word in words:
            having[word].add(number)
    outside = total - len(inside)

    def score(word: str) -> float:
        found = len(having[word])
        share = found / len(inside)
        return round(share * math.log(share * (outside + 1) / (everywhere[word] - found + 1)), 9)

    gains = {word: score(word) for word in having}
    chosen: list[str] = []
    for word in sorted((word for word in gains if gains[word] > 0), key=lambda word: (-gains[word], word)):
        implied_by = [
            better for better in chosen if len(having[better] & having[word]) > _IMPLIED * len(having[better])
        ]
        if any(word in better or better in word for better in chosen):
            continue
        if not implied_by:
            chosen.append(word)
        elif len(implied_by) == 1 and everywhere[word] < everywhere[implied_by[0]]:
            chosen[chosen.index(implied_by[0])] = word
        if len(chosen) == _MOST_WORDS:
            break
    return chosen


def central_members(units: Sequence[int], strengths: Mapping[tuple[int, int], float], ids: Sequence[str]) -> list[str]:
    """Return the units of a community that the others lead to, by PageRank over the edges inside it, the first most."""
    import igraph

    place = {unit: at for at, unit in enumerate(units)}
    inside = {(place[a], place[b]): weight for (a, b), weight in strengths.items() if a in place and b in place}
    ranks = [1.0] * len(units)
    if inside:
        graph = igraph.Graph(len(units), list(inside), directed=True)
        ranks = graph.pagerank(weights=list(inside.values()))
    order = sorted(units, key=lambda unit: (-round(ranks[place[unit]], 9), ids[unit]))
    return [ids[unit] for unit in order[:_MOST_CENTRAL]]


def named(words: Sequence[str], central: Iterable[tuple[str, str]]) -> str:
    """Return a community's name; `central` are (type, name) of its central members.

    >>> named(["lora", "punica"], [("Module", "vllm/lora/models.py"), ("Class", "LoRAModel")])
    'lora, punica (LoRAModel)'
    """
    known = list(central)
    symbols = [name for kind, name in known if kind != "Module"] or [name for _, name in known]
    most_words, most_names = _IN_NAME
    shown = ", ".join(" ".join(name.split())[:60] for name in symbols[:most_names])
    return f"{', '.join(words[:most_words])} ({shown})" if words else shown
