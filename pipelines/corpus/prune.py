"""Removing what is no longer planned."""

import shutil

from pipelines.corpus.scan import Plan
from pipelines.layout import Layout, file_name


def prune(layout: Layout, plan: Plan) -> int:
    """Delete the stored partitions, and the records of failures, whose keys are not in the plan; return how many.

    No reader would look at them: this frees the disk, and lets a key that comes back start from nothing.
    """
    kept = {file_name(key) for key in plan}
    gone = [path for path in layout.partitions.glob("*") if path.name not in kept]
    for path in gone:
        shutil.rmtree(path, ignore_errors=True)
    for record in layout.failures.glob("*/*.json"):
        if record.stem not in kept:
            record.unlink(missing_ok=True)
    return len(gone)
