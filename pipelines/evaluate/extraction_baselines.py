"""What an extraction is compared with: links, rules, co-occurrence, and random pairs that keep the taxonomy's rules."""

import random
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any

from pipelines.code.link import Site
from pipelines.evaluate.annotations import HEADING, Annotated
from pipelines.evaluate.extraction_scores import Edge, Said, key
from pipelines.extract.names import find_name
from pipelines.extract.taxonomy import Taxonomy
from pipelines.rules.corpus import Ruled
from pipelines.rules.mentions import OF_SOURCE
from pipelines.rules.prose import Prose

DRAWS = 20
"""Random edges for each that a recipe or the truth has: their precision is to be chance's, not one draw's."""
_LINK = re.compile(r"\[([^\[\]\n]+)\](?:\([^()\n]*\)|\[[^\]\n]*\])")


def by_rules(chunks: Sequence[Annotated], ruled: Ruled, types: Mapping[str, str], origin: str) -> list[Said]:
    """Return what an origin (link, rule or cooccurrence) says of some chunks, by the texts that stand in them.

    `types` are those of entities by id. Names are those of the rules, of whatever origin's edges.
    """
    sites: dict[str, list[Site]] = defaultdict(list)
    for site in ruled.sites[origin]:
        sites[site.path].append(site)
    mentions: dict[str, list[tuple[int, int, str]]] = defaultdict(list)
    for entity, path, start, end, _ in ruled.mentions:
        mentions[path].append((start, end, entity))
    found = []
    for chunk in chunks:
        last = chunk.start + len(chunk.text)
        inside = [
            mention for mention in sorted(mentions[chunk.path]) if chunk.start <= mention[0] and mention[1] <= last
        ]
        names = {key(_text(chunk, start, end)): types[entity] for start, end, entity in inside}
        edges: set[Edge] = set()
        for site in sites[chunk.path]:
            if chunk.start <= site.start and site.end <= last:
                target = _named(chunk, site, inside, origin)
                source = key(_text(chunk, site.start, site.end)) if site.tier in OF_SOURCE else HEADING
                if target and target != source:
                    edges.add((source, site.relation, target))
        found.append(Said(names, frozenset(edges)))
    return found


def _named(chunk: Annotated, site: Site, mentions: Sequence[tuple[int, int, str]], origin: str) -> str:
    """The key of the text by which a chunk names the target of a site."""
    if origin == "rule" and site.tier not in OF_SOURCE:
        return key(_text(chunk, site.start, site.end))
    if origin == "link":
        for match in _LINK.finditer(chunk.text):
            if match.start() <= site.start - chunk.start < match.end():
                return key(match[1])
        return key(_text(chunk, site.start, site.end).rpartition(":")[2])
    named = [(abs(start - site.start), start, end) for start, end, entity in mentions if entity == site.target]
    return key(_text(chunk, *min(named)[1:])) if named else ""


def _text(chunk: Annotated, start: int, end: int) -> str:
    return chunk.text[start - chunk.start : end - chunk.start]


def together(text: str, said: Said, names: Sequence[str], taxonomy: Taxonomy, is_code: bool = False) -> Said:
    """Return the pairs of some names that stand in one sentence of a text (in one line of code), in its order."""
    edges: set[Edge] = set()
    sentences = (text[start:end] for start, end in Prose(text).sentences())
    for sentence in text.splitlines() if is_code else sentences:
        places = sorted((found[0], name) for name in names if (found := find_name(sentence, name)))
        for (_, one), (_, other) in combinations(places, 2):
            source, target = key(one), key(other)
            relation = taxonomy.reference(said.names.get(source, ""), said.names.get(target, ""))
            if relation and source not in target and target not in source:
                edges.add((source, relation, target))
    return Said(said.names, frozenset(edges))


def at_random(seed: str, names: Mapping[str, str], wanted: int, taxonomy: Taxonomy) -> Said:
    """Return `wanted` times `DRAWS` random edges between typed names that the taxonomy allows, as far as there are any.

    The same seed gives the same edges.
    """
    draws = random.Random(seed)
    ordered = sorted(names)
    edges: set[Any] = set()
    for _ in range(wanted * DRAWS if len(ordered) > 1 else 0):
        source, target = draws.sample(ordered, 2)
        allowed = [r.name for r in taxonomy.relations if r.allows(names[source], names[target])]
        if allowed:
            edges.add((source, draws.choice(allowed), target))
    return Said(names, frozenset(edges))
