"""Packing units into chunks."""

from pipelines.chunking.lines import Lines
from pipelines.chunking.model import Unit
from pipelines.chunking.pack import pack
from pipelines.settings import ChunkSettings


def spans(text, bounds, **chosen):
    units = [Unit(start, end, "code", trail=(f"u{number}", "all")) for number, (start, end) in enumerate(bounds)]
    return [(chunk.start, chunk.end, chunk.trail) for chunk in pack(Lines(text), units, ChunkSettings(**chosen))]


TEXT = ("x" * 99 + "\n") * 10
BOUNDS = [(0, 99), (100, 199), (200, 299), (300, 499)]


def test_consecutive_units_are_joined_while_they_fit_the_cap():
    assert spans(TEXT, BOUNDS, cap=300) == [(0, 299, ["u0", "all", "u1", "u2"]), (300, 499, ["u3", "all"])]
    assert [span[:2] for span in spans(TEXT, BOUNDS, cap=200)] == [(0, 199), (200, 299), (300, 499)]


def test_what_lies_between_units_counts():
    assert [span[:2] for span in spans(TEXT, [(0, 99), (200, 299)], cap=299)] == [(0, 299)]
    assert [span[:2] for span in spans(TEXT, [(0, 99), (200, 299)], cap=298)] == [(0, 99), (200, 299)]


def test_the_units_strategy_joins_nothing():
    assert [span[:2] for span in spans(TEXT, BOUNDS, strategy="units")] == BOUNDS


def test_an_overlap_is_whole_lines_of_what_is_before():
    assert [span[:2] for span in spans(TEXT, BOUNDS, strategy="units", overlap=150)] == [
        (0, 99), (0, 199), (100, 299), (200, 499),
    ]  # fmt: skip
    assert [span[:2] for span in spans(TEXT, BOUNDS, strategy="units", overlap=50)] == BOUNDS


def test_no_units_make_no_chunks():
    assert spans("", []) == []
