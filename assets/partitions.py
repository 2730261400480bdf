"""The partitions that chunks and everything derived per directory share, and what is recorded of each."""

from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg
from dagster import AssetKey, DagsterEventType

directories = dg.DynamicPartitionsDefinition(name="directories")


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


class PartitionLog:
    """Records one partition's materialization at a time, with a data version from its content.

    An asset that returns an output would record every partition of its run with one data version, done or not; this
    records just those that were done, each with what it was built from, so that the UI shows as stale exactly the
    partitions whose own inputs have changed.
    """

    def __init__(self, context: dg.AssetExecutionContext, upstream: AssetKey, event: DagsterEventType) -> None:
        self._context = context
        self._upstream = upstream
        storage = context.instance.event_log_storage
        self._pointers = storage.get_latest_storage_id_by_partition(upstream, event)

    def materialized(self, key: str, *, version: str, input_version: str, metadata: Mapping[str, Any]) -> None:
        """Record that the partition was built with `version`, from the upstream partition's `input_version`."""
        asset = self._context.asset_key
        upstream = self._upstream.to_user_string()
        tags = {
            "dagster/code_version": self._context.assets_def.code_versions_by_key[asset] or "1",
            "dagster/data_version": version,
            "dagster/data_version_is_user_provided": "true",
            f"dagster/input_data_version/{upstream}": input_version,
            f"dagster/input_event_pointer/{upstream}": str(self._pointers.get(key) or "NULL"),
        }
        self._context.log_event(dg.AssetMaterialization(asset, partition=key, metadata=metadata, tags=tags))
