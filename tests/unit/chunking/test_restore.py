"""Texts come back from their chunks: every character that is not blank at its offset and on its line."""

import ast
import io
import re
import tokenize

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pipelines.chunking.partition import chunk_text
from pipelines.chunking.restore import restore_texts
from pipelines.corpus.decode import Undecodable
from pipelines.settings import PROJECT, ChunkSettings
from tests.support import line_numbers

FORMATS = ["python", "markdown", "sections", "text"]
PIECES = [
    "\n", "\r\n", "\r", "\n\n\n", "\r\n\r\n", "\n\r", " ", "    ", "\t", "\f", "\v", "\x1c", "\x85", "\u2028", "\u3000",
    "x", "é", "🦦 otter", "word " * 30, "y" * 230, "# Head\n", "## Under\r\n", "Title\n=====\n", "```\n", "- item\n",
    "def f():\n    return 1\n", "class A:\r\n    def m(self): ...\r\n", '"""doc\n\n  more"""\n', "@d\n", "# comment\n",
]  # fmt: skip
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=4), max_size=25).map("".join)
settings = st.builds(
    ChunkSettings,
    strategy=st.sampled_from(["packed", "units", "windows"]),
    cap=st.sampled_from([200, 300, 2000]),
    overlap=st.sampled_from([0, 1, 7, 60, 300, 1000]),
    section=st.sampled_from([0, 600]),
)


def restored(text, format, settings, path="a.py"):
    rows = chunk_text(path, text.encode("utf-8", "surrogatepass"), format, settings)
    return restore_texts([rows.document], reversed(rows.chunks))[path]


def placed(text):
    """(offset, line, character) of all that is not blank."""
    numbers = line_numbers(text)
    return [(at, numbers[at], character) for at, character in enumerate(text) if not character.isspace()]


@given(texts, st.sampled_from(FORMATS), settings)
@example("a\r\n\r\nb\rc\n\n", "text", ChunkSettings(cap=200, overlap=1, strategy="windows"))
@example("\r\n" * 200 + "x" + "\r" * 200 + "y" + "\n" * 200, "text", ChunkSettings(cap=200, overlap=0))
@example("# Head\n# Head\n0", "markdown", ChunkSettings(strategy="units", cap=200, overlap=7, section=0))
def test_what_is_not_blank_comes_back_where_it_was(text, format, settings):
    if any("\ud800" <= character <= "\udfff" for character in text) or text.startswith("\ufeff"):
        return  # such bytes are not decoded as they were encoded; the corpus stage's own tests are about that
    try:
        found = restored(text, format, settings)
    except Undecodable:
        assert "\0" in text  # taken for binary: no such file is chunked
        return
    assert len(found) == len(text)
    assert placed(found) == placed(text)


def test_a_document_without_chunks_is_as_long_and_blank():
    rows = chunk_text("a.md", b" \r\n\n\t", "markdown", ChunkSettings())
    assert rows.chunks == []
    assert restore_texts([rows.document], [])["a.md"].split() == []
    assert len(restore_texts([rows.document], [])["a.md"]) == 5


def test_each_document_gets_its_own_chunks():
    files = [chunk_text(path, text.encode(), "text", ChunkSettings()) for path, text in (("a", "x\n"), ("b", "\ny"))]
    chunks = [row for file in files for row in file.chunks]
    assert restore_texts([file.document for file in files], chunks) == {"a": "x ", "b": "\ny"}


SOURCES = sorted(
    path.relative_to(PROJECT).as_posix()
    for folder in ("pipelines/chunking", "pipelines/code", "assets")
    for path in (PROJECT / folder).rglob("*.py")
)


def strings_blanked(tree):
    """The dump of a tree with positions, in which blanks inside strings do not count."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            node.value = re.sub(r"\s+", " ", node.value)
    return ast.dump(tree, include_attributes=True)


@pytest.mark.parametrize(
    "settings",
    [
        ChunkSettings(),
        ChunkSettings(cap=300, overlap=200),
        ChunkSettings(strategy="windows", cap=250),
        ChunkSettings(strategy="units", cap=400, overlap=50),
    ],
    ids=["packed", "overlap", "windows", "units"],
)
def test_python_means_the_same(settings):
    for path in SOURCES:
        for ends in ("\n", "\r\n"):
            text = (PROJECT / path).read_text().replace("\n", ends)
            found = restored(text, "python", settings)
            assert strings_blanked(ast.parse(found)) == strings_blanked(ast.parse(text)), (path, ends)


def test_comments_and_tokens_are_on_their_lines():
    text = (PROJECT / "pipelines/tables.py").read_text()
    found = restored(text, "python", ChunkSettings(cap=200, overlap=100))
    kept = [
        [(token.string.strip(), token.start, token.end) for token in tokenize.generate_tokens(io.StringIO(one).readline)
         if token.type in (tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.COMMENT)]
        for one in (text, found)
    ]  # fmt: skip
    assert kept[0] == kept[1]
