"""Links of docs: what they lead to, and what is none."""

import pytest

from pipelines.code.doclinks import link_pages, page_links, slug
from pipelines.code.link import Linker
from pipelines.code.modules import Modules
from tests.unit.code.conftest import facts_of

CODE = {
    "pkg/__init__.py": "from .engine import Engine\n",
    "pkg/engine.py": "class Base:\n    def stop(self): 1\nclass Engine(Base):\n    def step(self): 1\n"
    "engine = Engine()\n",
    "other.py": "class Twin:\n    def go(self): 1\n",
    "another.py": "class Twin:\n    def go(self): 1\n",
}
PAGES = {
    "docs/use.md": "# Use\n\n## Set up\n\n## Set up\n\n[](){ #own }\n\n### Details { #deep }\n",
    "docs/README.md": "# Docs\n",
    "docs/api.rst": "API\n===\n\nText.\n",
}
FILES = [*CODE, *PAGES, "docs/pic.png", "run.sh"]


def targets(text: str, path: str = "docs/page.md", format: str = "markdown") -> list[tuple[str, str, str]]:
    pages = [page_links(name, body, "sections" if name.endswith("rst") else "markdown") for name, body in PAGES.items()]
    pages.append(page_links(path, text, format))
    sites = link_pages(pages, [*FILES, path], Linker(Modules(facts_of(CODE)), {}))
    for site in sites:
        assert text[site.start : site.end] and text.count("\n", 0, site.start) + 1 == site.line
    return [(site.source, site.target, site.tier) for site in sites]


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("[a](use.md)", "docs/use.md"),
        ("[a](./use.md#set-up)", "docs/use.md::Use > Set up"),
        ("[a](use.md#nowhere)", "docs/use.md"),
        ("[a](use)", "docs/use.md"),
        ("[a](../run.sh)", "run.sh"),
        ("[a](.)", "docs/README.md"),
        ("[a](/docs/use.md)", "docs/use.md"),
        ("[a](../pkg/engine.py#L4)", "pkg/engine.py::Engine.step"),
        ("[a](gh-file:pkg/engine.py)", "pkg/engine.py"),
        ("<gh-file:pkg/engine.py>", "pkg/engine.py"),
        ("[a][b]\n\n[b]: use.md", "docs/use.md"),
        ("[`text`][pkg.Engine]", "pkg/engine.py::Engine"),
        ("[pkg.engine.Engine.step][]", "pkg/engine.py::Engine.step"),
        ("[text][own]", "docs/use.md::Use > Set up > Details { #deep }"),
        ("`pkg.engine.Engine.stop`", "pkg/engine.py::Base.stop"),
        ("`Engine.step()`", "pkg/engine.py::Engine.step"),
        ("`engine.step`", "pkg/engine.py::Engine.step"),
        ("`pkg/engine.py`", "pkg/engine.py"),
    ],
)
def test_targets(text, target):
    assert [found for _, found, _ in targets(text)] == [target]


@pytest.mark.parametrize(
    "text",
    [
        "[a](https://example.org/docs/use.md)",
        "[a](mailto:use.md)",
        "[a](missing.md)",
        "```\n[a](use.md) `Engine.step`\n```",
        "    [a](use.md)",
        "`[a](use.md)`",
        "`Engine`, `step`, `Twin.go`, `numpy.array`, `v1.2`",
        "[text][torch.nn.Module]",
        "![a](pic.png)",
        "[self](page.md)",
    ],
)
def test_no_links(text):
    assert targets(text) == []


def test_the_source_is_the_innermost_heading():
    text = "[a](use.md)\n\n# One\n\n## Two\n\n[a](use.md)\n\n# Three\n\n`Engine.step`\n"
    assert targets(text) == [
        ("docs/page.md", "docs/use.md", "link"),
        ("docs/page.md::One > Two", "docs/use.md", "link"),
        ("docs/page.md::Three", "pkg/engine.py::Engine.step", "name"),
    ]


def test_restructured_text():
    text = (
        "Title\n=====\n\nSee :class:`~pkg.engine.Engine` and `the guide <use.md>`_.\n\n::\n\n    :class:`pkg.Engine`\n"
    )
    assert targets(text, "docs/page.rst", "sections") == [
        ("docs/page.rst::Title", "pkg/engine.py::Engine", "name"),
        ("docs/page.rst::Title", "docs/use.md", "link"),
    ]


def test_repeated_headings_have_numbered_anchors():
    assert [anchors for _, anchors in page_links("a.md", PAGES["docs/use.md"], "markdown").headings] == [
        ["use"],
        ["set-up"],
        ["set-up-1"],
        ["details", "deep", "own"],
    ]
    assert slug("Café & C++ (2)") == "café--c-2"
