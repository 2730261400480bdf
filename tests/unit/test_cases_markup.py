"""The nasty cases of markdown headings (tests/cases: m01, m03)."""

import pytest

from pipelines.settings import ChunkSettings
from tests.support import case, text_of, titles_at

# m01: fences


def test_m01_only_real_headings_are_headings(built):
    home, expected = built("m01").home, built("m01").case.expected["headings"]
    assert titles_at(home, "fences.md", "level") == expected


def test_m01_an_unclosed_fence_belongs_to_its_section(built):
    home = built("m01").home
    text = text_of(built("m01").root / "fences.md")
    at = text.index("# never closed")
    (chunk,) = [row for row in home.rows("chunks", "fences.md") if row["start"] <= at < row["end"]]
    assert "Fences > Real six" in chunk["trail"]
    (inner,) = [row["name"] for row in home.headings("fences.md") if row["start"] <= at < row["end"]][-1:]
    assert inner == "Fences > Real six"


# m03: headings at the edges of the format


def test_m03_exactly_the_headings_of_commonmark(built):
    home, expected = built("m03").home, built("m03").case.expected["headings"]
    levels = [
        {"level": row["markup_level"], "title": row["title"], "start": row["start"]}
        for row in with_markup_levels(home, "edges.md", built("m03").root)
    ]
    assert levels == expected
    assert [{"title": row["title"], "start": row["start"]} for row in home.headings("edges.md")] == [
        {"title": row["title"], "start": row["start"]} for row in expected
    ]


def test_m03_lines_that_look_like_headings_are_not(built):
    found = {row["title"] for row in built("m03").home.headings("edges.md")}
    assert not {"No space so no heading", "Indented four is code", "seven is text", "# seven is text"} & found


ANIMALS = ["aardvark", "bandicoot", "cassowary", "dugong", "echidna", "fossa", "gerenuk", "hoatzin"]


@pytest.mark.parametrize("animal", ANIMALS)
@pytest.mark.parametrize("section", [0, 600])
def test_m03_each_animal_is_in_one_chunk_and_found_there(animal, section, tmp_path, new_home):
    home = new_home(chunking=ChunkSettings(section=section, strategy="units"))
    home.build(case("m03").copy_to(tmp_path / "tree"))
    holders = [row["chunk_id"] for row in home.rows("chunks") if animal in row["text"]]
    assert [result.chunk_id for result in home.search(animal)] == holders
    assert len(holders) == 1


def test_m03_equal_titles_are_sections_of_their_own(built):
    home = built("m03").home
    text = text_of(built("m03").root / "edges.md")
    around = {}
    for animal in ("cassowary", "dugong", "echidna"):
        at = text.index(animal)
        around[animal] = [row for row in home.headings("edges.md") if row["start"] <= at < row["end"]][-1]
    assert [around[animal]["name"].split(" > ") for animal in around] == [
        ["C#", "Usage"],
        ["C#", "Usage", "Usage"],
        ["C#", "Usage"],
    ]
    assert len({row["start"] for row in around.values()}) == 3


def test_m03_the_last_heading_ends_with_the_file(built):
    last = built("m03").home.headings("edges.md")[-1]
    assert (last["title"], last["end"]) == ("Last, nothing below", built("m03").case.expected["length"])
    assert built("m03").home.rows("chunks")[-1]["end"] == built("m03").case.expected["length"]


def with_markup_levels(home, path, root):
    """Headings with the level that the file's own markup gives them, found by the independent parser."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text_of(root / path))
    levels = {token.map[0] + 1: int(token.tag[1:]) for token in tokens if token.type == "heading_open"}
    return [row | {"markup_level": levels[row["name_line"]]} for row in home.headings(path)]
