"""What the linker resolves, and what it must leave alone."""

import textwrap

import pytest


def code(text: str) -> str:
    return textwrap.dedent(text).lstrip("\n")


SHAPES = code("""
    class Shape:
        def area(self): return 0
        def describe(self): return self.area()
        def clone(self): return self
        @classmethod
        def unit(cls): return cls()
        @staticmethod
        def parse(text): return text
        @property
        def outline(self) -> 'Outline': return Outline()

    class Outline:
        def draw(self): pass

    class Square(Shape):
        def area(self): return super().area()

    def make() -> Shape: return Shape()
    def anything(): return Square()
    TABLE = {'a': Square, 'b': Shape}
    default = Square()
    alias = make
""")


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        ("Square().describe()", ["Square", "Shape.describe"]),
        ("Shape.unit().area()", ["Shape.unit", "Shape.area"]),
        ("Square.unit().area()", ["Shape.unit", "Square.area"]),
        ("Square().clone().area()", ["Square", "Shape.clone", "Square.area"]),
        ("Shape.parse('x')", ["Shape.parse"]),
        ("make().area()", ["make", "Shape.area"]),
        ("anything().area()", ["anything", "Square.area"]),
        ("alias()", ["make"]),
        ("default.area()", ["Square.area"]),
        ("Shape().outline.draw()", ["Shape", "Shape.outline", "Outline.draw"]),
        ("x: Shape = get()\nx.area()", ["Shape.area"]),
        ("x: 'Shape | None' = get()\nx.area()", ["Shape.area"]),
        ("x = Shape() if get() else Square()\nx.area()", ["Shape", "Square", "Shape.area", "Square.area"]),
        ("x = Shape()\nx = Square()\nx.area()", ["Shape", "Square", "Square.area"]),
        ("x = None\nfor i in get():\n    if x: x.area()\n    x = Shape()", ["Shape", "Shape.area"]),
        ("if get():\n    x = Shape()\nelse:\n    raise ValueError\nx.area()", ["Shape", "Shape.area"]),
        ("xs: list[Shape] = get()\nfor x in xs: x.area()", ["Shape.area"]),
        ("xs: dict[str, Shape] = get()\nfor k, x in xs.items(): x.area()", ["Shape.area"]),
        ("[x.area() for x in [Square()]]", ["Square", "Square.area"]),
        ("x = get()\nif isinstance(x, Shape): x.area()", ["Shape.area"]),
        ("x = get()\nif not isinstance(x, Shape): return\nx.area()", ["Shape.area"]),
        ("x = get()\nassert isinstance(x, (Shape, Square))\nx.area()", ["Shape.area", "Square.area"]),
        ("with Shape() as x: x.area()", ["Shape", "Shape.area"]),
        ("TABLE['a']().area()", ["Square", "Square.area"]),
        ("TABLE[get()]()", ["Shape", "Square"]),
        ("f = lambda: make()\nf()", ["g.<locals>.f"]),
        ("type(default)().area()", ["Square", "Square.area"]),
        ("(y := Shape()).area()\ny.clone()", ["Shape", "Shape.area", "Shape.clone"]),
        ("import typing\ntyping.cast(Shape, get()).area()", ["Shape.area"]),
        ("import functools\nfunctools.partial(make, 1)().area()", ["make", "Shape.area"]),
    ],
)
def test_receivers(body, wanted, edges):
    function = "def g(get):\n" + textwrap.indent(body, "    ") + "\n"
    found = edges({"a.py": SHAPES + function})
    assert sorted(target for source, target in found if source == "a.py::g") == sorted(
        f"a.py::{name}" for name in wanted
    )


@pytest.mark.parametrize(
    "body",
    [
        "def g(make): make()",
        "def g():\n    make = len\n    make()",
        "def g():\n    for make in []: make()",
        "def g(x): x.area()",
        "def g():\n    try: pass\n    except E as make: make()",
        "g = [make() for make in []]",
        "class C:\n    def make(self): return 1\n    def g(self): return area()",
        "def g(xs):\n    xs.append(1)\n    open('f').close()",
    ],
)
def test_no_guesses(body, edges):
    assert not edges({"a.py": SHAPES + body, "b.py": "def append(): 1\ndef close(): 1\ndef area(): 1\n"}) - edges(
        {"a.py": SHAPES}
    )


