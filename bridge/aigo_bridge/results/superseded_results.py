"""Results of an attempt that a later attempt of the same run supersedes.

An Inspect eval set retries a failed task, and each attempt leaves a log. The importer marks the results of
earlier attempts in `specification.config`, so that a task counts only one time:

```json
{"aigo_bridge": {"superseded_by": {"log": "2026-01-02_t_abc.eval", "task_id": "abc", "eval_set_id": "def"}}}
```
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from aigo_bridge.errors import EvidenceError

OWN = "aigo_bridge"
_MARK = "superseded_by"
_MOST_NAMED = 3
STATUS = "superseded"
"""Displayed status of such a result."""


def superseded_mark(log: str, **identity: str | None) -> dict[str, Any]:
    """Return the entries of `specification.config` that mark a result; `log` is the latest attempt's name."""
    return {OWN: {_MARK: {"log": log, **{name: value for name, value in identity.items() if value}}}}


def superseded_by(config: Mapping[str, Any]) -> str | None:
    """Return the name of the log that supersedes a result, by its `specification.config`."""
    own = config.get(OWN)
    mark = own.get(_MARK) if isinstance(own, Mapping) else None
    log = mark.get("log") if isinstance(mark, Mapping) else None
    return log if isinstance(log, str) else None


def without_superseded(paths: Iterable[Path], note: Callable[[str], None]) -> list[Path]:
    """Return the result logs without superseded ones, which `note` reports, unless all are superseded."""
    from aigo_bridge.results.reading import LogReader

    latest: dict[Path, str | None] = {}
    for path in paths:
        try:
            latest[path] = superseded_by(LogReader(path).frame().specification.config)
        except (EvidenceError, OSError):
            # Reading the result later reports the error.
            latest[path] = None
    left_out = [path.name for path, log in latest.items() if log is not None]
    if not left_out or len(left_out) == len(latest):
        return list(latest)
    more = f" and {len(left_out) - _MOST_NAMED} more" if len(left_out) > _MOST_NAMED else ""
    verb = "is" if len(left_out) == 1 else "are"
    names = ", ".join(left_out[:_MOST_NAMED])
    note(f"{names}{more} {verb} left out: a later attempt of the same run supersedes it")
    return [path for path, log in latest.items() if log is None]
