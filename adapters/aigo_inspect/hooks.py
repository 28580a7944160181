"""An Inspect hook that writes AI GO evidence when a task ends, so that any `inspect eval` yields a result log.

It is on when the environment variable `AIGO_BRIDGE_EVIDENCE` names a folder; `log` means the folder of the log:

```sh
AIGO_BRIDGE_EVIDENCE=evidence inspect eval my_task.py --model openai/gpt-4.1
```
"""

from __future__ import annotations

import asyncio
import logging
import os
from pathlib import Path

from inspect_ai.hooks import Hooks, TaskEnd, hooks

from aigo_bridge.errors import BridgeError
from aigo_bridge.importing.result import ImportResult

from .import_verb import import_own
from .importing import ImportSettings, import_file
from .sources import local_path

VARIABLE = "AIGO_BRIDGE_EVIDENCE"
"""Environment variable that names the folder for the evidence; unset or empty: the hook does nothing."""

_logger = logging.getLogger(__name__)


@hooks(name="aigo_bridge_evidence", description="AI GO evidence from every task")
class EvidenceHook(Hooks):
    """Imports the log of each task that ends."""

    def enabled(self) -> bool:
        """Whether the user asked for evidence."""
        return bool(os.environ.get(VARIABLE))

    async def on_task_end(self, data: TaskEnd) -> None:
        """Write the evidence; a failure is reported and never takes the evaluation with it."""
        # In a thread: reading a large log would stop all other tasks of the event loop.
        try:
            result = await asyncio.to_thread(write_evidence, data.log.location, os.environ[VARIABLE])
        except (BridgeError, OSError) as error:
            _logger.warning("evidence of %s was not written: %s", data.log.location, error)
            return
        if result is not None and result.exit_code:
            _logger.warning("evidence of %s: %s", data.log.location, result.reason)


def write_evidence(log: str, folder: str) -> ImportResult | None:
    """Import `log` to `folder`, or beside it when `folder` is `log` and the log is a local file.

    `None` for the log of an AI GO task: its evidence is that of `aigo-bridge run`, and nothing is lost.
    """
    path = local_path(log)
    name = log.replace("\\", "/").rsplit("/", 1)[-1].removesuffix(".eval").removesuffix(".json")
    target = (
        Path(path).parent
        if folder == "log" and path is not None
        else Path("." if folder == "log" else folder)
    )
    target.mkdir(parents=True, exist_ok=True)
    if import_own(log, target) is not None:
        return None
    return import_file(log, target / name, ImportSettings())
