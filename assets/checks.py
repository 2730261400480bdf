"""Asset checks: what must hold of the stored tables."""

import dagster as dg

from assets.corpus import chunks, corpus_files
from assets.retrieval import bm25_index
from pipelines.chunking.verify import unaccounted_files, wrong_offsets
from pipelines.corpus.fetch import fetch
from pipelines.corpus.scan import load_plan
from pipelines.corpus.spec import held_spec
from pipelines.lexical.index import load_index
from resources.workspace import Workspace


@dg.asset_check(asset=corpus_files)
def corpus_is_not_empty(workspace: Workspace) -> dg.AssetCheckResult:
    """The corpus has files; an empty one is legal, and worth a word."""
    plan = load_plan(workspace.layout())
    files = sum(len(rows) for rows in plan.partitions.values())
    return dg.AssetCheckResult(passed=files > 0, severity=dg.AssetCheckSeverity.WARN, metadata={"files": files})


@dg.asset_check(asset=chunks)
def every_file_is_chunked_or_explained(workspace: Workspace) -> dg.AssetCheckResult:
    """Every file of corpus_files has chunks, or is blank, or says why it has none."""
    lost = unaccounted_files(workspace.layout(), load_plan(workspace.layout()))
    return dg.AssetCheckResult(passed=not lost, metadata={"unaccounted": lost[:50], "count": len(lost)})


@dg.asset_check(asset=chunks)
def offsets_are_exact(workspace: Workspace) -> dg.AssetCheckResult:
    """On a sample of 300 chunks, the source's text between the offsets is the chunk's text."""
    layout = workspace.layout()
    root = fetch(held_spec(layout), workspace.settings()).root
    checked, wrong = wrong_offsets(root, layout, load_plan(layout), sample=300)
    return dg.AssetCheckResult(passed=not wrong, metadata={"checked": checked, "wrong": wrong[:50]})


@dg.asset_check(asset=bm25_index)
def index_has_every_chunk(workspace: Workspace) -> dg.AssetCheckResult:
    """The index holds as many chunks as the tables."""
    from pipelines.state import counts

    stored = counts(workspace.settings())["chunks"]
    indexed = len(load_index(workspace.settings()))
    return dg.AssetCheckResult(passed=stored == indexed, metadata={"stored": stored, "indexed": indexed})
