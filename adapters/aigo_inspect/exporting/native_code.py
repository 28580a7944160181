"""The file of a task as plain Inspect code: imports, samples, solver, scorers, metrics, trials, task."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from aigo_bridge.exporting.comparisons import metrics_of
from aigo_bridge.exporting.folders import MARK
from aigo_bridge.exporting.manifest import Manifest
from aigo_bridge.exporting.names import LONGEST, unique_names
from aigo_bridge.exporting.python_code import (
    WIDTH,
    call,
    docstring,
    one_line,
    opened,
    text_literal,
    wrapped,
)
from aigo_bridge.plan import TaskPlan
from aigo_bridge.scoring import scorer_keys
from aigo_inspect.exporting.native_scorers import (
    INCLUDED_NUMBERS,
    NUMBERS,
    UNSOLVED,
    scorer_code,
    trials_code,
)
from aigo_inspect.exporting.native_solvers import solver_call, solver_code

RESERVED = frozenset(
    {
        "Any",
        "BLEU",
        "ChatMessage",
        "ChatMessageAssistant",
        "ChatMessageSystem",
        "ChatMessageUser",
        "Counter",
        "Epochs",
        "FILES",
        "Generate",
        "GenerateConfig",
        "MemoryDataset",
        "Metric",
        "ModelOutput",
        "Path",
        "ROLES",
        "Sample",
        "SampleScore",
        "Score",
        "ScoreReducer",
        "Scorer",
        "Solver",
        "Target",
        "Task",
        "TaskState",
        "Value",
        "answer",
        "answered",
        "answers",
        "ask",
        "asked",
        "carry_out",
        "choices",
        "compute",
        "conversation",
        "count",
        "counts",
        "deviation",
        "dict",
        "each",
        "expected",
        "file",
        "float",
        "found",
        "generate",
        "get_model",
        "json",
        "len",
        "list",
        "map",
        "math",
        "max",
        "metadata",
        "metric",
        "min",
        "name",
        "numbers",
        "numbers_of",
        "percent",
        "predicted",
        "range",
        "recorded",
        "reduce",
        "repeat",
        "rows",
        "samples",
        "score",
        "score_reducer",
        "scorer",
        "scores",
        "solve",
        "solver",
        "spoken",
        "state",
        "statistics",
        "str",
        "sum",
        "target",
        "task",
        "text",
        "trials",
        "truth",
        "unsolved",
        "value",
    }
)
"""Names that the code uses for other things than scorers."""


def native_code(plan: TaskPlan, manifest: Manifest, *, has_config: bool) -> str:
    """The task's file."""
    module = manifest.module if manifest.module not in RESERVED else f"{manifest.module}_task"
    blocks = [_samples(plan)]
    blocks += solver_code(plan, has_config=has_config)
    keys = scorer_keys(plan.benchmark.scorers)
    if keys and plan.calls_model:
        blocks.append(UNSOLVED)
    if any(metrics_of(scorer) for scorer in plan.benchmark.scorers):
        blocks.append(INCLUDED_NUMBERS if plan.benchmark.actions else NUMBERS)
    # No key has a space in it, so the metrics have keys of their own.
    named = unique_names([*keys, *(f"{key} metrics" for key in keys)], [*RESERVED, module], longest=LONGEST)
    for number, (key, scorer) in enumerate(zip(keys, plan.benchmark.scorers, strict=True)):
        blocks += scorer_code(
            key, named[key], named[f"{key} metrics"], scorer, is_first=number == 0, asks=plan.calls_model
        )
    if plan.num_trials > 1 and keys:
        blocks.append(trials_code(plan))
    blocks.append(_task(plan, manifest, module, [named[key] for key in keys]))
    body = "\n\n\n".join(block.strip("\n") for block in blocks)
    files = f"FILES = Path(__file__).resolve().parent / {text_literal(manifest.module)}"
    return f"{_head(manifest)}\n\n{_imports(body)}\n\n{files}\n\n\n{body}\n"


def _head(manifest: Manifest) -> str:
    about = (
        f"Written by {MARK} from the AI GO task {one_line(manifest.key)} (plan {manifest.digest[:12]}). Prompts and expected answers are rendered:"
        f" they stand in {manifest.module}/samples.jsonl."
    )
    lines = [
        *wrapped(opened(f"{one_line(manifest.display_name)}."), indent=0),
        "",
        *(f"    {one_line(command)}" for command in manifest.commands),
        "",
        *wrapped(about, indent=0),
        '"""',
    ]
    return "\n".join(lines)


_MODULES = {
    "inspect_ai": ("Epochs", "Task", "task"),
    "inspect_ai.dataset": ("MemoryDataset", "Sample"),
    "inspect_ai.model": (
        "ChatMessage",
        "ChatMessageAssistant",
        "ChatMessageSystem",
        "ChatMessageUser",
        "GenerateConfig",
        "ModelOutput",
        "get_model",
    ),
    "inspect_ai.scorer": (
        "Metric",
        "SampleScore",
        "Score",
        "Scorer",
        "ScoreReducer",
        "Target",
        "Value",
        "metric",
        "score_reducer",
        "scorer",
    ),
    "inspect_ai.solver": ("Generate", "Solver", "TaskState", "solver"),
}
"""What the code may import from Inspect, in the formatter's order."""


def _imports(body: str) -> str:
    used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
    standard = ["import json"]
    if "math" in used:
        standard.append("import math")
    if "statistics" in used:
        standard.append("import statistics")
    if "Counter" in used:
        standard.append("from collections import Counter")
    standard.append("from pathlib import Path")
    if "Any" in used:
        standard.append("from typing import Any")
    packages = []
    for module, names in _MODULES.items():
        wanted = [name for name in names if name in used]
        if wanted:
            packages.append(_import(module, wanted))
    if "BLEU" in used:
        packages.append("from sacrebleu.metrics.bleu import BLEU")
    return "\n".join(standard) + "\n\n" + "\n".join(packages)


def _import(module: str, names: Sequence[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in names), ")"])


def _samples(plan: TaskPlan) -> str:
    name = plan.dataset.key if plan.dataset is not None else plan.task.key
    lines = [
        "def samples() -> MemoryDataset:",
        '    """The samples: one JSON object a line."""',
        '    with (FILES / "samples.jsonl").open(encoding="utf-8") as file:',
        "        rows = [Sample(**json.loads(line)) for line in file]",
        *call("return MemoryDataset(", ["rows", f"name={text_literal(name)}"], indent=4),
    ]
    return "\n".join(lines)


def _task(plan: TaskPlan, manifest: Manifest, module: str, scorers: Sequence[str]) -> str:
    lines = [
        "@task",
        f"def {module}() -> Task:",
        *docstring(one_line(manifest.description.strip() or manifest.display_name), indent=4),
        "    return Task(",
        f"        name={text_literal(plan.task.key)},",
        f"        display_name={text_literal(plan.task.display_name)},",
        "        dataset=samples(),",
        f"        solver={solver_call(plan)},",
    ]
    if scorers:
        lines += _listed("scorer", [f"{name}()" for name in scorers])
    if plan.num_trials > 1:
        lines += [f"        epochs=Epochs({plan.num_trials}{', trials()' if scorers else ''}),"]
    return "\n".join([*lines, "        fail_on_error=False,", "    )"])


def _listed(name: str, items: Sequence[str]) -> list[str]:
    return [f"        {name}=[", *(f"            {item}," for item in items), "        ],"]
