"""What becomes of a graph's parts when names are one: mentions, places and votes go to the one that stays."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pipelines.code.link import Site
from pipelines.graph.extracted import Extracted, Votes
from pipelines.rules.corpus import Ruled

BINDING = "reviewed"
"""Of an edge whose end is another name's, because a person said that the two are one."""


def voted(said: Extracted, ruled: Ruled) -> dict[str, Votes]:
    """Return the votes about each bare name; of a term that a rule defines the rule's count, not the model's."""
    times = Counter(entity for entity, *_ in ruled.mentions)
    terms = {
        id: Votes(Counter({name: max(times[id], 1)}), Counter({kind: max(times[id], 1)}))
        for id, (name, kind) in ruled.terms.items()
    }
    return said.names | terms


def united(names: Mapping[str, Votes], merged: Mapping[str, str]) -> dict[str, Votes]:
    """Return the votes about the names that stay, those of what goes into them counted with them."""
    found: dict[str, Votes] = {}
    for id, votes in names.items():
        found.setdefault(merged.get(id, id), Votes()).add(votes)
    return found


def moved_mentions(mentions: Iterable[tuple[Any, ...]], merged: Mapping[str, str]) -> Iterator[tuple[Any, ...]]:
    """Yield mentions, which begin with their entity, of what stays."""
    return ((merged.get(mention[0], mention[0]), *mention[1:]) for mention in mentions)


def moved_sites(sites: Iterable[Site], merged: Mapping[str, str]) -> Iterator[Site]:
    """Yield the places of edges between what stays; an edge between two that are one is none.

    >>> place = Site("name:gpus", "RELATES_TO", "name:cpu", "sentence", "a.md", 1, 0, 4)
    >>> [(site.source, site.tier) for site in moved_sites([place], {"name:gpus": "name:gpu"})]
    [('name:gpu', 'reviewed')]
    """
    for site in sites:
        source, target = merged.get(site.source, site.source), merged.get(site.target, site.target)
        if (source, target) == (site.source, site.target):
            yield site
        elif source != target:
            yield site._replace(source=source, target=target, tier=BINDING)
