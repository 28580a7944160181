"""Compaction of a lake: it merges small data files into large ones and deletes unneeded files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.errors import EvidenceError, UsageError
from aigo_scale.lake.commits import complete, file_sizes, load_state, remove_superseded
from aigo_scale.lake.files import LakeFiles, is_plain
from aigo_scale.lake.tables import LOGS, TABLES, open_table, use_delta

TARGET_BYTES = 256 << 20
"""Approximate size of a compacted data file in bytes."""
KEEP_HOURS = 24
"""Minimum age of an unneeded file for deletion. A reader or an import may still use a newer one."""


@dataclass(frozen=True)
class CompactionResult:
    """Outcome of a compaction."""

    results: int
    superseded: int
    """Number of results that better logs have replaced."""
    before: int
    after: int
    """Number of data files after the compaction."""
    removed: int
    """Number of deleted files."""


def compact(files: LakeFiles) -> CompactionResult:
    """Compact a lake.

    Raises:
        UsageError: another process is changing the lake.
        EvidenceError: the lake is damaged. It was not changed.
        StorageError: the lake cannot be read or written.
    """
    from deltalake import WriterProperties
    from deltalake.exceptions import CommitFailedError

    complete(files)
    state = load_state(files)
    remove_superseded(files, state)
    before, after, removed = 0, 0, 0
    for table in (*TABLES, LOGS):
        before += len(file_sizes(state.tables[table]))
        delta = open_table(files, table)
        options = {"target_size": TARGET_BYTES, "writer_properties": WriterProperties(compression="ZSTD")}
        try:
            use_delta(files, table, lambda: delta.optimize.compact(**options))  # noqa: B023  # called in this iteration
        except CommitFailedError as error:
            raise UsageError(
                f"{files}: another process changed the table {table!r} during the compaction; no "
                "data was lost, compact again later",
                code=Code.PLACE_IN_USE,
            ) from error
        delta = open_table(files, table)
        after += len(file_sizes(delta))
        removed += sum(_remove(files, table, name) for name in unneeded(files, table, delta, KEEP_HOURS))
    return CompactionResult(len(state.counting), len(state.superseded), before, after, removed)


def unneeded(files: LakeFiles, table: str, delta: Any, hours: int = 0) -> list[str]:
    """Return the names of Parquet files that a table has not needed for some hours.

    Raises:
        EvidenceError: the table is damaged.
        StorageError: the storage cannot be listed.
    """
    # Only list the files: the library would also delete the targets of links.
    options = {"dry_run": True, "enforce_retention_duration": False, "full": True}
    names = use_delta(files, table, lambda: delta.vacuum(hours, **options))
    return [name for name in names if is_plain(name) and name.endswith(".parquet")]


def _remove(files: LakeFiles, table: str, name: str) -> bool:
    try:
        files.remove(f"{table}/{name}")
    except EvidenceError:  # inside a linked folder
        return False
    return True
