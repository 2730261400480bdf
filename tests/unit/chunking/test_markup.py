"""Headings of markdown and of underlined text."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from pipelines.chunking.lines import Lines
from pipelines.chunking.markup import markdown_headings, parse_markdown, parse_sections, underlined_headings

MARKDOWN = st.lists(
    st.sampled_from(
        ["# A", "## B ##", "### *C* `d` [e](f)", "####### seven", "#no", "Title", "=====", "---", "```", "````", "~~~",
         "```py", "    # code", "- # in a list", "> # quoted", "", "", "text", "\\# x", "<div>", "</div>", "# C\\#",
         "#", "* * *", "[a]: b", "1. x", "   ## three", "\t# tab", "## a <b>c</b> &amp;"]
    ),
    max_size=14,
)  # fmt: skip


@settings(max_examples=150)
@given(MARKDOWN, st.sampled_from(["\n", "\r\n", "\r"]))
def test_headings_are_those_of_the_whole_commonmark_parser(source, end):
    text = "\n".join(source)
    if text.startswith("---\n"):
        return  # may be front matter, which CommonMark does not know
    tokens = MarkdownIt("commonmark").parse(text)
    expected = [
        (int(token.tag[1:]), token.map[0] + 1) for token in tokens if token.type == "heading_open" and token.level == 0
    ]
    found = list(markdown_headings(Lines(text.replace("\n", end))))
    assert [(heading.level, heading.line) for heading in found] == expected


@pytest.mark.parametrize(
    ("line", "title"),
    [("# C#", "C#"), ("# C\\#", "C#"), ("# C# #", "C#"), ("# `x_y` *b* **c** [d](e)", "x_y b c d"), ("#", ""),
     ("# a ![alt](b.png)", "a alt"), ("# a&amp;b", "a&b"), ("# 日本 🚀  x", "日本 🚀 x"), ("# <b>x</b>", "x")],
)  # fmt: skip
def test_a_title_is_without_its_markup(line, title):
    (heading,) = markdown_headings(Lines(line))
    assert heading.title == title


def names(parsed):
    return [entry.name for entry in parsed.outline]


def test_front_matter_is_no_heading_and_a_rule_is_no_front_matter():
    text = "---\ntitle: x\nname: y\n---\n\n# A\n"
    (heading,) = markdown_headings(Lines(text))
    assert (heading.title, heading.line) == ("A", 6)
    assert [heading.title for heading in markdown_headings(Lines("---\n\n# A\n\nB\n---\n"))] == ["A", "B"]


def test_a_section_ends_before_the_next_that_is_not_below_it():
    text = "# A\n\na\n\n## B\n\nb\n\n# C\n\nc\n"
    parsed = parse_markdown(Lines(text), 2000, 600)
    assert [(entry.name, text[entry.start : entry.end]) for entry in parsed.outline] == [
        ("A", "# A\n\na\n\n## B\n\nb"),
        ("A > B", "## B\n\nb"),
        ("C", "# C\n\nc"),
    ]


def test_levels_that_are_left_out_are_no_levels():
    assert names(parse_markdown(Lines("# A\n\n#### B\n\n## C\n"), 2000, 0)) == ["A", "A > B", "A > C"]


def test_small_sections_are_merged_and_the_unit_names_them_all():
    text = "# A\n\na\n\n## B\n\nb\n\n## C\n\nc\n"
    (unit,) = parse_markdown(Lines(text), 2000, 600).units
    assert unit.trail == ("A", "A > B", "A > C")
    assert [unit.trail for unit in parse_markdown(Lines(text), 2000, 0).units] == [("A",), ("A > B",), ("A > C",)]


def test_text_before_the_first_heading_has_no_trail():
    units = parse_markdown(Lines("intro\n\n# A\n\na\n"), 2000, 0).units
    assert [unit.trail for unit in units] == [(), ("A",)]


def test_a_section_above_the_cap_is_cut_and_each_piece_keeps_its_heading():
    text = "# A\n\n" + "some words\n\n" * 60
    units = parse_markdown(Lines(text), 200, 0).units
    assert len(units) > 3
    assert all(unit.trail == ("A",) for unit in units)
    assert all(unit.end - unit.start <= 200 for unit in units)


def underlined(text):
    return [(heading.level, heading.title, heading.line) for heading in underlined_headings(Lines(text))]


def test_underlined_titles_have_levels_in_the_order_their_styles_appear():
    text = "Top\n===\n\nOne\n---\n\nx\n\nDeep\n~~~~\n\nTwo\n---\n"
    assert underlined(text) == [(1, "Top", 1), (2, "One", 4), (3, "Deep", 9), (2, "Two", 12)]


def test_an_overline_makes_another_style_and_the_heading_begins_with_it():
    text = "=====\n Top\n=====\n\nOne\n=====\n"
    assert underlined(text) == [(1, "Top", 1), (2, "One", 5)]
    parsed = parse_sections(Lines(text), 2000, 0)
    assert parsed.outline[0].start == 0
    assert names(parsed) == ["Top", "Top > One"]


@pytest.mark.parametrize(
    "text",
    [
        "a paragraph\nof text\n-------\n", "    code\n----\n", "Title\n==\n", "Longer title\n===\n", "\n-----\n",
        "-----\n-----\n", "=====\n", "====  ====\na     b\n====  ====\n", "Title\n\n=====\n", "Title\n==-==\n",
    ],
)  # fmt: skip
def test_what_only_looks_like_an_underlined_title_is_none(text):
    assert underlined(text) == []


def test_underlined_titles_may_end_in_carriage_returns():
    assert underlined("Top\r\n===\r\n\r\nOne\r---\r") == [(1, "Top", 1), (2, "One", 4)]


def test_a_paragraph_above_a_line_of_dashes_is_called_by_its_beginning():
    words = "word " * 2000
    for text in (f"# Top\n\n{words}\n---\n\nbelow\n", f"{words}\n{'=' * 11000}\n\nbelow\n"):
        parse = parse_markdown if text.startswith("#") else parse_sections
        entry = parse(Lines(text), 2000, 600).outline[-1]
        assert entry.title == f"{words[:199]}…"
        assert entry.name.endswith(entry.title) and len(entry.name) < 210
