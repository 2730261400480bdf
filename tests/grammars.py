"""An independent reader of grammars: xgrammar, by single bytes, so that an answer takes as many tokens as it can."""

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

BYTES = [bytes([value]) for value in range(256)] + [b"<end>"]
END = 256


@cache
def _xgrammar() -> tuple[Any, Any]:
    xgrammar = pytest.importorskip("xgrammar", reason="xgrammar, which comes with vLLM, is not installed")
    info = xgrammar.TokenizerInfo(BYTES, xgrammar.VocabType.RAW, stop_token_ids=[END])
    return xgrammar, xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)


def _matcher(grammar: str) -> Any:
    xgrammar, compiler = _xgrammar()
    return xgrammar.GrammarMatcher(compiler.compile_grammar(grammar))


def lets_through(grammar: str, answer: str) -> bool:
    """Whether a grammar lets through this answer, whole."""
    found = _matcher(grammar)
    return bool(found.accept_string(answer) and found.accept_token(END))


def walked(grammar: str, choose: Callable[[list[int], bytes], int]) -> str:
    """A text that a grammar lets through, byte by byte: `choose` takes one of those allowed after what there is."""
    found, mask = _matcher(grammar), _xgrammar()[0].allocate_token_bitmask(1, len(BYTES))
    answer = bytearray()
    while True:
        found.fill_next_token_bitmask(mask, 0)
        bits = [number for number in range(len(BYTES)) if int(mask[0, number // 32]) >> (number % 32) & 1]
        token = choose(bits, bytes(answer))
        assert found.accept_token(token)
        if token == END:
            return bytes(answer).decode()
        answer.append(token)
