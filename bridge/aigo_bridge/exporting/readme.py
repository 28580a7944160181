"""README.md and requirements.txt of a folder with exported tasks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from aigo_bridge import __version__
from aigo_bridge.exporting.folders import MARK
from aigo_bridge.exporting.manifest import Manifest
from aigo_bridge.exporting.python_code import visible
from aigo_bridge.spec.datasets import SAMPLE_NOTE, is_sample_data

PLACEHOLDER = "PROVIDER/MODEL"
"""Stands in commands for a model that the user has to name."""

_LONGEST_CELL = 200


def readme(tasks: Sequence[Manifest]) -> str:
    """The README of a folder: for each task how it is run, and with what."""
    lines = [f"<!-- written by {MARK}, release {__version__} -->", ""]
    if len(tasks) > 1:
        lines += ["# Evaluation tasks", ""]
    for task in tasks:
        lines += _task(task, "#" if len(tasks) == 1 else "##")
    return "\n".join(lines).rstrip() + "\n"


def requirements(tasks: Sequence[Manifest]) -> str:
    """requirements.txt for all tasks of a folder."""
    names = sorted({name for task in tasks for name in task.requirements})
    return "\n".join([f"# written by {MARK}", *names]) + "\n"


def shell(*words: str) -> str:
    """A command line as it is typed."""
    return " ".join(shlex.quote(word) for word in words)


def _task(task: Manifest, level: str) -> list[str]:
    lines = [f"{level} {_text(task.display_name)}", ""]
    if task.description.strip():
        lines += [_text(task.description), ""]
    if task.dataset is not None and is_sample_data(task.dataset.tags):
        lines += [f"Its rows: {SAMPLE_NOTE}.", ""]
    lines += ["```console", "pip install -r requirements.txt", *task.commands, "```", ""]
    if task.model_keys:
        roles = ", ".join(f"`{key}`" for key in task.model_keys)
        model = f" `{PLACEHOLDER}` stands for the model to put there."
        lines += [f"Besides the evaluated model the task asks {roles}.{model}", ""]
    if task.imports:
        names = ", ".join(f"`{name}`" for name in task.imports)
        lines += [f"The author's code also imports {names}: install what it needs.", ""]
    lines += _models(task)
    if task.arguments:
        given = (
            f"parameter (in `{task.module}.py`)"
            if task.engine == "lighteval"
            else "argument (`-T name=value`)"
        )
        lines += [f"| {given} | type | meaning | default |", "|---|---|---|---|"]
        lines += [_argument(argument, task.engine) for argument in task.arguments]
        lines += [""]
    trials = f", {task.num_trials} trials each" if task.num_trials > 1 else ""
    rows = f" {task.num_samples} samples{trials}." if task.dataset is not None else ""
    return [*lines, f"Task `{task.key}`, plan `{task.digest[:12]}`.{rows} {_form(task)}", ""]


def _form(task: Manifest) -> str:
    if task.form == "native":
        return (
            f"`{task.module}.py` is plain code that needs no aigo-bridge; prompts and expected answers were rendered"
            " at the time of the export."
        )
    return (
        f"`{task.module}/` holds the task as it was written, and its rows; `{task.module}.py` refuses to run when they"
        " have changed."
    )


def _models(task: Manifest) -> list[str]:
    """Which model goes where, on engines whose commands differ by model."""
    if task.engine != "lighteval":
        return []
    own = [command for command in task.commands if "lighteval accelerate" in command]
    lines: list[str] = []
    if own:
        place = f", in `{task.module}/model.yaml`" if f"{task.module}/model.yaml" in own[0] else ""
        backends = (
            "`lighteval accelerate` is for models of transformers; lighteval's other backends take the same task and files."
            f" `MODEL` stands for the model{place}. A model without a chat template is asked the bare text."
        )
        lines += [backends, ""]
        if task.form == "native":
            silent = (
                "Plain code sees answers alone: lighteval cuts the beginning of prompts that are too long for the model, takes any system"
                " prompt, and with some backends (litellm) a call that failed is an empty answer. The hosted form finds all of that out."
            )
            lines += [silent, ""]
    if any("lighteval custom" in command for command in task.commands):
        whole = "carries out the whole task with a model as `aigo-bridge run --engine lighteval` takes it"
        lines += [f"`lighteval custom` with `{task.module}/model.py` {whole}.", ""]
    return lines


def _argument(argument: Mapping[str, str], engine: str) -> str:
    name, key = argument["name"], argument["key"]
    if engine == "lighteval":
        name = key
    shown = f"`{name}`" if name == key else f"`{name}` (the task's `{_cell(key)}`)"
    cells = (
        shown,
        f"`{_cell(argument['annotation'])}`",
        _cell(argument["doc"]),
        f"`{_cell(argument['default'])}`",
    )
    return f"| {' | '.join(cells)} |"


def _text(text: str) -> str:
    return visible(" ".join(text.split()))


def _cell(text: str) -> str:
    """Text for a cell of a table: one line, short."""
    shown = _text(text).replace("|", "\\|").replace("`", "'")
    return shown if len(shown) <= _LONGEST_CELL else shown[: _LONGEST_CELL - 1] + "…"
