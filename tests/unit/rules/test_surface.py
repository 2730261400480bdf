"""What the surface of Python shows."""

import ast

from hypothesis import given
from hypothesis import strategies as st

from pipelines.rules.surface import read_surface

CODE = '''class Outer(base.Base, Generic[T], metaclass=Meta):
    """Text that says def no(self): nope()."""

    def first(self, x=make_it()):
        # not_this()
        value = Thing(
            other_call(),
        )
        return self.second(len(x))

    async def second(self):
        def inner():
            run_it("call_me()")
        inner()


def last(): return Outer()
'''


def test_definitions_bases_and_calls():
    found = read_surface(CODE)
    assert found.edges == {
        ("Outer", "INHERITS_FROM", "Base"),
        ("first", "DEFINED_IN", "Outer"), ("second", "DEFINED_IN", "Outer"), ("inner", "DEFINED_IN", "second"),
        ("first", "CALLS", "make_it"), ("first", "CALLS", "Thing"), ("first", "CALLS", "other_call"),
        ("first", "CALLS", "second"), ("inner", "CALLS", "run_it"), ("second", "CALLS", "inner"),
        ("last", "CALLS", "Outer"),
    }  # fmt: skip
    assert found.types["Thing"] == found.types["Base"] == "Class" and found.types["run_it"] == "Function"


def test_a_piece_that_begins_in_the_middle():
    assert read_surface("        return go_on()\n\n    def f(self):\n        g_h()\n").edges == {("f", "CALLS", "g_h")}


@given(st.text(st.sampled_from("def class:()\n \"'#A_b,.=[]"), max_size=80))
def test_any_text_is_read(text):
    found = read_surface(text)
    assert all({source, target} <= {*found.types, source} for source, _, target in found.edges)
    assert all(source != target for source, relation, target in found.edges if relation == "CALLS")


def test_it_finds_the_definitions_that_the_parser_finds():
    names = {node.name for node in ast.walk(ast.parse(CODE)) if hasattr(node, "name")}
    assert names <= set(read_surface(CODE).types)
