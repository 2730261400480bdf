"""Properties of facts and links on random small trees."""

import ast
import json
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.code.facts import file_facts, from_row, to_row
from pipelines.code.link import link
from pipelines.settings import PROJECT
from tests.unit.code.conftest import facts_of

PATHS = ["a.py", "b.py", "pkg/__init__.py", "pkg/c.py", "pkg/sub/d.py", "tests/conftest.py", "tests/test_e.py"]
LINES = [
    "from a import *",
    "from b import f, A",
    "import pkg.c",
    "from pkg import c as b",
    "from . import c",
    "from ..c import f",
    "def f(x: 'A' = None): return g(x)",
    "def g(y): return A().m(f(y))",
    "class A:\n    def m(self, z): return self.m(f(z))",
    "from pkg.c import A\nclass B(A):\n    def m(self, z): return super().m(z)",
    "x = A()\nx.m(f)",
    "f = g",
    "T = {'f': '.c:f'}",
    "def __getattr__(name): ...",
    "import pytest\n@pytest.fixture\ndef fix(): return A()",
    "def test_f(fix): fix.m(1)",
    "try:\n    from b import A\nexcept ImportError:\n    A = None",
    "y = [A() for i in x]\ny[0].m(1)",
    "v = lambda: f(1)\nv()",
]
trees = st.dictionaries(st.sampled_from(PATHS), st.lists(st.sampled_from(LINES), max_size=6).map("\n".join), max_size=6)


@given(trees, st.randoms(use_true_random=False))
def test_the_order_of_files_does_not_matter(tree, order):
    facts = facts_of(tree)
    shuffled = list(facts)
    order.shuffle(shuffled)
    assert link(shuffled) == link(facts)


@given(trees)
def test_facts_survive_their_stored_form(tree):
    facts = facts_of(tree)
    stored = [from_row(json.loads(json.dumps(to_row(one)))) for one in facts]
    assert stored == facts
    assert link(stored) == link(facts)


@given(trees, trees)
def test_linking_after_edits_equals_linking_from_scratch(before, edits):
    kept = {facts.path: facts for facts in facts_of(before)}
    link(kept.values())
    for path, text in edits.items():
        if text:
            kept[path] = file_facts(path, text)
        else:
            kept.pop(path, None)
    after = {**before, **edits}
    assert link(kept.values()) == link(
        facts_of({path: text for path, text in after.items() if text or path not in edits})
    )


@given(trees)
def test_both_ends_of_an_edge_exist_and_places_are_real(tree):
    facts = facts_of(tree)
    ids = {one.symbol_id(number) for one in facts for number in range(len(one.symbols))}
    for site in link(facts).sites:
        assert {site.source, site.target} <= ids
        assert 0 <= site.start < site.end <= len(tree[site.path])
        assert tree[site.path].count("\n", 0, site.start) + 1 <= site.line


def test_hash_seeds_do_not_matter():
    script = (
        "import random\nfrom tests.unit.code.test_properties import *\n"
        "tree = {path: '\\n'.join(random.Random(path).sample(LINES, 6)) for path in PATHS}\n"
        "print(link(facts_of(tree)))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            cwd=PROJECT,
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1 and outputs.pop().strip()


@pytest.mark.parametrize(
    "text",
    [
        "x = " + "+".join(["f()"] * 800) + "\ndef f(): 1\n",
        "x = f" + "()" * 800 + "\ndef f(): 1\n",
        "x = f()" + ".a" * 800 + "\ndef f(): 1\n",
        "x = " + "1 if f() else " * 80 + "2\ndef f(): 1\n",
        "def f(): 1\n" + "".join(f"def f{n}(): return f{n + 1}()\n" for n in range(800)) + "x = f0().a\nf()\n",
        "".join(f"class C{n}(C{n - 1}): pass\n" if n else "class C0: pass\n" for n in range(400))
        + "def f(): C399()\nf()\n",
        "if 1: pass\n" + "elif f(): pass\n" * 900 + "def f(): 1\n",
    ],
)
def test_nothing_is_too_deep(text):
    sites = link([file_facts("deep.py", text)]).sites
    assert [site for site in sites if site.target == "deep.py::f" and site.relation == "CALLS"]


@given(st.lists(st.sampled_from(LINES), max_size=8).map("\n".join))
def test_symbols_are_what_python_itself_defines(text):
    """Against CPython's compiler: every code object of a function or class is a symbol, by its qualified name."""
    pending, names = [compile(ast.parse(text), "a.py", "exec")], set()
    while pending:
        for constant in pending.pop().co_consts:
            if hasattr(constant, "co_qualname"):
                pending.append(constant)
                names.add(constant.co_qualname)
    names = {name for name in names if not name.endswith(">")}
    symbols = {row[1] for row in file_facts("a.py", text).symbols if row[0] in ("function", "class")}
    assert names == symbols - {"v", "f"} | names & {"f"}
