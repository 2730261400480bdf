"""The table of an extraction report: a line for each recipe, a share with its interval in each cell."""

from collections.abc import Callable

from pipelines.evaluate.extraction_scores import Scores
from pipelines.graph.admission import Precision

Column = Callable[[Scores], Precision | None]
DOCS: dict[str, Column] = {
    "mentions P": lambda scores: scores.mentions,
    "R": lambda scores: scores.mention_recall,
    "types": lambda scores: scores.types,
    "edges P": lambda scores: scores.edges,
    "edges R": lambda scores: scores.edge_recall,
    "any label P": lambda scores: scores.pairs,
    "co-occurrence P": lambda scores: scores.cooccurrence,
}
CODE: dict[str, Column] = {
    "types": lambda scores: scores.types,
    "edges P": lambda scores: scores.edges,
    "edges R": lambda scores: scores.edge_recall,
    **{
        f"{name} P": lambda scores, relation=name: scores.labels.get(relation)  # type: ignore[misc]
        for name in ("CALLS", "DEFINED_IN", "INHERITS_FROM", "REFERENCES")
    },
}


def cells(scores: Scores, columns: dict[str, Column]) -> list[str]:
    """Return a line of a table: the recipe's name, and each column's share with its interval.

    A share of nothing is a dash, and so is what chance has no sensible number of: the recall of many draws.
    """
    is_chance = scores.recipe == "random pairs"
    line = [scores.recipe]
    for name, column in columns.items():
        share = None if is_chance and name not in ("edges P", "any label P") else column(scores)
        line.append(f"{share.text.rpartition(' of ')[0]} ({share.found})" if share and share.found else "–")
    return line


def as_markdown(lines: list[list[str]], columns: dict[str, Column]) -> str:
    """Return lines as a table for a README or Dagster's UI."""
    rows = [["", *columns], ["---"] * (len(columns) + 1), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
