"""What Inspect loads through the entry point `inspect_ai`: the task, the reducer, model entities and the scripted model."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, cast

from inspect_ai.model import modelapi

from aigo_inspect.mirrors import aigo_trials
from aigo_inspect.namespace import in_namespace
from aigo_inspect.sandbox.environment import LocalSandbox
from aigo_inspect.translate import aigo_task

if TYPE_CHECKING:
    from inspect_ai.model import ModelAPI

    from aigo_inspect.scripted import ScriptedAPI


@modelapi(name="scripted")
@in_namespace
def scripted() -> type[ScriptedAPI]:
    """`scripted/<file>`: a model that answers from a file of rules."""
    from aigo_inspect.scripted import ScriptedAPI

    return ScriptedAPI


@modelapi(name="aigo_bridge")
@in_namespace
def aigo_bridge() -> type[ModelAPI]:
    """`aigo_bridge/<file>`: a model entity of AI GO."""
    from aigo_inspect.provider import entity_api

    # Inspect only calls what it gets here.
    return cast("type[ModelAPI]", entity_api)


if os.environ.get("AIGO_BRIDGE_EVIDENCE"):
    # Registered only when asked for: a hook that is there makes Inspect print a banner, used or not.
    from aigo_inspect import hooks  # noqa: F401  # importing it registers the hook

__all__ = ["LocalSandbox", "aigo_bridge", "aigo_task", "aigo_trials", "scripted"]
