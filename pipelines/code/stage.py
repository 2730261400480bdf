"""The code_facts stage (by partition) and the code_edges stage (the linker over all of them)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from pipelines.chunking.python import Unparsable, collector_off
from pipelines.chunking.restore import restore_texts
from pipelines.code.doclinks import VERSION as LINKS_VERSION
from pipelines.code.doclinks import Page, link_pages, page_from_row, page_links, page_to_row
from pipelines.code.facts import VERSION as FACTS_VERSION
from pipelines.code.facts import Facts, file_facts, from_row, to_row
from pipelines.code.link import VERSION as LINKER_VERSION
from pipelines.code.link import Linker
from pipelines.code.modules import Modules
from pipelines.code.tables import CODE_FACTS, PAGE_LINKS, SITES, UNRESOLVED, sites_table, unresolved_table
from pipelines.layout import Layout
from pipelines.progress import Progress, silent
from pipelines.settings import CodeSettings
from pipelines.tables import (
    CHUNKS,
    DOCUMENTS,
    agreed_fingerprint,
    counted,
    digest,
    read_table,
    write_arrow,
    write_table,
)

Rows = list[dict[str, Any]]


@dataclass(frozen=True)
class FactsResult:
    """What was written of one partition."""

    fingerprint: str
    files: int
    symbols: int
    references: int
    pages: int
    links: int
    preview: Rows


@dataclass(frozen=True)
class EdgesResult:
    """What the linker found."""

    fingerprint: str
    sites: dict[str, int]
    """Places by relation."""
    tiers: dict[str, int]
    """Places by how they were resolved."""
    unresolved: dict[str, int]
    """References that make no edge, as "kind: reason"."""
    preview: Rows


def facts_fingerprint(chunks: str) -> str:
    """What the facts of a partition are built from: the fingerprint of its chunks, and this code's version."""
    return digest(FACTS_VERSION, LINKS_VERSION, chunks)


def stored_facts(layout: Layout, key: str) -> str | None:
    """The fingerprint of a partition's facts whose two tables are whole and agree, else None."""
    return agreed_fingerprint(layout.partition(key, name) for name in ("code_facts", "page_links"))


def current_facts(layout: Layout, chunks: Mapping[str, str]) -> dict[str, str]:
    """{key: fingerprint} of the facts that are of the stored chunks, whose fingerprints are `chunks`.

    A partition whose facts failed is left out: old facts do not fit new chunks.
    """
    wanted = {key: facts_fingerprint(fingerprint) for key, fingerprint in chunks.items()}
    return {key: fingerprint for key, fingerprint in wanted.items() if stored_facts(layout, key) == fingerprint}


def build_facts(layout: Layout, key: str, chunks_fingerprint: str) -> FactsResult:
    """Parse the Python files and read the links of the pages of a partition, from the texts of its chunks.

    A file that does not parse has no facts; the chunks stage has said so.
    """
    with collector_off():  # nothing of this call is left when the collector is on again
        return _build_facts(layout, key, facts_fingerprint(chunks_fingerprint))


def _build_facts(layout: Layout, key: str, fingerprint: str) -> FactsResult:
    documents = read_table(layout.partition(key, "documents"), DOCUMENTS).to_pylist()
    chunks = read_table(layout.partition(key, "chunks"), CHUNKS)
    texts = restore_texts(documents, chunks.select(["path", "start", "start_line", "end_line", "text"]).to_pylist())
    facts: list[Facts] = []
    pages: list[Page] = []
    for row in documents:
        if row["parser"] == "python":
            try:
                facts.append(file_facts(row["path"], texts[row["path"]]))
            except Unparsable:
                continue
        elif row["parser"] in ("markdown", "sections"):
            pages.append(page_links(row["path"], texts[row["path"]], row["parser"]))
    manifest = {"partition": key, "fingerprint": fingerprint}
    write_table(layout.partition(key, "page_links"), [page_to_row(page) for page in pages], PAGE_LINKS, manifest)
    write_table(layout.partition(key, "code_facts"), [to_row(file) for file in facts], CODE_FACTS, manifest)
    symbols = [
        {"symbol": file.symbol_id(number), "kind": symbol[0], "line": symbol[7]}
        for file in facts[:5]
        for number, symbol in enumerate(file.symbols)
    ]
    return FactsResult(
        fingerprint,
        files=len(facts),
        symbols=sum(len(file.symbols) for file in facts),
        references=sum(len(file.references) for file in facts),
        pages=len(pages),
        links=sum(len(page.links) for page in pages),
        preview=symbols[:8],
    )


def read_facts(layout: Layout, keys: Iterable[str]) -> list[Facts]:
    """Return the facts of all files of some partitions."""
    with collector_off():
        return [
            from_row(row)
            for key in keys
            for row in read_table(layout.partition(key, "code_facts"), CODE_FACTS).to_pylist()
        ]


def edges_inputs(settings: CodeSettings, facts: Mapping[str, str]) -> dict[str, Any]:
    """What the edges are built from; `facts` are the fingerprints of the partitions."""
    return {"facts": digest(dict(facts)), "hooks": dict(settings.hooks), "version": LINKER_VERSION}


def build_edges(
    layout: Layout, settings: CodeSettings, fingerprints: Mapping[str, str], progress: Progress = silent
) -> EdgesResult:
    """Link the facts of all partitions, and write `sites` (places that make edges) and `unresolved`.

    Progress counts partitions read; the linking itself comes after.
    """
    keys = sorted(fingerprints)
    facts: list[Facts] = []
    pages: list[Page] = []
    files: list[str] = []
    with collector_off():
        for number, key in enumerate(keys, 1):
            facts += read_facts(layout, [key])
            rows = read_table(layout.partition(key, "page_links"), PAGE_LINKS).to_pylist()
            pages += map(page_from_row, rows)
            files += read_table(layout.partition(key, "documents"), DOCUMENTS)["path"].to_pylist()
            progress(number, len(keys))
        linker = Linker(Modules(facts), settings.hooks)
        links = linker.link()
        parsed = sites_table(links.sites)
        linked = sites_table(link_pages(pages, files, linker))
        unresolved = unresolved_table(links.unresolved)
    inputs = edges_inputs(settings, fingerprints)
    manifest = {"fingerprint": digest(inputs), **inputs}
    write_arrow(layout.graph / "unresolved.parquet", unresolved, manifest)
    write_arrow(layout.graph / "links.parquet", linked, manifest)
    write_arrow(layout.graph / "sites.parquet", parsed, manifest)
    return EdgesResult(
        manifest["fingerprint"],
        sites=counted(pa.concat_tables([parsed, linked]), "relation"),
        tiers=counted(pa.concat_tables([parsed, linked]), "tier"),
        unresolved={f"{kind}: {reason}": number for (kind, reason), number in links.counts().items()},
        preview=parsed.slice(0, 8).to_pylist(),
    )


def read_sites(layout: Layout) -> dict[str, pa.Table]:
    """Return the places that make edges, by origin."""
    return {
        "parse": read_table(layout.graph / "sites.parquet", SITES),
        "link": read_table(layout.graph / "links.parquet", SITES),
    }


def read_unresolved(layout: Layout) -> pa.Table:
    """Return the references that make no edge, with the reason."""
    return read_table(layout.graph / "unresolved.parquet", UNRESOLVED)
