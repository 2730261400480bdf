"""What of a page is prose."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.rules.prose import read_prose

LINES = [
    "word",
    "| a | b |",
    "|---|---|",
    "```",
    "~~~",
    "```python",
    "  text",
    "- item",
    "# Head",
    "",
    "x::",
    "    code",
    "a | b",
]


@given(st.lists(st.sampled_from(LINES) | st.text(max_size=20), max_size=30), st.sampled_from(["markdown", "sections"]))
def test_offsets_stay_and_nothing_is_invented(lines, format):
    text = "\n".join(lines)
    page = read_prose(text, format)
    assert len(page.text) == len(text)
    assert all(kept in (character, " ") for kept, character in zip(page.text, text, strict=True))
    spans = list(page.sentences())
    assert all(start < end for start, end in spans)
    assert all(one[1] <= other[0] for one, other in pairwise(spans))
    covered = {at for start, end in spans for at in range(start, end)}
    lost = [at for at, character in enumerate(page.text) if at not in covered and character.isalnum()]
    assert not lost


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a\n\n```klingon\nEngine\n```\nb", ["a", "b"]),
        ("a\n```\nEngine", ["a"]),
        ("a\n~~~\n```\n~~~\nb", ["a", "b"]),
        ("- x\n\n    ```\n    Engine\n    ```\n", ["-", "x"]),
        ("| Engine | b |\n|---|---|\n| c | d |\n\nend", ["end"]),
        ("Engine | b\n--- | ---\nc | d\n\nend", ["end"]),
        ("see path/to/engine.py or https://a.b/Engine now", ["see", "or", "now"]),
        ("![Engine](x.png) and <!-- Engine\n --> end", ["and", "end"]),
        ("[Engine](a/Model.md) [x][pkg.Engine]", ["[Engine", "[x"]),
        ("--8<-- 'x.md'\n$ run Engine\nend", ["end"]),
    ],
)
def test_what_is_left_of_markdown(text, words):
    assert read_prose(text, "markdown").text.split() == words


def test_literal_blocks_of_restructured_text():
    table = "=====  =====\nA      B\n=====  =====\n"
    text = f"So::\n\n    Engine\n\nend\n\n.. code-block:: python\n\n   Model\n\nlast\n\n{table}"
    assert read_prose(text, "sections").text.split() == [
        "So::",
        "end",
        "..",
        "code-block::",
        "python",
        "last",
        "A",
        "B",
    ]


def test_imports_of_code_in_any_language():
    text = "```\nfrom a.b import C, d as e\nimport x.y\n>>> from z import (q\n```\nfrom prose import nothing\n"
    assert read_prose(text, "markdown").imports == {"C": "a.b.C", "e": "a.b.d", "x": "x"} | {"q": "z.q"}


def test_sentences_end_at_marks_blocks_and_items():
    page = read_prose("One is. Two is, e.g. Three.\n- Four\n- Five\n# Six\n\n三个。四个", "markdown")
    assert [page.text[start:end].strip() for start, end in page.sentences()] == [
        "One is.", "Two is, e.g. Three.", "- Four", "- Five", "# Six", "三个。", "四个",
    ]  # fmt: skip
