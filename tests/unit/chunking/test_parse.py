"""Every format and setting: what is not blank is in exactly one chunk, at its offsets, none above the cap."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.chunking.partition import chunk_text
from pipelines.settings import ChunkSettings
from tests.support import assert_covered, line_numbers

FORMATS = ["python", "markdown", "sections", "text"]
LINES = st.sampled_from(
    ["", " ", "x = 1", "def f(a):", "    return 'é😀'", "class A:", "  def m(self): pass; y = 2", "@dec", "@dec(", ")",
     "if x:", "    def inner(): pass", "else: pass", "# Title", "## Sub ##", "```", "~~~~", "Title", "=====", "-----",
     "    indented", "- item", "> # quoted", "'''doc", "'''", "\f", "\u2028", "word " * 60, "x" * 450, "\\",
     "async def g(): 0", "---", "title: x", "| a | b |", "<div>", "</div>",
     "def h(): pass; class_ = 1", "; ; ", "\tx", "日本語" * 90]
)  # fmt: skip
TEXTS = st.lists(st.tuples(LINES, st.sampled_from(["\n", "\r\n", "\r", "\n\n", ""])), max_size=25).map(
    lambda lines: "".join(line + end for line, end in lines)
)
PYTHON = st.lists(
    st.sampled_from(
        ["import os\n", "\n", "def f(a, b='é'):\n    return a\n\n\n", "@dec\n@dec2(\n  1)\nasync def g(): 0\n",
         "class A(B):\n    '''doc'''\n\n    x = 1\n    @p\n    def m(self):\n        return 'w'\n    # c\n    y = 2\n",
         "class Big:\n" + "".join(f"    def m{n}(self):\n        return {n!r} + 'é'\n\n" for n in range(12)) + "\n",
         "if 1:\n    def c(): 1\nelse:\n    def c(): 2\n", "def one(): pass; x = 1\n", "x = 1; y = [\n 1,\n]\n",
         "# end\n", "class E:\n    class F:\n        def g(self): return 1\n",
         "def long():\n" + "    x = 'word word'\n" * 30,
         "class One: a = 1; b = 2\n", "x = '''\ndef not_one(): pass\n'''\n", "def f(): return 1 \\\n  + 2\n"]
    ),
    max_size=8,
).map("".join)  # fmt: skip
SETTINGS = st.builds(
    ChunkSettings,
    strategy=st.sampled_from(["packed", "units", "windows"]),
    cap=st.sampled_from([200, 201, 350, 2000]),
    overlap=st.sampled_from([0, 0, 1, 80, 1000]),
    section=st.sampled_from([0, 40, 600]),
)


def check(text, format, chosen):
    rows = chunk_text("a", text.encode(), format, chosen)
    numbers = line_numbers(text)
    for row in (*rows.chunks, *rows.units, *rows.outline):
        assert 0 <= row["start"] < row["end"] <= len(text)
        assert (row["start_line"], row["end_line"]) == (numbers[row["start"]], numbers[row["end"] - 1])
    for chunk in rows.chunks:
        assert chunk["text"] == text[chunk["start"] : chunk["end"]]
        assert chunk["text"].strip()
        assert len(chunk["text"]) <= chosen.cap + chosen.overlap
    assert_covered(text, rows.units)
    for row in rows.units:
        assert row["end"] - row["start"] <= chosen.cap
    if not chosen.overlap:
        assert_covered(text, rows.chunks)
    starts = [row["start"] for row in rows.chunks]
    assert starts == sorted(starts)
    assert len({row["chunk_id"] for row in rows.chunks}) == len(rows.chunks)
    assert {row["chunk_id"] for row in rows.units} == {row["chunk_id"] for row in rows.chunks}
    assert rows.document["characters"] == len(text)
    return rows


@pytest.mark.parametrize("format", FORMATS)
@settings(max_examples=70)
@given(TEXTS, SETTINGS)
@example("a\r", ChunkSettings())
@example("x = 1\n" * 200 + "\0def f(): pass\n", ChunkSettings(cap=200))
@example("def f():\n  pass\x0c\n\x0cx = 1", ChunkSettings(cap=200, overlap=80))
def test_any_text_is_chunked_whole(format, text, chosen):
    if not text.startswith("\ufeff"):
        check(text, format, chosen)


@settings(max_examples=120)
@given(PYTHON, SETTINGS)
def test_any_python_is_chunked_whole_by_its_own_parser(text, chosen):
    rows = check(text, "python", chosen)
    assert rows.document["problem"] == ""
    if chosen.strategy != "windows":
        assert rows.document["parser"] == "python"


@settings(max_examples=60)
@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0\ufeff"), max_size=300), SETTINGS)
def test_any_characters_at_all_are_chunked_whole(text, chosen):
    for format in FORMATS:
        check(text, format, chosen)