def test_methods_resolve_in_the_order_of_c3(edges):
    tree = {
        "a.py": code("""
            class A:
                def f(self): pass
            class B(A): pass
            class C(A):
                def f(self): super().f()
            class D(B, C):
                def g(self): self.f()
        """)
    }
    assert edges(tree) == {("a.py::D.g", "a.py::C.f"), ("a.py::C.f", "a.py::A.f")}


def test_our_order_of_bases_is_pythons_own():
    from pipelines.code.classes import linearize

    class Mirror:
        def __init__(self, cls, bases):
            self.cls, self.mro = cls, [self]
            self.mro = linearize(self, bases)

    class A: ...

    class B(A): ...

    class C(A): ...

    class D(C, B): ...

    class E(B): ...

    class F(D, E): ...

    mirrors = {}
    for cls in (A, B, C, D, E, F):
        mirrors[cls] = Mirror(cls, [mirrors[base] for base in cls.__bases__ if base is not object])
        assert [mirror.cls for mirror in mirrors[cls].mro] == list(cls.__mro__[:-1])


def test_type_variables_of_bases_and_functions(edges):
    tree = {
        "a.py": code("""
            from typing import Generic, TypeVar
            T = TypeVar('T', bound='Info')
            class Info:
                def read(self): pass
            class More(Info):
                def more(self): pass
            class Base(Generic[T]):
                info: T
                def get(self) -> T: ...
                def plain(self): self.info.read()
            class Derived(Base[More]):
                def use(self):
                    self.info.more()
                    self.get().more()
            def build(cls: type[T]) -> T: ...
            def g(): build(More).more()
        """)
    }
    found = edges(tree)
    assert {("a.py::Derived.use", "a.py::More.more"), ("a.py::Base.plain", "a.py::Info.read")} <= found
    assert ("a.py::g", "a.py::More.more") in found


