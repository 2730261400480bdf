"""Names as they are written."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rules.names import definitions, is_term, options, written_names


@given(st.text(st.sampled_from("aB_.`() \n-/=:12中"), max_size=60))
def test_a_name_stands_where_it_is_said_to(text):
    found = list(written_names(text))
    assert all(text[name.start : name.end] == name.name for name in found)
    assert all(one.end <= other.start for one, other in pairwise(found))
    assert all(text[start:end] for start, end in options(text, 0, len(text)))


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("`request` and request", ["request"]),
        ("a Model, the `Model`", ["Model"]),
        ("run() and run", ["run"]),
        ("``pkg.Engine`` :class:`~pkg.Engine` :func:`go <pkg.go>`", ["pkg.Engine", "pkg.Engine", "pkg.go"]),
        ("使用LLMEngine来运行`run_it`。", ["LLMEngine", "run_it"]),
        ("a-LLMEngine x/LLMEngine $HOME_DIR end.", []),
        ("`not a name` `--flag` `a b`", []),
        ("`X_Y=1` and `f(a, b)`", ["X_Y", "f"]),
    ],
)
def test_what_counts_as_written_code(text, names):
    assert [found.name for found in written_names(text)] == names


def test_a_plain_word_is_known_by_its_marks_alone():
    assert [found.is_plain for found in written_names("`request` `request()` `Model` `a.b`")] == [
        True,
        False,
        True,
        False,
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("Paged Attention is a kernel. It is the end. This is a test.", ["Paged Attention"]),
        ("Of **block tables** and **not** and **Solution**: no.", ["block tables"]),
        ("**Note**: x. **LoRA**: y. **Using it** z.", ["LoRA"]),
        ("The Helm is a ship. Below are the steps.", []),
    ],
)
def test_definitions(text, terms):
    found = list(definitions(text))
    assert [term for term, _, _ in found] == terms
    assert all(text[start:end] == term for term, start, end in found)


def test_terms_are_short_and_no_sentence():
    assert not any(map(is_term, ["", "…", "a b c d e f", "4 minutes", "What it does", "model", "🚧 WIP", "x.y"]))
