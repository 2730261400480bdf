"""What is tried again without anybody's doing: what may pass, and nothing else."""

from collections.abc import Iterator
from contextlib import contextmanager

import dagster as dg

from pipelines.errors import Transient
from resources import workspace

RETRIES = 3
WAIT_SECONDS = 30.0
"""Before the first retry; doubled before each after it."""


@contextmanager
def retried(context: dg.AssetExecutionContext) -> Iterator[None]:
    """Ask Dagster to run the step again where a server or the network is away, unless a person waits in a shell."""
    try:
        yield
    except Transient as error:
        if workspace.reporters:
            raise
        wait = WAIT_SECONDS * 2**context.retry_number
        raise dg.RetryRequested(max_retries=RETRIES, seconds_to_wait=wait) from error
