"""Work on a lake that is killed before each of its steps, in processes forked from one that never uses the Delta library: it does not survive a fork.

    python -m tests.support.lake_crashes import|compact LAKE LOGS FIRST STRIDE

prints, for each step, what a reader finds afterwards, and at last what one more undisturbed run leaves.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator
from functools import partial
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import deltalake
from deltalake.table import TableOptimizer
from tests.support.lakes import imported

from aigo_bridge import import_logs
from aigo_bridge.importing.log_import import ImportOptions
from aigo_scale.lake.commits import load_state
from aigo_scale.lake.compacting import compact
from aigo_scale.lake.files import LakeFiles
from aigo_scale.lake.tables import LOGS, open_lake
from aigo_scale.lake.verifying import problems_of

_STEPS: tuple[tuple[Any, str], ...] = (
    (LakeFiles, "new"),
    (deltalake.DeltaTable, "create"),
    (deltalake, "write_deltalake"),
    (deltalake.DeltaTable, "create_write_transaction"),
    (deltalake.DeltaTable, "delete"),
    (TableOptimizer, "compact"),
    (LakeFiles, "remove"),
)


def _die_before(step: int) -> None:
    """Kill this process before its next step."""
    left = iter(range(step))
    for owner, name in _STEPS:
        setattr(owner, name, _dying(getattr(owner, name), left))


def _dying(work: Callable[..., Any], left: Iterator[int]) -> Callable[..., Any]:
    def run(*arguments: Any, **options: Any) -> Any:
        if next(left, None) is None:
            os.kill(os.getpid(), signal.SIGKILL)
        return work(*arguments, **options)

    return run


def _killed(work: Callable[[], None], step: int) -> None:
    _die_before(step)
    work()


def _in_child(work: Callable[[], None]) -> bool:
    """Return whether a child finished its work."""
    child = os.fork()
    if child == 0:
        work()
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


def _look(lake: Path) -> None:
    found: dict[str, Any] = {"results": 0, "problems": []}
    if (lake / LOGS / "_delta_log").exists():
        files = open_lake(lake)
        found = {"results": len(load_state(files).counting), "problems": list(problems_of(files))}
    print(json.dumps(found), flush=True)


def _load(logs: str) -> None:
    """Load what each child would load, without the Delta library."""
    for name in ("deltalake.fs", "pandas", "pyarrow.dataset"):
        import_module(name)
    with TemporaryDirectory() as folder:
        import_logs(logs, folder, options=ImportOptions(jobs=1))


def main(action: str, place: str, logs: str, first: str, stride: str) -> None:
    """Kill the work at every `stride`-th step from `first` until it finishes."""
    lake = Path(place)
    _load(logs)

    def work() -> None:
        if action == "compact":
            compact(open_lake(lake))
        else:
            imported(lake, logs)

    step = int(first)
    while not _in_child(partial(_killed, work, step)):
        _in_child(lambda: _look(lake))
        step += int(stride)
    _in_child(lambda: _look(lake))


if __name__ == "__main__":
    main(*sys.argv[1:])
