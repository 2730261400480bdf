"""The one Definitions that workspace.yaml loads."""

import warnings

import dagster as dg

warnings.filterwarnings("ignore", category=dg.BetaWarning)  # of backfill_policy, which we mean

from assets import checks, corpus, retrieval  # noqa: E402
from resources.workspace import Workspace  # noqa: E402

defs = dg.Definitions(
    assets=[corpus.corpus_files, corpus.directory_contents, corpus.chunks, retrieval.bm25_index],
    asset_checks=dg.load_asset_checks_from_modules([checks]),
    resources={"workspace": Workspace()},
)
