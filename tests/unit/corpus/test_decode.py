"""Bytes to text."""

import ast
import codecs

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pipelines.corpus.decode import Undecodable, decode


@settings(max_examples=100)
@given(st.text(st.characters(exclude_categories=["Cs", "Cc"])), st.sampled_from(["", "\r\n", "\n", "\r"]))
@example("﻿mark", "")
def test_utf8_is_taken_as_it_is(text, end):
    if not text.startswith("\ufeff"):
        assert decode((text + end).encode()).text == text + end
    assert decode(codecs.BOM_UTF8 + (text + end).encode()).text == text + end


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be"])
@pytest.mark.parametrize("text", ["", "x", "wombat\r\nÄ 🦦\n"])
def test_a_byte_order_mark_tells_the_encoding_and_is_not_text(encoding, text):
    decoded = decode("\ufeff".encode(encoding) + text.encode(encoding))
    assert (decoded.text, decoded.encoding, decoded.problem) == (text, encoding, "")


@pytest.mark.parametrize(
    ("source", "encoding"),
    [
        ("# -*- coding: latin-1 -*-\nx = 'é'\n", "iso8859-1"),
        ("#!/usr/bin/python\n# vim: set fileencoding=cp1251 :\nx = 'Привет'\n", "cp1251"),
        ("\f# coding=koi8-r\nx = 'Привет'\n", "koi8-r"),
        ("# coding: shift_jis\r\nx = '日本'\r\n", "shift_jis"),
        ("# coding: latin-1\rx = 'é'\r", "iso8859-1"),
        ("\n# coding: latin-1\nx = 'é'\n", "iso8859-1"),
    ],
)
def test_a_coding_cookie_is_obeyed_as_python_does(source, encoding):
    data = source.encode(encoding)
    decoded = decode(data, python=True)
    assert (decoded.text, codecs.lookup(decoded.encoding).name, decoded.problem) == (source, encoding, "")
    assert ast.dump(ast.parse(data)) == ast.dump(ast.parse(decoded.text))


@pytest.mark.parametrize(
    "source", ["x = 1  # coding: latin-1\ny = 'é'\n", "x = 1\n# coding: latin-1\n", "\n\n# coding: latin-1\nx = 'é'\n"]
)
def test_a_comment_that_is_no_cookie_is_none(source):
    assert decode(source.encode(), python=True).encoding == "utf-8"
    assert ast.dump(ast.parse(source.encode())) == ast.dump(ast.parse(source))


def test_only_python_has_cookies():
    data = "# coding: latin-1\né\n".encode()
    assert decode(data).text == data.decode()


@pytest.mark.parametrize("name", ["klingon", "rot13", "hex", "utf-7", "idna", "undefined", "cp65001x"])
def test_a_cookie_of_no_text_encoding_leaves_utf8_and_a_problem(name):
    decoded = decode(f"# coding: {name}\nx = 'é+'\n".encode(), python=True)
    assert "x = 'é" in decoded.text
    assert decoded.text.encode()


def test_a_cookie_that_does_not_fit_is_a_problem():
    decoded = decode("# coding: ascii\nx = 'é'\n".encode(), python=True)
    assert decoded.text == "# coding: ascii\nx = 'é'\n"
    assert "ascii" in decoded.problem


def test_bytes_that_are_no_utf8_are_guessed_and_told_of():
    text = "Здравствуйте, это обычный русский текст о разных вещах. " * 5
    decoded = decode(text.encode("cp1251"), python=True)
    assert "это обычный русский текст" in decoded.text
    assert "not UTF-8" in decoded.problem


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + bytes(range(256)) * 8,
        b"\x7fELF\x02\x01\x01" + b"\0" * 200,
        b"PK\x03\x04" + bytes(range(256)) * 4,
        b"\0",
        b"\0" * 10_000,
    ],
    ids=["png", "elf", "zip", "null", "nulls"],
)
def test_binary_is_no_text(data):
    with pytest.raises(Undecodable, match=r"binary|no encoding fits"):
        decode(data)


@settings(max_examples=150)
@given(st.binary(max_size=400), st.booleans())
@example(b"\xff\xfe\xff", False)
@example(b"\xef\xbb\xbf\xef\xbb\xbf", False)
@example(b"# coding: utf-8-sig\n\xef\xbb\xbf", True)
@example(b"# coding: unicode_escape\n\\ud83d", True)
@example(b"# coding: utf-16\nxx", True)
@example(b"# coding: punycode\n-9\xff", True)
def test_any_bytes_are_decoded_to_text_that_can_be_stored_or_refused(data, python):
    try:
        decoded = decode(data, python=python)
    except Undecodable:
        return
    decoded.text.encode()
    assert codecs.lookup(decoded.encoding)


def test_no_newline_is_translated():
    assert decode(b"a\r\nb\rc\n\x0b\x0c").text == "a\r\nb\rc\n\x0b\x0c"
