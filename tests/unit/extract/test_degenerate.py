"""Answers that say nothing: counted by kind."""

import pytest

from pipelines.extract.degenerate import degenerate
from pipelines.extract.grammar import written
from pipelines.extract.taxonomy import load_taxonomy

TAXONOMY = load_taxonomy()


@pytest.mark.parametrize(
    ("answer", "kinds", "edges"),
    [
        ([], {}, 0),
        ([["a", "Class", ["CALLS", "b"]], ["b", "Class"]], {}, 1),
        ([["a", "Class", ["CALLS", "b"], ["CALLS", "b"], ["CALLS", "b"]]], {"duplicate": 2}, 3),
        ([["a", "Class", ["CALLS", "a"]]], {"loop": 1}, 1),
        ([[name, "Class", ["CALLS", end]] for name, end in zip("abc", "bcd", strict=True)], {}, 3),
        (
            [
                *([name, "Class", ["CALLS", following]] for name, following in zip("abc", "bcd", strict=True)),
                ["d", "Class"],
            ],
            {"walk": 3},
            3,
        ),
        (
            [["a", "Class", ["CALLS", "c"], ["IMPORTS", "b"], ["INHERITS_FROM", "d"]], ["b", "Class"], ["c", "Class"]],
            {"recital": 3},
            3,
        ),
        ([["a", "Class", ["CALLS", "c"], ["IMPORTS", "b"]], ["b", "Class", ["CALLS", "c"]]], {}, 3),
    ],
)
def test_kinds_of_degenerate_edges_in_lists(answer, kinds, edges):
    assert degenerate([written(answer)], TAXONOMY) == (kinds, edges)


def test_of_slots_what_is_none_is_no_edge_and_their_order_is_no_walk():
    pairs = [["a", "CALLS", "b"], ["b", "CALLS", "c"], ["c", "CALLS", "d"], ["a", "NONE", "d"]]
    answer = written([[[name, "Class"] for name in "abcd"], pairs])
    assert degenerate([answer], TAXONOMY, "slots") == ({}, 3)
