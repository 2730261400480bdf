"""The partitions that chunks and everything derived per directory share, and what is recorded of each."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import dagster as dg
from dagster import AssetKey, DagsterEventType

from pipelines.state import clear_failure, record_failure
from resources.workspace import Workspace

directories = dg.DynamicPartitionsDefinition(name="directories")

_RANGES = 3
"""Up to so many separate runs for scattered partitions; more are covered by one, which passes over what is done."""
PartitionEvents = Iterator[dg.AssetCheckResult | dg.Output[None]]
"""What the body of such an asset yields."""


def per_directory(**options: Any) -> Callable[[Callable[..., PartitionEvents]], dg.AssetsDefinition]:
    """`dg.asset` for a body that is a PartitionedRun: it records its partitions itself, many in one run."""
    decorate: Callable[[Callable[..., PartitionEvents]], dg.AssetsDefinition] = dg.asset(
        partitions_def=directories,
        backfill_policy=dg.BackfillPolicy.single_run(),
        output_required=False,
        dagster_type=cast(Any, dg.Nothing),
        kinds={"parquet"},
        **options,
    )
    return decorate


def sync_keys(instance: dg.DagsterInstance, wanted: Iterable[str]) -> tuple[list[str], list[str]]:
    """Make the keys of `directories` those of the plan; return what was added and what was removed."""
    name = str(directories.name)
    present = set(instance.get_dynamic_partitions(name))
    added, removed = sorted(set(wanted) - present), sorted(present - set(wanted))
    if added:
        instance.add_dynamic_partitions(name, added)
    for key in removed:
        instance.delete_dynamic_partition(name, key)
    return added, removed


def ranges(ordered: Sequence[str], wanted: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield (first, last) of contiguous runs of `wanted` in `ordered`; one range over all, where they are scattered.

    >>> list(ranges("abcdefgh", "bcf")), list(ranges("abcdefgh", "aceg"))
    ([('b', 'c'), ('f', 'f')], [('a', 'g')])
    """
    places = sorted(ordered.index(key) for key in wanted)
    groups: list[list[int]] = []
    for place in places:
        if groups and place == groups[-1][-1] + 1:
            groups[-1].append(place)
        else:
            groups.append([place])
    if len(groups) > _RANGES:
        groups = [[places[0], places[-1]]]
    for group in groups:
        yield ordered[group[0]], ordered[group[-1]]


@dataclass(frozen=True)
class Built:
    """One partition that was built (or found to be as it should be): its content, and what it was built from."""

    version: str
    input_version: str
    metadata: Mapping[str, Any]


class PartitionedRun:
    """Builds the partitions of a run one by one; each is recorded as it ends, or leaves the reason of its failure.

    An asset that returns an output would record every partition of its run with one data version, done or not. This
    records just those that were done, each with what it was built from, so that the UI shows as stale exactly the
    partitions whose own inputs have changed.
    """

    def __init__(
        self, context: dg.AssetExecutionContext, workspace: Workspace, upstream: AssetKey, event: DagsterEventType
    ) -> None:
        self._context = context
        self._layout = workspace.layout()
        self._report = workspace.reporter(context.log)
        self._upstream = upstream
        self._pointers = context.instance.event_log_storage.get_latest_storage_id_by_partition(upstream, event)
        self._failed: dict[str, str] = {}
        self._built: dict[str, Built] = {}

    def build(self, doing: str, keys: Sequence[str], make: Callable[[str], Built]) -> None:
        """Build each key; an exception fails its own partition and no other."""
        asset = self._context.asset_key.to_user_string()
        progress = self._report(doing, "partitions")
        for done, key in enumerate(keys, 1):
            try:
                built = make(key)
            except Exception as error:
                self._failed[key] = f"{type(error).__name__}: {error}"
                record_failure(self._layout, asset, key, self._failed[key], getattr(error, "missing", ()))
            else:
                clear_failure(self._layout, asset, key)
                self._built[key] = built
                self._record(key, built)
            progress(done, len(keys))

    def end(self, unchanged: dict[str, Built]) -> Iterator[dg.Output[None]]:
        """Fail the run if a partition failed; `unchanged` are the keys of the run that had nothing to be done."""
        context = self._context
        for key in unchanged:  # a failure of content that has since changed back to what is stored
            clear_failure(self._layout, context.asset_key.to_user_string(), key)
        context.log.info(f"{len(unchanged)} partitions unchanged, {len(self._failed)} failed")
        if self._failed:
            for key, built in unchanged.items():
                self._record(key, built)  # else the UI would show these as failed, too
            raise dg.Failure(
                f"{len(self._failed)} partitions failed; redo them: cgrag resume --failed",
                metadata={"failed": self._failed},
                allow_retries=False,
            )
        if context.run.asset_selection != {context.asset_key}:
            yield dg.Output(None)  # what is downstream in the same run waits for it
            for key, built in (unchanged | self._built).items():  # Dagster has recorded versions of its own
                self._record(key, built)

    def _record(self, key: str, built: Built) -> None:
        asset = self._context.asset_key
        upstream = self._upstream.to_user_string()
        tags = {
            "dagster/code_version": self._context.assets_def.code_versions_by_key[asset] or "1",
            "dagster/data_version": built.version,
            "dagster/data_version_is_user_provided": "true",
            f"dagster/input_data_version/{upstream}": built.input_version,
            f"dagster/input_event_pointer/{upstream}": str(self._pointers.get(key) or "NULL"),
        }
        self._context.log_event(dg.AssetMaterialization(asset, partition=key, metadata=built.metadata, tags=tags))
