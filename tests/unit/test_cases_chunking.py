"""The nasty cases of text, offsets, definitions and headings (tests/cases: c01 to c10)."""

import ast
import json

import pytest

from pipelines.dense.index import load_vectors
from pipelines.lexical.index import load_index
from pipelines.retrieve.rankers import Dense
from pipelines.retrieve.search import search
from pipelines.settings import ChunkSettings
from tests.embedding import FakeEncoder, embed
from tests.support import as_defined, assert_covered, assert_exact, case, line_of, text_of, titles_at, without_kind

TREES = ["c01", "c02", "c04", "c05", "c07", "c08", "c09", "c10", "m01", "m03"]


@pytest.mark.parametrize("name", TREES)
def test_every_chunk_is_its_piece_of_the_decoded_file(built, name):
    assert_exact(built(name).home, built(name).root)


@pytest.mark.parametrize("name", TREES)
@pytest.mark.parametrize("strategy", ["packed", "units", "windows"])
def test_chunks_of_each_file_hold_every_character_once(name, strategy, tmp_path, new_home):
    root = case(name).copy_to(tmp_path / "tree")
    home = new_home(chunking=ChunkSettings(strategy=strategy, cap=700))
    home.build(root)
    assert_exact(home, root)
    for row in home.rows("files"):
        assert_covered(text_of(root / row["path"]), home.rows("chunks", row["path"]))
    assert all(len(row["text"]) <= 700 for row in home.rows("chunks"))


def test_the_command_builds_all_of_them_and_accounts_for_every_file(tmp_path, cli):
    for name in TREES:
        case(name).copy_to(tmp_path / "trees" / name)
    assert cli("run", "--corpus", str(tmp_path / "trees")).code == 0
    report = cli("status", "--skipped", "--json").json
    files = {file.relative_to(tmp_path / "trees").as_posix() for file in (tmp_path / "trees").rglob("*.*")}
    assert report["files"] + report["skipped"] == len(files)
    assert {asset["state"] for asset in report["assets"]} == {"fresh"}
    problems = {row["path"] for row in report["problem_list"]}
    assert {"c05/wrong_cookie.py", "c05/unknown_cookie.py", "c07/d_paren.py"} <= problems <= files


# c01: characters beyond the basic plane, names that Python normalises


def test_c01_definitions_have_their_names_and_spans(built):
    case_ = built("c01")
    expected = case_.case.expected
    found = case_.home.definitions("astral.py")
    assert as_defined(found) == without_kind(expected["defs"])
    kinds = {"FunctionDef": "function", "AsyncFunctionDef": "function", "ClassDef": "class"}
    assert {name: row["kind"] for name, row in found.items()} == {
        row["qualname"]: kinds[row["kind"]] for row in expected["defs"]
    }
    assert len(text_of(case_.root / "astral.py")) == expected["length_chars"]


def test_c01_a_definition_ends_before_the_comment_behind_it(built):
    text = text_of(built("c01").root / "astral.py")
    row = built("c01").home.definitions("astral.py")["naïve_σ"]
    assert text[row["start"] : row["end"]].endswith("dead = 1")


def test_c01_definitions_are_what_python_itself_cuts_out(built):
    text = text_of(built("c01").root / "astral.py")
    found = built("c01").home.definitions("astral.py").values()
    nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    segments = {ast.get_source_segment(text, node) for node in nodes}
    assert segments < {text[row["start"] : row["end"]] for row in found}


def test_c01_names_are_nfkc(built):
    assert {"find_first", "Ω.éclair"} <= set(built("c01").home.definitions("astral.py"))


def test_c01_headings_have_character_offsets(built):
    assert titles_at(built("c01").home, "astral.md") == built("c01").case.expected["headings"]


# c02: equal texts


def test_c02_equal_methods_have_their_own_spans(built):
    found = built("c02").home.definitions("twins.py")
    closes = {name: row for name, row in found.items() if name.endswith(".close")}
    assert as_defined(closes) == without_kind(built("c02").case.expected["close_spans"])


