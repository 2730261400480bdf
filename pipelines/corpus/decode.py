"""Bytes become text: UTF-8, then a byte order mark or a coding cookie, then charset-normalizer.

Offsets are positions in this text: no newline is translated, a byte order mark is not part of it.
"""

import codecs
import re
from dataclasses import dataclass

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark is its beginning
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_COOKIE = re.compile(
    rb"\A(?:\xef\xbb\xbf)?(?:[ \t\f]*(?:#[^\r\n]*)?(?:\r\n?|\n))?[ \t\f]*#[^\r\n]*?coding[:=][ \t]*([-\w.]+)"
)
_CONTROL = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1b\b")) + b"\x7f"


class Undecodable(Exception):
    """The bytes are no text; the argument is the reason for skipped.parquet."""


@dataclass(frozen=True)
class Decoded:
    """Text, the codec that gave it, and, for Python, why CPython would refuse the encoding ("" if it would not)."""

    text: str
    encoding: str
    problem: str = ""


def decode(data: bytes, *, python: bool = False) -> Decoded:
    """Return the text of a file.

    In a Python file a coding cookie is obeyed first, as CPython does, since such bytes may be valid UTF-8 by accident.

    >>> decode("caf\\u00e9".encode("utf-16")).encoding
    'utf-16-le'
    >>> decode("# coding: latin-1\\n\\u00e9".encode("latin-1"), python=True).text[-1]
    'é'
    >>> decode(b"\\xef\\xbb\\xbfx = 1")
    Decoded(text='x = 1', encoding='utf-8-sig', problem='')

    Raises:
        Undecodable: it is binary, or no charset fits.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            try:
                return Decoded(data[len(mark) :].decode(encoding), encoding)
            except UnicodeDecodeError:
                break
    if _mostly_control(data):
        raise Undecodable("binary")
    problem = ""
    cookie = _COOKIE.match(data) if python else None
    if cookie:
        name = cookie[1].decode("ascii", "replace")
        try:
            codec = codecs.lookup(name).name
            if codec != "utf-8":
                text = data.decode(codec)
                text.encode()  # some codecs give lone surrogates, which no table can hold
                return Decoded(text, codec)
        except LookupError:
            problem = f"its coding cookie names {name}, which is no text encoding"
        except UnicodeError:
            problem = f"its coding cookie says {name}, which does not fit its bytes"
    try:
        marked = data.startswith(codecs.BOM_UTF8)
        return Decoded(data.decode("utf-8-sig" if marked else "utf-8"), "utf-8-sig" if marked else "utf-8", problem)
    except UnicodeDecodeError:
        return _guess(data, problem or "its bytes are not UTF-8 and no coding cookie says what they are")


def _guess(data: bytes, problem: str) -> Decoded:
    from charset_normalizer import from_bytes, is_binary

    if is_binary(data):
        raise Undecodable("binary")
    best = from_bytes(data).best()
    if best is None:
        raise Undecodable("no encoding fits")
    return Decoded(str(best), best.encoding, problem)


def _mostly_control(data: bytes) -> bool:
    """Whether more than one byte in a hundred of the beginning is a control character no text editor writes."""
    sample = data[:8192]
    return len(sample) - len(sample.translate(None, _CONTROL)) > len(sample) / 100 and b"\0" in data[:65536]
