"""The schema of every table, and how tables reach the disk: whole or not at all, with a manifest inside."""

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.errors import CgragError

_SPAN = [
    pa.field("start", pa.int64()),  # characters of the decoded text, half open
    pa.field("end", pa.int64()),
    pa.field("start_line", pa.int64()),  # 1-based, both inclusive
    pa.field("end_line", pa.int64()),
]
_TRAIL = pa.field("trail", pa.list_(pa.string()))

FILES = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("bytes", pa.int64()),
        pa.field("sha256", pa.string()),
        pa.field("encoding", pa.string()),
        pa.field("format", pa.string()),  # python, markdown, sections or text
    ]
)
SKIPPED = pa.schema([pa.field("path", pa.string()), pa.field("reason", pa.string()), pa.field("detail", pa.string())])
DOCUMENTS = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("sha256", pa.string()),  # of what was chunked, which may differ from files.parquet
        pa.field("characters", pa.int64()),
        pa.field("lines", pa.int64()),
        pa.field("parser", pa.string()),  # python, markdown, sections, windows; "" where nothing was read
        pa.field("problem", pa.string()),  # why the format's own parser was not used, or ""
        pa.field("chunks", pa.int64()),
    ]
)
OUTLINE = pa.schema(
    [
        pa.field("path", pa.string()),
        pa.field("kind", pa.string()),  # function, class, heading
        pa.field("name", pa.string()),  # __qualname__, or "H1 > H2"
        pa.field("title", pa.string()),
        pa.field("level", pa.int64()),
        *_SPAN,
        pa.field("name_line", pa.int64()),  # the line of `def` or `class` itself, below its decorators
    ]
)
UNITS = pa.schema(
    [
        pa.field("chunk_id", pa.string()),
        pa.field("path", pa.string()),
        *_SPAN,
        pa.field("kind", pa.string()),  # function, class, section, code or window
        pa.field("symbol", pa.string()),  # qualified name of a definition, else ""
        _TRAIL,
    ]
)
CHUNKS = pa.schema(
    [
        pa.field("chunk_id", pa.string()),
        pa.field("path", pa.string()),
        *_SPAN,
        _TRAIL,
        pa.field("text_hash", pa.string()),
        pa.field("text", pa.string()),
    ]
)
_ENTITY = pa.struct(
    [
        pa.field("name", pa.string()),
        pa.field("type", pa.string()),
        pa.field("starts", pa.list_(pa.int64())),  # of every mention, in characters of the file
    ]
)
_RELATION = pa.struct([pa.field(name, pa.string()) for name in ("source", "target", "type")])
EXTRACTIONS = pa.schema(  # one row for each chunk that the policy leaves to the model
    [
        pa.field("chunk_id", pa.string()),
        pa.field("path", pa.string()),
        pa.field("key", pa.string()),  # of the request, "" where the chunk has no name to ask about
        pa.field("status", pa.string()),  # ok, failed, pending
        pa.field("problem", pa.string()),  # why it failed, as in LEDGER.status, else ""
        pa.field("detail", pa.string()),
        pa.field("result_hash", pa.string()),
        pa.field("entities", pa.list_(_ENTITY)),
        pa.field("relations", pa.list_(_RELATION)),
        pa.field("ungrounded", pa.int64()),  # names dropped because the chunk does not have them
        pa.field("junk", pa.int64()),  # names dropped because they name nothing
        pa.field("refused", pa.int64()),  # relations dropped: of dropped names, to itself, or against the taxonomy
    ]
)
_PIECE = pa.struct([pa.field("start", pa.int64()), pa.field("end", pa.int64()), pa.field("content", pa.string())])
LEDGER = pa.schema(  # one row for each chunk text that a model was asked about
    [
        pa.field("key", pa.string()),  # hash of the rendered request
        pa.field("text_hash", pa.string()),  # of the chunk's text
        pa.field("status", pa.string()),  # ok, or the kind of failure: length, invalid answer, http 500, timeout …
        pa.field("detail", pa.string()),
        pa.field("finish_reason", pa.string()),
        pa.field("pieces", pa.list_(_PIECE)),  # the model's own words: one, or two where the chunk was split
        pa.field("result_hash", pa.string()),  # of the pieces
        pa.field("prompt_tokens", pa.int64()),
        pa.field("completion_tokens", pa.int64()),
        pa.field("seconds", pa.float64()),  # of the answers, without waiting for a retry
        pa.field("requests", pa.int64()),
        pa.field("answered_at", pa.float64()),  # seconds since 1970, when the answer was there
    ]
)
PARTITIONED = {"documents": DOCUMENTS, "outline": OUTLINE, "units": UNITS, "chunks": CHUNKS}


