"""What Inspect loads through the entry point `inspect_ai`: the task, the reducer and the scripted model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from inspect_ai.model import modelapi

from aigo_inspect.mirrors import aigo_trials
from aigo_inspect.namespace import in_namespace
from aigo_inspect.translate import aigo_task

if TYPE_CHECKING:
    from aigo_inspect.scripted import ScriptedAPI


@modelapi(name="scripted")
@in_namespace
def scripted() -> type[ScriptedAPI]:
    """`scripted/<file>`: a model that answers from a file of rules."""
    from aigo_inspect.scripted import ScriptedAPI

    return ScriptedAPI


if os.environ.get("AIGO_BRIDGE_EVIDENCE"):
    # Registered only when asked for: a hook that is there makes Inspect print a banner, used or not.
    from aigo_inspect import hooks  # noqa: F401

__all__ = ["aigo_task", "aigo_trials", "scripted"]