M = {"pkg/m.py": "def f(): 1\n"}
IMPORTS = {
    "star of a package": M | {"pkg/__init__.py": "from .m import *\n", "u.py": "import pkg\npkg.f()\n"},
    "star obeys __all__": {
        "pkg/__init__.py": "from .m import *\n",
        "pkg/m.py": "__all__ = ['f']\ndef f(): 1\n",
        "u.py": "from pkg import f\nf()\n",
    },
    "lazy table": M
    | {"pkg/__init__.py": "T = {'f': '.m:f'}\ndef __getattr__(name): ...\n", "u.py": "from pkg import f\nf()\n"},
    "lazy import": M
    | {
        "pkg/__init__.py": "def __getattr__(name):\n    if name == 'f':\n        from .m import f\n        return f\n",
        "u.py": "import pkg\npkg.f()\n",
    },
    "type checking": M
    | {"u.py": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from pkg.m import f\nf()\n"},
    "either import": M | {"u.py": "try:\n    from fast import f\nexcept ImportError:\n    from pkg.m import f\nf()\n"},
    "src layout": {"src/pkg/__init__.py": "", "src/pkg/m.py": "def f(): 1\n", "u.py": "from pkg.m import f\nf()\n"},
    "beside a script": {"tools/pkg/m.py": "def f(): 1\n", "tools/u.py": "from pkg import m\nm.f()\n"},
    "submodule": M | {"pkg/__init__.py": "", "u.py": "import pkg.m\npkg.m.f()\n"},
    "re-exported twice": M
    | {
        "pkg/__init__.py": "from .n import f as g\n",
        "pkg/n.py": "from .m import f\n",
        "u.py": "from pkg import g as h\nh()\n",
    },
}


@pytest.mark.parametrize("name", IMPORTS)
def test_imports(name, edges):
    found = edges(IMPORTS[name])
    assert [target.rpartition("/")[2] for source, target in found if source.endswith("u.py")] == ["m.py::f"]


@pytest.mark.parametrize(
    "tree",
    [
        {
            "pkg/__init__.py": "from .m import *\n",
            "pkg/m.py": "__all__ = []\ndef f(): 1\n",
            "u.py": "from pkg import f\nf()\n",
        },
        {"x/pkg/m.py": "def f(): 1\n", "y/pkg/m.py": "def f(): 1\n", "u.py": "from pkg.m import f\nf()\n"},
        {"pkg/__init__.py": "", "pkg/os.py": "def getcwd(): 1\n", "pkg/u.py": "import os\nos.getcwd()\n"},
        {"a.py": "from b import *\n", "b.py": "from a import *\n", "u.py": "from a import f\nf()\n"},
    ],
)
def test_imports_of_something_else(tree, edges):
    assert not edges(tree)


def test_fixtures_dotted_strings_decorators_and_properties(links):
    tree = {
        "tests/conftest.py": code("""
            import pytest
            from pkg.m import A
            @pytest.fixture
            def a():
                yield A()
        """),
        "tests/sub/test_a.py": "def test_a(a):\n    a.run()\n    print('pkg.m.A')\n",
        "pkg/m.py": code("""
            def wrap(f): return f
            class A:
                @wrap
                def run(self): return self.size
                @property
                def size(self): return 1
        """),
    }
    found = {(site.source, site.relation, site.target, site.tier) for site in links(tree).sites}
    test = "tests/sub/test_a.py::test_a"
    assert {
        (test, "CALLS", "tests/conftest.py::a", "fixture"),
        (test, "CALLS", "pkg/m.py::A.run", "typed"),
        (test, "REFERENCES", "pkg/m.py::A", "string"),
        ("pkg/m.py::A.run", "REFERENCES", "pkg/m.py::wrap", "decorator"),
        ("pkg/m.py::A.run", "CALLS", "pkg/m.py::A.size", "property"),
    } <= found


def test_hooks_only_where_they_are_declared(edges):
    tree = {
        "a.py": code("""
            from torch import nn
            class Net(nn.Module):
                def forward(self, x): return x
            def g(): Net()(1)
        """)
    }
    assert edges(tree) == {("a.py::g", "a.py::Net")}
    assert ("a.py::g", "a.py::Net.forward") in edges(tree, hooks={"torch.nn.Module": "forward"})


def test_rebinding_and_redefinition(edges):
    tree = {
        "a.py": code("""
            from typing import overload
            @overload
            def f(x: int) -> 'A': ...
            @overload
            def f(x: str) -> 'B': ...
            def f(x): return x
            class A:
                def go(self): pass
            class B:
                def go(self): pass
            def deco(x): return x
            def h(): return A()
            h = deco(h)
            def g():
                f(1).go()
                h().go()
        """)
    }
    found = {target for source, target in edges(tree) if source == "a.py::g"}
    assert found == {f"a.py::{name}" for name in ("f", "A.go", "B.go", "h")}


def test_what_is_left_out_is_counted_and_listed(links):
    text = "import os\ndef g(x):\n    os.getcwd()\n    print()\n    x.go()\n    nowhere()\n    [].append(1)\n"
    found = links({"a.py": text})
    assert found.counts() == {
        ("call", "builtin"): 1,
        ("call", "builtin attribute"): 1,
        ("call", "external"): 1,
        ("call", "receiver of unknown type"): 1,
        ("call", "unresolved name"): 1,
        ("import", "external"): 1,
    }
    assert [(item.line, item.name) for item in found.unresolved if item.reason == "receiver of unknown type"] == [
        (5, "x.go")
    ]


def test_sites_point_at_the_name_in_the_text(links):
    text = "# 𝒳 é\ndef ﬁnd(): 1\nclass A:\n    def m(self) -> 'A': return (self\n        .m())\nfind(); A().m(\n)\n"
    spans = {(site.relation, text[site.start : site.end], site.line) for site in links({"a.py": text}).sites}
    assert {
        ("CALLS", "m", 5),
        ("CALLS", "find", 6),
        ("CALLS", "m", 6),
        ("CALLS", "A", 6),
        ("REFERENCES", "A", 4),
    } <= spans
