"""Imports into a lake, and lakes where a verb takes results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aigo_bridge.cli.terminal import note
from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from aigo_bridge.access.object_addresses import Address
    from aigo_bridge.importing.log_import import ImportOptions, ImportReport
    from aigo_report.tables.results import Results
    from aigo_scale.lake.importing import HandOut
    from aigo_scale.lake.reading import LakeTables

_NAMES = ("lake", ".lake", "-lake", "_lake")
_OPTIONS = {"source": "from"}
LAKE_LOG, OLD_MARK = "logs/_delta_log", "lake.json"
"""Folder that makes a folder a lake, and file that made it one before there were Delta tables."""
_KEYS = ("by_task=", "by_model=", "by_run=")


def names_lake(out: str | os.PathLike[str]) -> bool:
    """Whether `--format parquet --out` means a lake: one that is there, or by its name."""
    text = os.fspath(out).rstrip("/")
    name = text.rpartition("/")[2].lower()
    return name == _NAMES[0] or name.endswith(_NAMES[1:]) or is_lake(text)


def lake_part(location: str) -> str:
    """A location without the partitions of a lake that are named behind it."""
    parts = location.rstrip("/").split("/")
    while len(parts) > 1 and parts[-1].startswith(_KEYS):
        parts.pop()
    return "/".join(parts)


def is_lake(location: str) -> bool:
    """Whether a path of this machine is a lake, or partitions of one."""
    lake = Path(lake_part(location))
    return (lake / LAKE_LOG).is_dir() or (lake / OLD_MARK).is_file()


def is_far_lake(lake: Address) -> bool:
    """Whether an address is a lake.

    Raises:
        StorageError: the storage cannot be listed.
    """
    from aigo_scale.storage.objects import find, look

    return bool(find(lake.below(LAKE_LOG), depth=1)) or look(lake.below(OLD_MARK)) is not None


def imports_to_lake(words: Iterable[tuple[str, Any]]) -> bool:
    """Whether the words of `import`, each with its parameter, mean a lake."""
    is_table, out = False, ""
    for word, parameter in words:
        name = getattr(parameter, "name", None)
        value = word.partition("=")[2] if word.startswith("--") else word
        if name == "lake" or word == "--lake":
            return True
        is_table |= name == "output_format" and value == "parquet"
        out = value if name == "out" else out
    return is_table and bool(out) and names_lake(out)


def take_lake(location: str, folder: Path) -> Path:
    """Write the results that are in a lake, or in partitions of it, as result logs: of one its path, of
    several that of the folder.

    Raises:
        UsageError: there are none, or the lake is of another release.
        EvidenceError: it is damaged.
    """
    from aigo_scale.lake.reading import LakeReader, split

    folder.mkdir(parents=True, exist_ok=True)
    logs = LakeReader(*split(location)).write_logs(folder)
    return logs[0] if len(logs) == 1 else folder


def import_to_lake(
    lake: str,
    logs: Sequence[str],
    options: ImportOptions,
    tell: Callable[[ImportReport], None],
    watch: float | None,
    hand_out: HandOut | None = None,
) -> int:
    """Import logs into a lake; the worst exit code. `hand_out`: as for `import_into`.

    Raises:
        UsageError: there are no logs, or the lake is none.
    """
    from aigo_bridge.exit_codes import ExitCode
    from aigo_scale.lake.importing import import_into
    from aigo_scale.lake.pieces import Piece, pieces_at
    from aigo_scale.lake.pieces import watch as look
    from aigo_scale.lake.single_logs import KNOWN, NO_LOG, UNFINISHED

    quiet = (KNOWN, NO_LOG, UNFINISHED)

    def told(report: ImportReport) -> None:
        if report.status not in quiet or report.exit_code:
            tell(report)

    def take(pieces: list[Piece]) -> ExitCode:
        tally = import_into(lake, pieces, options, told, finished_only=watch is not None, hand_out=hand_out)
        parts = [f"{tally.imported} imported", f"{tally.known} there already"]
        parts += [f"{tally.failed} not readable"] if tally.failed else []
        parts += [f"{tally.no_logs} no logs"] if tally.no_logs else []
        parts += [f"{tally.unfinished} not finished"] if tally.unfinished else []
        note(f"{lake}: {', '.join(parts)}")
        return tally.worst

    if watch is None:
        return take(pieces_at(logs))
    try:
        look(logs, watch, lambda pieces: _nothing(take(pieces)))
    except KeyboardInterrupt:
        note(f"{lake}: all imported results are complete; run the same command again to import new logs")
        raise
    return 0


def _nothing(_: object) -> None:
    """A function that gives nothing."""


def refuse_with_lake(**given: object) -> None:
    """Refuse options that an import into a lake has no use for.

    Raises:
        UsageError: one was given.
    """
    from aigo_bridge.errors import UsageError

    names = [f"--{_OPTIONS.get(name, name)}" for name, value in given.items() if value]
    if names:
        raise UsageError(
            f"{', '.join(names)}: cannot be combined with an import into a lake", code=Code.OPTIONS_APART
        )


def lake_of(locations: Sequence[str | os.PathLike[str]]) -> LakeTables | Results | None:
    """The tables of a lake for SQL, where one is asked; `None`: results are.

    Raises:
        UsageError: it is asked together with something else.
    """
    from aigo_bridge.errors import UsageError
    from aigo_scale.lake.reading import LakeTables, lake_at

    found = [lake_at(location) for location in locations]
    if not any(found):
        return None
    if len(found) > 1:
        raise UsageError("name a single lake, or results, but not both", code=Code.OPTIONS_APART)
    (one,) = found
    assert one is not None
    return LakeTables(*one)
