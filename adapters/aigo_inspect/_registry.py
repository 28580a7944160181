"""Objects that Inspect loads through the entry point `inspect_ai`: the task, the trial reducer, the model
providers and the local sandbox.
"""

from __future__ import annotations

import os

from aigo_inspect.models.registration import aigo_bridge, scripted
from aigo_inspect.running.metrics import aigo_trials
from aigo_inspect.running.translate import aigo_task
from aigo_inspect.sandbox.environment import LocalSandbox

if os.environ.get("AIGO_BRIDGE_EVIDENCE"):
    # Inspect prints a banner as soon as a hook is registered, so the hook is only registered on request.
    from aigo_inspect.benchmarks import hooks  # noqa: F401  # the import registers the hook

__all__ = ["LocalSandbox", "aigo_bridge", "aigo_task", "aigo_trials", "scripted"]