def test_c02_equal_paragraphs_are_cited_each_under_its_own_heading(built):
    home, offsets = built("c02").home, built("c02").case.expected["paragraph_offsets"]
    around = [
        [row["title"] for row in home.headings("notes.md") if row["start"] <= offset < row["end"]][-1]
        for offset in offsets
    ]
    assert around == ["Guide", "Linux", "macOS", "Windows"]
    assert [sum(row["start"] <= at < row["end"] for row in home.rows("chunks", "notes.md")) for at in offsets] == [
        1
    ] * 4


def test_c02_equal_paragraphs_are_four_results_when_sections_are_chunks(tmp_path, new_home):
    home = new_home(chunking=ChunkSettings(strategy="units", section=0))
    home.build(case("c02").copy_to(tmp_path / "tree"))
    offsets = case("c02").expected["paragraph_offsets"]
    found = [result for result in home.search("See the note below before you start", 10) if result.path == "notes.md"]
    assert sorted(result.start + result.text.index("See the note") for result in found) == offsets
    assert len({result.chunk_id for result in found}) == 4
    assert sorted(result.part.name for result in found) == [
        "Guide", "Guide > Linux", "Guide > Windows", "Guide > macOS",
    ]  # fmt: skip


def test_c02_equal_chunks_of_one_file_have_different_ids(tree, new_home):
    (tree / "same.txt").write_text(("words " * 30 + "\n\n") * 4)
    home = new_home(chunking=ChunkSettings(cap=200, strategy="windows"))
    home.build(tree)
    rows = home.rows("chunks")
    assert len({row["text_hash"] for row in rows}) == 1
    assert len({row["chunk_id"] for row in rows}) == len(rows) == 4


def test_c02_windows_go_on_where_the_last_one_ended(built):
    expected = built("c02").case.expected
    text = text_of(built("c02").root / "units.conf")
    rows = built("c02").home.rows("chunks", "units.conf")
    assert len(text) == expected["conf_length"]
    assert [row["start"] for row in rows] == sorted(row["start"] for row in rows)
    ends = [0, *(row["end"] for row in rows)]
    starts = [*(row["start"] for row in rows), len(text)]
    assert all(not text[end:start].strip() for end, start in zip(ends, starts, strict=True))


def test_c02_only_the_window_of_the_odd_value_holds_it(built):
    at = built("c02").case.expected["conf_31_offset"]
    for row in built("c02").home.rows("chunks", "units.conf"):
        assert ("timeout = 31" in row["text"]) == (row["start"] <= at < row["end"])


def test_c02_embedding_equal_texts_once_loses_no_citation(tmp_path, new_home):
    """Every chunk is found by its own text as the question, those whose text another has, too."""
    home, encoder = new_home(), FakeEncoder()
    home.build(case("c02").copy_to(tmp_path / "tree"))
    assert embed(home, encoder).embedded == len(set(encoder.asked))
    index = load_index(home.settings)
    ranker = Dense(index, load_vectors(home.settings, index), encoder)
    for row in home.rows("chunks"):
        found = {result.chunk_id for result in search(ranker, row["text"], len(index))}
        assert {other["chunk_id"] for other in home.rows("chunks") if other["text"] == row["text"]} <= found


# c04: line ends


@pytest.mark.parametrize("file", ["win", "mixed"])
def test_c04_definitions_have_their_lines_whatever_ends_them(built, file):
    assert as_defined(built("c04").home.definitions(f"{file}.py")) == without_kind(built("c04").case.expected[file])


def test_c04_offsets_are_those_of_the_untranslated_text(built):
    root = built("c04").root
    for row in built("c04").home.rows("chunks"):
        with (root / row["path"]).open(newline="", encoding="utf-8") as file:
            assert file.read()[row["start"] : row["end"]] == row["text"]


def test_c04_headings_have_no_carriage_return_in_them(built):
    assert titles_at(built("c04").home, "win.md") == built("c04").case.expected["md_heads"]


def test_c04_a_row_is_cited_at_its_line(built):
    text = text_of(built("c04").root / "rows.txt")
    at = text.index("row 299")
    (row,) = [row for row in built("c04").home.rows("chunks", "rows.txt") if row["start"] <= at < row["end"]]
    assert line_of(text, at) == 300
    assert row["start_line"] + line_of(row["text"], at - row["start"]) - 1 == 300


# c05: encodings


