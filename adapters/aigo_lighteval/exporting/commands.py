"""The command lines of exported tasks, and the model's configuration that some of them need."""

from __future__ import annotations

import json
from typing import Any

from aigo_bridge.exporting.manifest import Form
from aigo_bridge.exporting.readme import PLACEHOLDER, shell
from aigo_bridge.plan import TaskPlan
from aigo_lighteval.exporting.questions import Shared
from aigo_lighteval.translate import task_name

MODELS = "AIGO_BRIDGE_MODELS"
"""Variable of the environment that names the other models of a task: `KEY=PROVIDER/MODEL`, several with commas between them."""

MODEL_FILE = "model.py"
CONFIGURATION = "model.yaml"
MODEL = "MODEL"
"""Stands for a model that one of lighteval's backends loads."""


def backend_command(plan: TaskPlan, module: str, shared: Shared, form: Form) -> str:
    """Lighteval's backend for models of transformers; other backends take the same words."""
    model = f"{module}/{CONFIGURATION}" if shared.is_of_model else f"model_name={MODEL}"
    spec = f"{task_name(plan)}|{len(shared.examples)}"
    return _prefix(plan, form) + shell("lighteval", "accelerate", model, spec, *_options(module))


def custom_command(plan: TaskPlan, module: str) -> str:
    """Our model under lighteval's command line."""
    model = PLACEHOLDER if plan.calls_model else "none"
    words = (
        "lighteval",
        "custom",
        model,
        f"{module}/{MODEL_FILE}",
        f"{task_name(plan)}|0",
        *_options(module),
    )
    return _prefix(plan, "hosted") + shell(*words)


def configuration(shared: Shared) -> str:
    """The model's configuration, where a task needs more than its name; JSON is YAML."""
    parameters: dict[str, Any] = {"model_name": MODEL}
    if shared.system is not None:
        parameters["system_prompt"] = shared.system
    if shared.settings:
        parameters["generation_parameters"] = dict(shared.settings)
    return json.dumps({"model_parameters": parameters}, ensure_ascii=False, indent=2) + "\n"


def _options(module: str) -> tuple[str, ...]:
    return "--custom-tasks", f"{module}.py", "--save-details"


def _prefix(plan: TaskPlan, form: Form) -> str:
    if form == "native" or not plan.model_keys:
        return ""
    named = ",".join(f"{key}={PLACEHOLDER}" for key in plan.model_keys)
    return f"{MODELS}={shell(named)} "
