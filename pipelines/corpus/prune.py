"""Removing what is no longer planned."""

import shutil
import time

from pipelines.corpus.scan import Plan
from pipelines.layout import Layout, file_name

_ABANDONED_SECONDS = 24 * 3600


def prune(layout: Layout, plan: Plan) -> int:
    """Delete the stored partitions, and the records of failures, whose keys are not in the plan; return how many.

    No reader would look at them: this frees the disk, and lets a key that comes back start from nothing.
    """
    kept = {file_name(key) for key in plan}
    gone = [path for path in layout.partitions.glob("*") if path.name not in kept]
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    for path in layout.partitions.glob("*/.*.parquet.*"):  # what a killed run was writing; a run of today may still be
        if path.stat().st_mtime < time.time() - _ABANDONED_SECONDS:
            path.unlink(missing_ok=True)
    for record in layout.failures.glob("*/*.json"):
        if record.stem not in kept:
            record.unlink(missing_ok=True)
    return len(gone)
