"""Cutting text into windows."""

from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.chunking.lines import Lines
from pipelines.chunking.windows import cut


def pieces(text, cap):
    return [text[start:end] for start, end in cut(Lines(text), 0, len(text), cap)]


@settings(max_examples=200)
@given(st.text(st.sampled_from("ab_ .\n\r\té😀"), max_size=200), st.integers(1, 40), st.data())
def test_windows_tile_the_span_and_none_is_above_the_cap(text, cap, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    spans = list(cut(Lines(text), start, end, cap))
    assert "".join(text[first:last] for first, last in spans) == text[start:end]
    assert [first for first, _ in spans] == [start, *(last for _, last in spans)][: len(spans)]
    assert all(0 < last - first <= cap for first, last in spans)


def test_what_fits_is_not_cut():
    assert pieces("a\n\nb", 4) == ["a\n\nb"]
    assert pieces("", 4) == []


def test_a_cut_falls_after_the_last_blank_line_in_the_second_half():
    text = "aaa\n\nbbb\n\nccc\nddd\neee"
    assert pieces(text, 15) == ["aaa\n\nbbb\n\n", "ccc\nddd\neee"]


def test_without_a_blank_line_a_cut_falls_after_a_line():
    assert pieces("aaa\nbbb\nccc\nddd", 10) == ["aaa\nbbb\n", "ccc\nddd"]


def test_without_a_line_end_a_cut_falls_between_words():
    assert pieces("one two three_four five", 12) == ["one two ", "three_four ", "five"]


def test_one_long_word_is_cut_at_the_cap():
    assert pieces("x" * 25, 10) == ["x" * 10, "x" * 10, "x" * 5]


def test_lines_that_end_in_cr_alone_are_lines():
    assert pieces("aaa\rbbb\rccc\rddd", 10) == ["aaa\rbbb\r", "ccc\rddd"]
