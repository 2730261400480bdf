"""Which process a run is in, and runs that have lost theirs."""

import os
import socket
import time

import dagster as dg
import psutil
from dagster import DagsterRunStatus, RunsFilter

PROCESS_TAG = "cgrag/process"
"""host:pid:start of the process that a run is in, whose end nobody else notices when it is killed."""
LOST_SECONDS = 3600.0
"""A run on another machine that has recorded nothing for so long has lost its process: a partition takes minutes."""
_WAITING = [DagsterRunStatus.QUEUED, DagsterRunStatus.NOT_STARTED]
_RUNNING = [DagsterRunStatus.STARTING, DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING]


def mark_process(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Write down that a run is in this process."""
    instance.add_run_tags(run.run_id, {PROCESS_TAG: f"{socket.gethostname()}:{_process(os.getpid())}"})


def run_under_way(instance: dg.DagsterInstance) -> dg.DagsterRun | None:
    """Return a run that waits or is under way; those whose process is gone are recorded as failed first."""
    found = None
    for record in instance.get_run_records(RunsFilter(statuses=[*_WAITING, *_RUNNING])):
        run = record.dagster_run
        if run.status in _RUNNING and _is_lost(instance, record):
            instance.report_run_failed(run, "Its process is gone: killed, or its machine is. What it has done is kept.")
        else:
            found = run
    return found


def _is_lost(instance: dg.DagsterInstance, record: dg.RunRecord) -> bool:
    run = record.dagster_run
    host, _, process = run.tags.get(PROCESS_TAG, "").partition(":")
    if host == socket.gethostname():
        return _process(int(process.partition(":")[0])) != process
    latest = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
    sign_of_life = max([record.create_timestamp.timestamp(), *(event.timestamp for event in latest)])
    return time.time() - sign_of_life > LOST_SECONDS


def _process(number: int) -> str:
    """A process's number and start, since numbers are used again; "" where there is none that lives.

    The start is in seconds since the machine's, which no change of the clock moves.
    """
    try:
        process = psutil.Process(number)
        if process.status() == psutil.STATUS_ZOMBIE:
            return ""
        return f"{number}:{process.create_time() - psutil.boot_time():.0f}"
    except psutil.NoSuchProcess:
        return ""
