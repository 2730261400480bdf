"""Which process a run is in, and runs that have lost theirs."""

import os
import socket
import time

import dagster as dg
import psutil
from dagster import DagsterRunStatus, RunsFilter
from dagster._core.execution.backfill import BulkActionsFilter, BulkActionStatus

CHANGE_TAG = "cgrag/change"
"""The number of the change that a sensor or the schedule has asked for the run about."""
LOST_TAG = "cgrag/lost"
"""Of a run that ended because its process was gone: what it was asked to do is asked for again."""
PROCESS_TAG = "cgrag/process"
"""host:pid:start of the process that a run is in, whose end nobody else notices when it is killed."""
LOST_SECONDS = 3600.0
"""A run on another machine that has recorded nothing for so long has lost its process: a partition takes minutes."""
_RUNNING = [
    *(DagsterRunStatus.NOT_STARTED, DagsterRunStatus.STARTING),
    *(DagsterRunStatus.STARTED, DagsterRunStatus.CANCELING),
]


def mark_process(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Write down that a run is in this process."""
    instance.add_run_tags(run.run_id, {PROCESS_TAG: f"{socket.gethostname()}:{_process(os.getpid())}"})


def runs_under_way(instance: dg.DagsterInstance) -> list[dg.DagsterRun]:
    """Return the runs that wait or are under way; those whose process is gone are recorded as failed first."""
    found = []
    for record in instance.get_run_records(RunsFilter(statuses=[DagsterRunStatus.QUEUED, *_RUNNING])):
        run = record.dagster_run
        if run.status in _RUNNING and _is_lost(instance, record):
            instance.add_run_tags(run.run_id, {LOST_TAG: "true"})
            instance.report_run_failed(run, "Its process is gone: killed, or its machine is. What it has done is kept.")
        else:
            found.append(run)
    return found


def was_lost(instance: dg.DagsterInstance, change: str) -> bool:
    """Whether a run about this change has lost its process."""
    return instance.get_runs_count(RunsFilter(tags={CHANGE_TAG: change, LOST_TAG: "true"})) > 0


def backfill_under_way(instance: dg.DagsterInstance) -> str:
    """The number of a backfill that has more runs to ask for, "" where there is none."""
    asked = instance.get_backfills(BulkActionsFilter(statuses=[BulkActionStatus.REQUESTED]), limit=1)
    return asked[0].backfill_id if asked else ""


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
