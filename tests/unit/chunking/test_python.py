"""Python: definitions, their spans, and what lies between them."""

import ast
import gc

import pytest

from pipelines.chunking.lines import Lines
from pipelines.chunking.python import Unparsable, collector_off, parse_python
from pipelines.settings import PROJECT


def parsed(source, cap=2000):
    return parse_python(Lines(source), cap)


def units(source, cap=2000):
    return [(unit.kind, unit.symbol, source[unit.start : unit.end]) for unit in parsed(source, cap).units]


def test_a_decorator_belongs_to_its_definition():
    source = "import os\n\n\n@first\n@second(\n    1)\ndef f():\n    pass\n"
    assert units(source) == [
        ("code", "", "import os"),
        ("function", "f", "@first\n@second(\n    1)\ndef f():\n    pass"),
    ]
    (entry,) = parsed(source).outline
    assert source[entry.start : entry.end].startswith("@first")
    assert entry.name_line == 7


def test_a_decorator_behind_a_matrix_product_begins_at_its_own_sign():
    source = "x = a @ b\n@ dec\ndef f(): pass\n"
    (entry,) = parsed(source).outline
    assert source[entry.start : entry.end] == "@ dec\ndef f(): pass"


def test_a_class_that_fits_is_one_unit_and_one_that_does_not_is_cut_by_member():
    source = "class A(B):\n    '''doc'''\n\n    def f(self):\n        return 1\n\n    x = 2\n\n"
    source += "    def g(self):\n        pass\n"
    assert [unit[:2] for unit in units(source)] == [("class", "A")]
    assert units(source, cap=60) == [
        ("class", "A", "class A(B):\n    '''doc'''"),
        ("function", "A.f", "    def f(self):\n        return 1"),
        ("class", "A", "    x = 2"),
        ("function", "A.g", "    def g(self):\n        pass"),
    ]


def test_a_class_in_a_class_is_cut_in_its_turn():
    source = "class A:\n    class B:\n"
    source += "        def f(self):\n            return 1\n\n        def g(self):\n            return 2\n"
    assert [unit[:2] for unit in units(source, cap=60)] == [
        ("class", "A"), ("class", "A.B"), ("function", "A.B.f"), ("function", "A.B.g"),
    ]  # fmt: skip


def test_a_definition_that_shares_its_line_takes_the_line_with_it():
    source = "def f(): pass; x = 1\ny = 2\n"
    assert units(source) == [("function", "f", "def f(): pass; x = 1"), ("code", "", "y = 2")]


def test_the_outline_has_every_definition_however_nested():
    source = """
if a:
    def in_if(): pass
elif b:
    class InElif:
        async def m(self):
            def deep(): pass
else:
    try:
        def in_try(): pass
    except E:
        def in_except(): pass
    finally:
        def in_finally(): pass
with a:
    def in_with(): pass
for x in y:
    def in_for(): pass
else:
    def in_for_else(): pass
while x:
    def in_while(): pass
match x:
    case 1:
        def in_case(): pass
"""
    names = [entry.name for entry in parsed(source).outline]
    assert names == [
        "in_if", "InElif", "InElif.m", "InElif.m.<locals>.deep", "in_try", "in_except", "in_finally", "in_with",
        "in_for", "in_for_else", "in_while", "in_case",
    ]  # fmt: skip
    assert [entry.level for entry in parsed(source).outline][:4] == [1, 1, 2, 3]


def test_names_and_spans_are_pythons_own_for_all_our_sources():
    for file in sorted((PROJECT / "pipelines").rglob("*.py")):
        source = file.read_text()
        names = {}

        def visit(node, prefix, names=names):
            for child in ast.iter_child_nodes(node):
                if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                    names[child.lineno] = prefix + child.name
                    inner = "." if isinstance(child, ast.ClassDef) else ".<locals>."
                    visit(child, names[child.lineno] + inner)
                else:
                    visit(child, prefix)

        visit(ast.parse(source), "")
        assert {entry.name_line: entry.name for entry in parsed(source).outline} == names


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("def f(:\n", "line 1: "),
        ("x = 1\nif y:\nz\n", "line 3: "),
        ("x = 1\n\n\0\n", "line "),
        ("(" * 300 + ")" * 300, "nested parentheses"),
        ("x = " + "-" * 200_000 + "1", "nested too deeply"),
        ("x = 'open\n", "line 1: "),
        ("\tx = 1\n        y\n", "line "),
    ],
)
def test_what_python_refuses_is_refused_with_the_line(source, message):
    with pytest.raises(Unparsable, match=message):
        parsed(source)


def test_warnings_of_the_corpus_are_not_ours(recwarn):
    parsed("x = '\\d' is 1\nassert (1, 'x')\n")
    assert list(recwarn) == []


def test_the_collector_is_as_it_was_even_after_an_error():
    def fail():
        with collector_off():
            assert not gc.isenabled()
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    assert gc.isenabled()
    gc.disable()
    try:
        with collector_off():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()
