"""The plan of partitions: which directory (or share of a large flat one) each file belongs to.

A key is the percent-encoded path of a directory, `.` for the root; a flat directory too large for one partition has
keys `dir#i-of-n`, files going by a hash of their path. A file belongs to its deepest planned directory, so that adding
or editing a file moves no other.
"""

import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from itertools import pairwise
from urllib.parse import quote, unquote

MAX_KEYS = 300
MEAN_CHUNK_BYTES = 1500
_BUCKET = re.compile(r"(.*)#(\d+)-of-(\d+)", re.DOTALL)


def key_of_directory(directory: str) -> str:
    """Return the key of a corpus-relative directory ("" is the root): ASCII, reversible, without `,` and `...`.

    >>> key_of_directory("docs/über, uns"), key_of_directory(""), key_of_directory("a...b")
    ('docs/%C3%BCber%2C%20uns', '.', 'a%2E%2E%2Eb')
    """
    encoded = "/".join(quote(part, safe="") for part in directory.split("/"))
    return encoded.replace("...", "%2E%2E%2E") or "."


def directory_of_key(key: str) -> str:
    """Return the directory of a key, whole or a bucket.

    >>> directory_of_key("docs/%C3%BCber%2C%20uns#2-of-3")
    'docs/über, uns'
    """
    match = _BUCKET.fullmatch(key)
    directory = unquote(match[1] if match else key)
    return "" if directory == "." else directory


def plan_partitions(
    sizes: Mapping[str, int], previous: Mapping[str, str], *, target_bytes: int, max_keys: int = MAX_KEYS
) -> dict[str, str]:
    """Return {path: key} for every path of `sizes` (path: bytes).

    `previous` is the last plan, or empty. Files it holds keep their key. A new file joins the deepest planned directory
    above it, unless it comes with new directories large enough for partitions of their own. With `target_bytes` 0
    every directory is a partition of its own (as long as there are at most `max_keys`).
    """
    kept = {path: previous[path] for path in sizes if path in previous}
    new = {path: size for path, size in sizes.items() if path not in kept}
    if target_bytes == 0:
        own = {_directories(path)[0]: 1 for path in new} | _bucket_counts(kept.values())
        plan = kept | {path: _key_for(path, own) for path in new}
        if len({*plan.values(), "."}) <= max_keys:  # one is left for the root, here too
            return dict(sorted(plan.items()))
    known = {directory for path in kept for directory in _directories(path)}
    groups: dict[str, dict[str, int]] = defaultdict(dict)  # the highest new directory (or the root) -> its new files
    for path, size in new.items():
        highest = [directory for directory in _directories(path) if directory not in known][-1:]
        groups[highest[0] if highest else ""][path] = size
    plan = dict(kept)
    buckets = _bucket_counts(kept.values())
    for top in sorted(groups):
        if top or not known:
            room = max_keys - 1 - sum(buckets.values())  # one is left for the root
            buckets |= _split(groups[top], top, buckets, target_bytes, room)
        plan |= {path: _key_for(path, buckets) for path in groups[top]}
    return dict(sorted(plan.items()))


def _split(files: Mapping[str, int], top: str, planned: Mapping[str, int], target: int, room: int) -> dict[str, int]:
    """Return {directory: buckets} for new partitions at or below `top`, at most `room` of them.

    From the leaves up: what a directory holds stays together while it fits the target; where it does not, each part of
    at least a quarter of the target becomes a partition and smaller ones fold into their parent.
    """
    own: dict[str, int] = defaultdict(int)
    children: dict[str, set[str]] = defaultdict(set)
    for path, size in files.items():
        chain = [directory for directory in _directories(path) if len(directory) >= len(top)]
        own[chain[0]] += max(size, 1)
        for child, parent in pairwise(chain):
            children[parent].add(child)
    every = sorted({top} | set(own) | set(children), key=lambda directory: (-_depth(directory), directory))
    covered = any(directory in planned for directory in _directories(f"{top}/"))
    while True:
        pending: dict[str, int] = {}
        total: dict[str, int] = {}
        chosen: dict[str, int] = {}
        for directory in every:
            total[directory] = own[directory] + sum(total[child] for child in children[directory])
            pending[directory] = own[directory]
            for child in children[directory]:
                if total[directory] > target and pending[child] >= max(target / 4, 1):
                    chosen[child] = max(1, round(pending[child] / target)) if target else 1
                else:
                    pending[directory] += pending[child]
        if pending[top] >= target / 4 or not covered:
            chosen[top] = max(1, round(pending[top] / target)) if target else 1
        if sum(chosen.values()) <= max(room, 0):
            return chosen
        if room < 1:
            return {}
        target = max(2 * target, sum(total[directory] for directory in [top]) // (4 * room), 1)


def _key_for(path: str, buckets: Mapping[str, int]) -> str:
    for directory in _directories(path):
        if directory in buckets:
            count = buckets[directory]
            key = key_of_directory(directory)
            bucket = int.from_bytes(hashlib.sha256(path.encode()).digest()[:8], "big") % count
            return f"{key}#{bucket + 1}-of-{count}" if count > 1 else key
    return "."


def _bucket_counts(keys: Iterable[str]) -> dict[str, int]:
    counts = {}
    for key in keys:
        match = _BUCKET.fullmatch(key)
        counts[directory_of_key(key)] = int(match[3]) if match else 1
    return counts


def _directories(path: str) -> list[str]:
    """The directories above a path, deepest first, the root ("") last."""
    parts = path.split("/")[:-1]
    return ["/".join(parts[:length]) for length in range(len(parts), -1, -1)]


def _depth(directory: str) -> int:
    return directory.count("/") + 1 if directory else 0
