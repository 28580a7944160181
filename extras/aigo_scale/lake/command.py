"""Imports into a lake, and lakes as inputs of commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.cli.terminal import note
from aigo_bridge.codes import Code
from aigo_bridge.importing.lakes import LAKE_LOG, OLD_MARK, Lake, LakeImport, names_lake

if TYPE_CHECKING:
    from aigo_bridge.access.object_addresses import Address
    from aigo_bridge.importing.log_import import ImportReport
    from aigo_scale.lake.importing import HandOut
    from aigo_scale.lake.reading import LakeTables


def is_far_lake(lake: Address) -> bool:
    """Return whether an address is a lake.

    Raises:
        StorageError: the storage cannot be listed.
    """
    from aigo_scale.storage.objects import find, look

    return bool(find(lake.below(LAKE_LOG), depth=1)) or look(lake.below(OLD_MARK)) is not None


def imports_to_lake(params: Mapping[str, Any]) -> bool:
    """Return whether the parameters of `import` select a lake."""
    is_table = params["output_format"] == "parquet"
    return params["lake"] is not None or (is_table and names_lake(params["out"]))


def take_lake(location: str, folder: Path) -> Path:
    """Write the selected results of a lake as result logs. Return the log's path, or the folder for several
    logs.

    Raises:
        UsageError: the lake does not contain such results or belongs to another release.
        EvidenceError: the lake is damaged.
    """
    from aigo_scale.lake.reading import LakeReader, split

    folder.mkdir(parents=True, exist_ok=True)
    logs = LakeReader(*split(location)).write_logs(folder)
    return logs[0] if len(logs) == 1 else folder


def import_to_lake(wanted: LakeImport) -> int:
    """Import logs into a lake. See `Lake.import_logs`."""
    if not wanted.on_cluster:
        return _import(wanted, None)
    from aigo_scale.cluster.imports import hand_out_on
    from aigo_scale.cluster.local import connected

    with connected(wanted.cluster_address, wanted.workers) as ray:
        count = wanted.workers or max(1, int(ray.cluster_resources().get("CPU", 1)))
        options = replace(wanted.options, jobs=count)
        hand_out = hand_out_on(ray, lambda text: note(f"note: {text}"))
        return _import(replace(wanted, options=options), hand_out)


def _import(wanted: LakeImport, hand_out: HandOut | None) -> int:
    from aigo_bridge.exit_codes import ExitCode
    from aigo_scale.lake.importing import import_into
    from aigo_scale.lake.pieces import LogCandidate, pieces_at
    from aigo_scale.lake.pieces import watch as look
    from aigo_scale.lake.single_logs import KNOWN, NO_LOG, UNFINISHED

    quiet, lake, watch = (KNOWN, NO_LOG, UNFINISHED), wanted.lake, wanted.watch

    def told(report: ImportReport) -> None:
        if report.status not in quiet or report.exit_code:
            wanted.tell(report)

    def take(pieces: list[LogCandidate]) -> ExitCode:
        tally = import_into(
            lake, pieces, wanted.options, told, finished_only=watch is not None, hand_out=hand_out
        )
        parts = [f"{tally.imported} imported", f"{tally.known} there already"]
        parts += [f"{tally.failed} not readable"] if tally.failed else []
        parts += [f"{tally.no_logs} no logs"] if tally.no_logs else []
        parts += [f"{tally.unfinished} not finished"] if tally.unfinished else []
        note(f"{lake}: {', '.join(parts)}")
        return tally.worst

    if watch is None:
        return take(pieces_at(wanted.logs))
    try:
        look(wanted.logs, watch, lambda pieces: _nothing(take(pieces)))
    except KeyboardInterrupt:
        note(f"{lake}: all imported results are complete; run the same command again to import new logs")
        raise
    return 0


def _nothing(_: object) -> None:
    """Convert a function to one without a return value."""


def lake_of(locations: Sequence[str | os.PathLike[str]]) -> LakeTables | None:
    """Return the tables of a lake for SQL; `None` if the locations are results.

    Raises:
        UsageError: a lake is combined with other locations.
    """
    from aigo_bridge.errors import UsageError
    from aigo_scale.lake.reading import LakeTables, lake_at

    found = [lake_at(location) for location in locations]
    if not any(found):
        return None
    if len(found) > 1:
        raise UsageError("name a single lake or results, not both", code=Code.OPTIONS_APART)
    (one,) = found
    assert one is not None
    return LakeTables(*one)


def write_results(location: str, folder: Path) -> list[Path] | None:
    """Write the results of a lake as result logs. See `Lake.results`."""
    from aigo_scale.lake.reading import LakeReader, lake_at

    lake = lake_at(location)
    if lake is None:
        return None
    folder.mkdir(parents=True)
    return LakeReader(*lake).write_logs(folder)


LAKE = Lake(import_to_lake, write_results, lake_of)
"""Hook `lake`."""
