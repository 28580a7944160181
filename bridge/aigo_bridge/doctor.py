"""What of this installation works: Python, every engine with its packages, and what to do about what does not.

An engine's class may say more than whether it can be made: a static method `diagnose()` that returns `Check`s, and imports nothing heavy.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Literal

from aigo_bridge import __version__
from aigo_bridge.engines import ENTRY_POINT_GROUP
from aigo_bridge.extras import install_command

State = Literal["ok", "warning", "missing"]
"""`ok`; `warning`: works, with a reservation; `missing`: cannot be used as it is."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    subject: str
    """What it is, e.g. `lighteval` or `engine lighteval`."""
    state: State
    found: str
    """What was found, e.g. a release; or what is wrong."""
    remedy: str | None = None
    """The command that mends it; `None` when there is nothing to mend, or no command does."""


def diagnose() -> list[Check]:
    """Look at everything; what is missing does not keep the rest from being looked at."""
    checks = [
        Check("aigo-bridge", "ok", __version__),
        Check("python", "ok", f"{platform.python_version()} on {platform.system()} {platform.machine()}"),
    ]
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=lambda entry: entry.name):
        checks += _engine(entry)
    return checks


def usable_engines(checks: Sequence[Check]) -> list[str]:
    """Names of the engines that can run tasks."""
    prefix = "engine "
    return [
        check.subject.removeprefix(prefix)
        for check in checks
        if check.subject.startswith(prefix) and check.state != "missing"
    ]


def _engine(entry: EntryPoint) -> list[Check]:
    subject = f"engine {entry.name}"
    try:
        engine = entry.load()
    except ImportError as error:
        return [Check(subject, "missing", str(error), install_command(entry.name))]
    own: Callable[[], Sequence[Check]] | None = getattr(engine, "diagnose", None)
    details = [] if own is None else list(own())
    try:
        engine()
    except ImportError as error:
        # Details say it better, where there are some.
        said = any(check.state == "missing" for check in details)
        return [Check(subject, "missing", "cannot run tasks" if said else str(error)), *details]
    return [Check(subject, "ok", "can run tasks"), *details]
