"""Generic expansion: from a ranking's chunks over any edge of the graph to other chunks.

Seeds, the entities that they define or mention, what is 0 to 2 edges of any relation and direction from these, and the
chunks that define or mention it: nearer ones first, then those that more seeds reach. An entity counts the less the
more chunks mention it, and one that many mention or touch leads nowhere. Measured against more of the retriever's own
it does not earn its slots (README, Structural questions), so that no search does this unasked.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sparse
from numpy.typing import NDArray

from pipelines.graph.admission import hidden_kinds
from pipelines.graph.store import open_current
from pipelines.layout import Layout
from pipelines.lexical.index import LexicalIndex
from pipelines.settings import Settings

HOPS = 2
HUB = 50
"""An entity of more chunks or more neighbours is not gone through."""


_MENTIONS = "SELECT DISTINCT chunk_id, entity FROM mentions WHERE NOT list_contains(?::VARCHAR[], kind) ORDER BY ALL"


class Expansion:
    """The mentions and edges of the current graph as matrices: chunks × entities, and entities × entities."""

    def __init__(self, index: LexicalIndex, settings: Settings, origins: Iterable[str]) -> None:
        with open_current(Layout(settings.home)) as database:
            seen = sorted(origins)
            mentions = _columns(database, _MENTIONS, [hidden_kinds(seen)])
            query = "SELECT DISTINCT source, target FROM edges WHERE list_has_any(origins, ?) ORDER BY ALL"
            edges = _columns(database, query, [seen])
        chunk_of = {name: number for number, name in enumerate(index.table["chunk_id"].to_pylist())}
        names = list(dict.fromkeys([*mentions[1], *edges[0], *edges[1]]))
        entity_of = {name: number for number, name in enumerate(names)}
        pairs = [(chunk_of[c], entity_of[e]) for c, e in zip(*mentions, strict=True) if c in chunk_of]
        self._mentions = _matrix(pairs, (len(chunk_of), len(names)))
        ends = [(entity_of[a], entity_of[b]) for a, b in zip(*edges, strict=True) if a != b]
        self._near = _matrix([*ends, *((b, a) for a, b in ends)], (len(names), len(names)))
        self._mentioned = np.asarray(self._mentions.sum(axis=0)).ravel()
        touched = np.asarray(self._near.sum(axis=0)).ravel()
        self._is_way = (self._mentioned <= HUB) & (touched <= HUB)

    def expand(self, seeds: Sequence[int], most: int) -> list[int]:
        """Return up to `most` chunks that seeds lead to, none of them a seed; equal ones by number."""
        if not seeds or most < 1:
            return []
        found: dict[int, None] = {}
        reached = self._open(self._mentions[list(seeds)])  # seeds × entities
        seen = reached.copy()
        for _ in range(HOPS + 1):
            for number in self._chunks(reached):
                if number not in seeds:
                    found.setdefault(number)
            if len(found) >= most:
                break
            reached = self._open(reached @ self._near)
            reached = ((reached - seen) > 0).astype(np.float32)
            seen = seen.maximum(reached)
        return list(found)[:most]

    def _open(self, reached: Any) -> Any:
        """Ones where a seed reaches an entity that is no hub."""
        kept = (reached > 0).astype(np.float32) @ sparse.diags_array(self._is_way.astype(np.float32))
        kept.eliminate_zeros()
        return kept.tocsr()

    def _chunks(self, reached: Any) -> list[int]:
        """The chunks of entities, those that more seeds reach first, each counted by its rarest ways."""
        rarity: NDArray[np.float32] = (1 / np.maximum(self._mentioned, 1)).astype(np.float32)
        by_seed = np.minimum((reached @ sparse.diags_array(rarity) @ self._mentions.T).toarray(), 1)
        strength = by_seed.sum(axis=0).round(5)
        hit = np.flatnonzero(strength)
        return [int(number) for number in hit[np.argsort(-strength[hit], kind="stable")]]


def _columns(database: Any, query: str, values: list[Any]) -> list[list[str]]:
    table = database.sql(query, params=values).to_arrow_table()
    return [column.to_pylist() for column in table.columns]


def _matrix(pairs: Sequence[tuple[int, int]], shape: tuple[int, int]) -> Any:
    rows, columns = np.array(sorted(set(pairs)), dtype=np.int64).reshape(-1, 2).T
    return sparse.csr_array((np.ones(len(rows), dtype=np.float32), (rows, columns)), shape=shape)