def test_c05_python_with_a_mark_or_a_cookie_is_parsed(built):
    home = built("c05").home
    for path, name in (("bom.py", "from_bom"), ("latin1.py", "from_latin"), ("cp1251.py", "from_cyrillic")):
        assert home.definitions(path)[name]["kind"] == "function"


def test_c05_text_is_decoded_as_its_cookie_says(built):
    for path, words in (("latin1.py", "café üß"), ("cp1251.py", "Привет")):
        text = "".join(row["text"] for row in built("c05").home.rows("chunks", path))
        assert words in text
        assert "\ufffd" not in text


def test_c05_headings_and_chunks_do_not_begin_with_the_mark(built):
    home = built("c05").home
    assert [row["title"] for row in home.headings("bom.md")] == ["Title after mark", "Next"]
    assert not any(row["text"].startswith("\ufeff") for row in home.rows("chunks"))
    assert not any(row["title"].startswith("\ufeff") for row in home.rows("outline"))


@pytest.mark.parametrize("name", ["wrong", "unknown"])
def test_c05_a_cookie_that_lies_is_reported_and_its_text_found(built, name):
    home = built("c05").home
    assert "cookie" in home.problems()[f"{name}_cookie.py"]
    assert f"{name}_cookie.py" in home.paths(f"from_{name}")


def test_c05_nothing_else_is_reported(built):
    assert set(built("c05").home.problems()) == {"wrong_cookie.py", "unknown_cookie.py"}


@pytest.mark.parametrize(("query", "path"), [("wombat", "utf16.txt"), ("zebra", "bom.py"), ("quokka", "bom.md")])
def test_c05_words_of_every_encoding_are_found(built, query, path):
    holders = {row["path"] for row in built("c05").home.rows("chunks") if query in row["text"].lower()}
    assert holders
    assert set(built("c05").home.paths(query, 10)) == holders


def test_c05_utf16_is_not_indexed_as_nulls(built):
    (row,) = built("c05").home.rows("chunks", "utf16.txt")
    assert "wombat" in row["text"]
    assert "\0" not in row["text"]


# c07: nesting that breaks recursion


def test_c07_what_python_parses_is_parsed(built):
    home = built("c07").home
    for path in ("a_sum900.py", "e_chain.py", "f_elif.py", "g_dict.py"):
        assert {"before", "after"} <= set(home.definitions(path))
        assert path not in home.problems()
    assert "chain" in home.definitions("e_chain.py")
    assert "pick" in home.definitions("f_elif.py")
    assert "good" in home.definitions("z_good.py")


@pytest.mark.parametrize("path", ["b_sum4000.py", "c_neg.py", "d_paren.py"])
def test_c07_what_python_refuses_is_reported_and_kept_as_text(built, path):
    home = built("c07").home
    text = text_of(built("c07").root / path)
    try:
        ast.parse(text)
    except (SyntaxError, RecursionError, MemoryError):
        assert home.problems()[path]
        assert not home.definitions(path)
    else:
        assert {"before", "after"} <= set(home.definitions(path))
    assert_covered(text, home.rows("chunks", path))


# c08: one-line giants


def test_c08_no_chunk_is_longer_than_the_cap(built):
    home = built("c08").home
    assert max(len(row["text"]) for row in home.rows("chunks")) <= home.settings.chunking.cap


def test_c08_all_of_each_giant_is_kept(built):
    home, lengths = built("c08").home, built("c08").case.expected["lengths"]
    assert {row["path"]: row["characters"] for row in home.rows("documents")} == lengths
    for path in lengths:
        assert_covered(text_of(built("c08").root / path), home.rows("chunks", path))


@pytest.mark.parametrize(
    ("query", "path"),
    [("NARWHAL", "app.min.js"), ("PANGOLIN", "data.json"), ("熊猫", "cjk.txt"), ("AXOLOTL", "pic.md")],
)
def test_c08_the_last_word_of_a_giant_is_found(built, query, path):
    assert built("c08").home.paths(query)[0] == path


def test_c08_the_function_below_the_blob_is_found(built):
    home, expected = built("c08").home, built("c08").case.expected["after_blob"]
    found = home.definitions("blob.py")
    assert found["after_blob"]["kind"] == "function"
    assert as_defined({"after_blob": found["after_blob"]}) == without_kind([expected])
    own = text_of(built("c08").root / "blob.py")[expected["start"] : expected["end"]]
    assert any(own in row["text"] for row in home.rows("chunks", "blob.py"))


