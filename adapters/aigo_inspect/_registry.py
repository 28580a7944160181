"""What Inspect loads through the entry point `inspect_ai`: the task, the reducer, model entities and the
scripted model.
"""

from __future__ import annotations

import os

from aigo_inspect.models.registration import aigo_bridge, scripted
from aigo_inspect.running.metrics import aigo_trials
from aigo_inspect.running.translate import aigo_task
from aigo_inspect.sandbox.environment import LocalSandbox

if os.environ.get("AIGO_BRIDGE_EVIDENCE"):
    # Registered only when asked for: a hook that is there makes Inspect print a banner, used or not.
    from aigo_inspect.benchmarks import hooks  # noqa: F401  # importing it registers the hook

__all__ = ["LocalSandbox", "aigo_bridge", "aigo_task", "aigo_trials", "scripted"]
