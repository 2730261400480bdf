"""Small corpora as graphs."""

from collections.abc import Mapping

import pytest

from pipelines.chunking.partition import chunk_text
from pipelines.code.doclinks import link_pages, page_links
from pipelines.code.facts import file_facts
from pipelines.code.link import Linker
from pipelines.code.modules import Modules
from pipelines.graph.build import build_graph
from pipelines.settings import ChunkSettings

CORE = """class Base:
    def run(self):
        return helper()


def helper():
    return LIMIT


LIMIT = 3
"""
MORE = """from pkg.core import Base


class More(Base):
    def go(self):
        self.run()
        self.run()
"""
TREE = {
    "pkg/__init__.py": "",
    "pkg/core.py": CORE,
    "pkg/more.py": MORE,
    "docs/use.md": "# Use\n\nSee [core](../pkg/core.py) and `Base.run`.\n\n## Deeper\n\n[up](#use)\n",
    "docs/empty.md": "",
    "run.sh": "echo\n",
}


def inputs(tree: Mapping[str, str], cap: int = 2000):
    """The arguments of build_graph for a tree, as the stages before would hand them over."""
    formats = {"py": "python", "md": "markdown"}
    facts, pages, documents, outline, chunks = [], [], [], [], []
    for path, text in tree.items():
        format = formats.get(path.rpartition(".")[2], "text")
        rows = chunk_text(path, text.encode(), format, ChunkSettings(cap=cap))
        documents.append(rows.document)
        outline += rows.outline
        chunks += rows.chunks
        if format == "python":
            facts.append(file_facts(path, text))
        elif format == "markdown":
            pages.append(page_links(path, text, format))
    linker = Linker(Modules(facts), {})
    sites = {"parse": linker.link().sites, "link": link_pages(pages, tree, linker)}
    return facts, documents, outline, chunks, sites


@pytest.fixture
def graph():
    return build_graph(*inputs(TREE))