def digest(*parts: object) -> str:
    """A 128-bit hash (hex) of values that JSON can hold, the same on every machine.

    >>> digest("a", 1) == digest("a", 1), digest("a", 1) == digest("a1")
    (True, False)
    """
    encoded = json.dumps(parts, ensure_ascii=True, sort_keys=True, separators=(",", ":"))
    return hashlib.blake2b(encoded.encode(), digest_size=16).hexdigest()


def row_hash(table: pa.Table) -> str:
    """A hash of the table's rows as a set with repeats: the order of rows does not matter, every value does."""
    rows = sorted(digest(*row.values()) for row in table.to_pylist())
    return digest(table.schema.names, rows)


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary path beside `path`, which takes its place when the block ends well, and is removed if not."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        with open(temporary, "rb") as written:
            os.fsync(written.fileno())
        temporary.chmod(0o644)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_json(path: Path, value: object) -> None:
    """Write `value` as readable JSON, atomically."""
    with atomic(path) as temporary:
        temporary.write_text(json.dumps(value, indent=1, ensure_ascii=True) + "\n")


def read_json(path: Path, remedy: str) -> Any:
    """Return what `write_json` wrote, or None where there is no such file.

    Raises:
        CgragError: the file is not JSON; `remedy` is the command that rebuilds it.
    """
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise CgragError(f"{path} is damaged: {error}", remedy) from error


def read_record(path: Path) -> dict[str, Any] | None:
    """Return an object that `write_json` wrote. What is damaged is as good as missing: the next run makes it again."""
    try:
        record = read_json(path, "")
    except CgragError:
        return None
    return record if isinstance(record, dict) else None


def write_table(
    path: Path, rows: Sequence[Mapping[str, object]], schema: pa.Schema, manifest: Mapping[str, object]
) -> None:
    """Write rows as Parquet, atomically, with the manifest (what it was built from) in the file's own metadata."""
    write_arrow(path, pa.Table.from_pylist(list(rows), schema=schema), manifest)


def write_arrow(path: Path, table: pa.Table, manifest: Mapping[str, object]) -> None:
    """Write a table as `write_table` writes rows, with a checksum on every page."""
    table = table.replace_schema_metadata({"cgrag": json.dumps(manifest, sort_keys=True)})
    with atomic(path) as temporary:
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def read_manifest(path: Path) -> dict[str, Any] | None:
    """Return the manifest of a Parquet file of ours; None where the file is missing, damaged or not ours.

    A damaged table is thus a missing one: the next run builds it again.
    """
    try:
        metadata = pq.read_schema(path).metadata or {}
        manifest = json.loads(metadata.get(b"cgrag", b"null"))
    except (OSError, pa.ArrowException, ValueError):
        return None
    return manifest if isinstance(manifest, dict) else None


def agreed_fingerprint(paths: Iterable[Path]) -> str | None:
    """Return the fingerprint of tables that were built together, None unless all are whole and agree on it."""
    manifests = map(read_manifest, paths)
    prints = {manifest["fingerprint"] if manifest else None for manifest in manifests}
    return prints.pop() if len(prints) == 1 else None


def counted(table: pa.Table, column: str) -> dict[str, int]:
    """Return how often each value of a column occurs, sorted by value.

    >>> counted(pa.table({"x": ["b", "a", "b"]}), "x")
    {'a': 1, 'b': 2}
    """
    counts = table.group_by(column).aggregate([([], "count_all")]).sort_by(column)
    return dict(zip(counts[column].to_pylist(), counts["count_all"].to_pylist(), strict=True))


def read_tables(paths: Iterable[Path], schema: pa.Schema) -> pa.Table:
    """Return the rows of several tables of one schema, such as those of partitions; of none, none.

    Raises:
        CgragError: as `read_table`.
    """
    return pa.concat_tables([schema.empty_table(), *(read_table(path, schema) for path in paths)])


def read_table(path: Path, schema: pa.Schema, remedy: str = "Build it:  cgrag run") -> pa.Table:
    """Return a table of ours.

    Raises:
        CgragError: it is missing, damaged, or of another version of this program.
    """
    try:
        table = pq.read_table(path, memory_map=True)
    except FileNotFoundError as error:
        raise CgragError(f"{path} is missing.", remedy) from error
    except (OSError, pa.ArrowException) as error:
        raise CgragError(f"{path} is damaged: {error}", "Remove that file and build it again:  cgrag run") from error
    if not table.schema.equals(schema):
        raise CgragError(f"{path} was written by another version of cgrag.", remedy)
    return table.replace_schema_metadata(None)