def test_c08_the_heading_below_the_picture_is_found(built):
    assert "After picture" in [row["title"] for row in built("c08").home.headings("pic.md")]


# c09: nothing to index


def test_c09_no_chunk_is_blank(built):
    rows = built("c09").home.rows("chunks")
    assert rows
    assert all(row["text"].strip() for row in rows)


def test_c09_all_files_are_documents(built):
    home = built("c09").home
    assert len(home.rows("documents")) + len(home.rows("skipped")) == 11
    assert all(row["chunks"] or row["parser"] for row in home.rows("documents"))


@pytest.mark.parametrize(("query", "path"), [("kinkajou", "real.md"), ("tapir", "docstring.py")])
def test_c09_the_few_words_that_are_there_are_found(built, query, path):
    assert built("c09").home.paths(query)[0] == path


def test_c09_headings_without_bodies_are_structure(built):
    home = built("c09").home
    assert [row["title"] for row in home.headings("headings.md")] == ["A", "B", "C"]
    assert all(row["end"] > row["start"] for row in home.headings("headings.md"))


def test_c09_a_corpus_without_words_has_no_sources(tmp_path, home, cli):
    root = case("c09").copy_to(tmp_path / "tree")
    (root / "real.md").unlink()
    (root / "docstring.py").unlink()
    home.build(root)
    said = cli("search", "kinkajou")
    assert (said.code, "No sources" in said.out) == (0, True)
    assert cli("search", "kinkajou", "--json").hits == []


def test_c09_an_empty_folder_is_built_and_says_that_nothing_was_indexed(tree, cli):
    said = cli("run", "--corpus", str(tree))
    assert said.code == 0
    assert "nothing to index" in said.out
    found = cli("search", "x")
    assert (found.code, "No sources" in found.out) == (0, True)
    assert cli("search", "x", "--json").hits == []
    assert {asset["state"] for asset in cli("status", "--json").json["assets"]} == {"fresh"}


def test_c09_nothing_is_left_pending(tmp_path, cli):
    assert cli("run", "--corpus", str(case("c09").copy_to(tmp_path / "tree"))).code == 0
    assert {asset["state"] for asset in cli("status", "--json").json["assets"]} == {"fresh"}


def test_c09_recall_over_an_empty_corpus_divides_by_nothing(tree, tmp_path, home, cli):
    home.build(tree)
    source = {"file_path": "a.md", "first_character_index": 0, "last_character_index": 10}
    questions = tmp_path / "questions.json"
    asked = {"question_id": "1", "question": "where is it", "sources": [source]}
    questions.write_text(json.dumps({"rag_questions": [asked]}))
    said = cli("evaluate", str(questions))
    assert (said.code, said.out) == (1, "")
    assert "another corpus" in said.err


# c10: notebooks


def test_c10_every_shape_of_notebook_is_a_document(built):
    assert len(built("c10").home.rows("documents")) == 7


@pytest.mark.parametrize(
    ("query", "path"),
    [("otters", "list_source.ipynb"), ("score_otter", "list_source.ipynb"), ("score_heron", "str_source.ipynb")],
)
def test_c10_words_of_cells_are_found(built, query, path):
    assert path in built("c10").home.paths(query)


def test_c10_no_chunk_is_longer_than_the_cap(built):
    home = built("c10").home
    assert all(len(row["text"]) <= home.settings.chunking.cap for row in home.rows("chunks"))


def test_c10_notebooks_are_text_so_that_magics_stop_nothing(built):
    assert {row["format"] for row in built("c10").home.rows("files")} == {"text"}
    text = "".join(row["text"] for row in built("c10").home.rows("chunks", "list_source.ipynb"))
    assert "%matplotlib" in text
    assert "!pip" in text


def test_case_json_is_not_changed_by_git():
    """.gitattributes keeps the line ends of the cases: these four files have carriage returns."""
    folder = case("c04").folder / "tree"
    assert all(b"\r" in (folder / name).read_bytes() for name in ("win.py", "mixed.py", "win.md", "rows.txt"))
    assert json.loads((case("c04").folder / "case.json").read_bytes())["id"] == "c04-crlf-mixed"
