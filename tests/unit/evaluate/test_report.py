"""Reports: whole, offline, and not broken by what questions hold; changes between two of them."""

import re

import pytest
from markdown_it import MarkdownIt

from pipelines.evaluate.compare import changes
from pipelines.evaluate.evaluation import evaluate_file
from pipelines.evaluate.report import Picture, blocks, to_html, to_json, to_markdown

LORA = {"file_path": "docs/lora.md", "first_character_index": 10, "last_character_index": 60}
HOSTILE = "</td><script>alert(1)</script> | $x_{ ![a](b) \ud800 熊猫"


@pytest.fixture(scope="module")
def parts(small, tmp_path_factory):
    import json

    path = tmp_path_factory.mktemp("q") / "my set $.json"
    rows = [
        {"question_id": "1", "question": HOSTILE, "split": HOSTILE, "sources": [LORA]},
        {"question_id": "2", "question": "adapters", "split": "b", "sources": [LORA, LORA | {"file_path": "gone.md"}]},
    ]
    path.write_text(json.dumps({"rag_questions": rows}))
    found = evaluate_file(small.settings, path, ks=(1, 3))
    return found, list(blocks([found], {"lexical": {"k1": 0.9}}))


def test_html_is_one_file_that_needs_nothing_else(parts):
    page = to_html(parts[1], "T")
    assert re.findall(r'(?:src|href)="(.{15})', page) == ["data:image/png;"]
    assert "<script" not in page and "http" not in page.replace("http-equiv", "")
    assert "lexical.k1" in page and parts[0].asked.fingerprint in page


def test_markdown_names_its_pictures_and_keeps_its_tables_whole(parts):
    text = to_markdown(parts[1])
    picture = next(part for part in parts[1] if isinstance(part, Picture))
    assert f"]({picture.name})" in text and picture.name == "my-set-.png"
    assert picture.png.startswith(b"\x89PNG")
    tables = [line for line in text.split("\n") if line.startswith("|")]
    assert all(line.endswith("|") for line in tables)
    assert "<script" not in MarkdownIt("commonmark").render(text)


def test_a_report_of_no_questions_says_so():
    assert "Nothing to evaluate" in to_markdown(blocks([], {}))


def test_a_fall_is_told_from_noise():
    def report(*recalls: float) -> dict[str, dict[str, dict[str, float]]]:
        return {"recalls": {"set lexical/plain@5": {f"q{number}": value for number, value in enumerate(recalls)}}}

    before = report(*[1.0] * 40)
    (none,), (noise,), (fall,) = (
        changes(report(*now), before) for now in ([1.0] * 40, [0.0] + [1.0] * 39, [0.0] * 10 + [1.0] * 30)
    )
    assert (none.change, none.low, none.high, none.is_fall) == (0, 0, 0, False)
    assert not noise.is_fall and fall.is_fall and fall.change == -0.25
    assert changes(report(1.0), {"recalls": {}}) == []


def test_only_questions_that_both_have_are_compared(parts):
    now = to_json([parts[0]], {})
    then = {"recalls": {name: dict(list(recalls.items())[:1]) for name, recalls in now["recalls"].items()}}
    assert {change.questions for change in changes(now, then)} == {1}
