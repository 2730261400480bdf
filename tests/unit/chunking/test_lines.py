"""Lines and offsets, against a naive count and against Python's own parser."""

import ast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.chunking.lines import Lines

TEXTS = st.text(st.sampled_from("ab\n\r\t é日😀\f\x0b\x85\u2028 "), max_size=60)


def naive(text):
    """The lines of a text with their ends, found one character at a time."""
    found, line = [], ""
    for at, character in enumerate(text):
        line += character
        if character == "\n" or (character == "\r" and text[at + 1 : at + 2] != "\n"):
            found.append(line)
            line = ""
    return found + ([line] if line else [])


@settings(max_examples=200)
@given(TEXTS)
def test_lines_are_those_of_a_naive_count(text):
    lines, expected = Lines(text), naive(text)
    assert len(lines) == len(expected)
    assert [lines.text_of(number) for number in range(1, len(lines) + 1)] == [line.rstrip("\r\n") for line in expected]
    numbers = [number for number, line in enumerate(expected, 1) for _ in line]
    assert [lines.number(offset) for offset in range(len(text))] == numbers
    starts = [sum(map(len, expected[:number])) for number in range(len(expected))]
    assert [lines.start(number) for number in range(1, len(lines) + 1)] == starts
    assert lines.start(len(lines) + 1) == len(text)


@settings(max_examples=200)
@given(TEXTS, st.data())
def test_a_column_in_utf8_bytes_is_an_offset_in_characters(text, data):
    lines = Lines(text)
    number = data.draw(st.integers(1, max(len(lines), 1)))
    before = data.draw(st.integers(0, len(lines.text_of(number)))) if text else 0
    column = len(lines.text_of(number)[:before].encode()) if text else 0
    assert lines.offset(number, column) == lines.start(number) + before


@settings(max_examples=200)
@given(TEXTS, st.data())
def test_trimming_takes_blank_lines_around_and_blanks_behind(text, data):
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    span = Lines(text).trimmed(start, end)
    if not text[start:end].strip():
        assert span is None
        return
    assert span is not None
    first, last = span
    assert start <= first <= last <= end
    assert text[first:last].strip() == text[start:end].strip()
    assert text[first:last] == text[first:last].rstrip()
    before = naive(text[first:last])[0]
    assert before.strip()


def test_blank_lines_go_and_indentation_stays():
    lines = Lines("\n\n  x\n\ty  \n\n")
    assert lines.trimmed(0, len(lines.text)) == (2, 8)


SOURCES = [
    "def f(x, y='é😀'):  # 日\n    return 'ß' + y; z = '😀'; w = 1\n",
    "ÄÖ = 1; class_ = lambda é: é\r\ndef g(): pass\r\n",
    "x = '''\r\n日本\r語'''\rdef h(): return 1\r",
    "\fclass Ü:\n    a = 'é'; b = 2\n",
    "x = 'a\\\nb'; y = '\u2028'; z = 3\n",
]


@pytest.mark.parametrize("source", SOURCES)
def test_offsets_cut_out_what_python_says_a_node_is(source):
    lines = Lines(source)
    checked = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.stmt | ast.expr):
            start = lines.offset(node.lineno, node.col_offset)
            end = lines.offset(node.end_lineno, node.end_col_offset)
            segment = ast.get_source_segment(source, node)
            assert source[start:end] == segment
            checked += 1
    assert checked > 3
