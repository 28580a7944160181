"""Export of a task as files for lighteval's command line."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from aigo_bridge.engine.engine import ExportedFiles, ExportOptions
from aigo_bridge.engine.protocol import Fidelity, Gap, contradictions
from aigo_bridge.engine.registry import require_exact
from aigo_bridge.exporting import refuse_inexact
from aigo_bridge.exporting.folders import (
    MARK,
    PLACEHOLDER,
    check_free,
    shell,
    write_task,
    write_text,
)
from aigo_bridge.exporting.manifest import ExportManifest, Form, import_notes, manifest_of
from aigo_bridge.exporting.packing import pack
from aigo_bridge.exporting.python_code import (
    Argument,
    arguments_of,
    module_docstring,
    one_line,
    opened,
    rendered,
    wrapped,
)
from aigo_bridge.jsonl_spec.conversion import is_of_records
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.version import __version__
from aigo_lighteval.documents.turns import EXAMPLES, ROWS, SPLIT, SharedFields, mark, shared_question

MODELS = "AIGO_BRIDGE_MODELS"
"""Environment variable with the other models of a task: `KEY=PROVIDER/MODEL`, separated by commas."""

_CONFIGURATION = "model.yaml"
_MODEL = "MODEL"
"""Placeholder for a model that a lighteval backend loads."""


def export(plan: TaskPlan, out: Path, options: ExportOptions) -> ExportedFiles:
    """Write a plan as files for `lighteval … --custom-tasks`: `<task>.py`, its folder, README.md and
    requirements.txt.

    Args:
        plan: plan of a task file.
        out: output folder. It is created, or must be empty (but see `ExportOptions.force`).
        options: export options.

    Raises:
        InexactExportError: a part of the task cannot be expressed exactly (`ExportOptions.native`).
        UnsupportedPlanError: the task cannot run on lighteval, or cannot be moved to another folder.
        UsageError: the folder is not empty.
    """
    # Imported late: this module is loaded before lighteval is known to be installed.
    from aigo_lighteval.exporting.native import native_form, write_native

    check_free(out, force=options.force)
    native = None
    if options.native:
        parts, native = native_form(plan)
        refuse_inexact(plan.task.key, parts, "plain lighteval code")
    require_exact(_gaps(plan), engine="lighteval")
    shared, problems = shared_question(plan)
    is_configured = not problems and shared.is_of_model
    notes: list[str] = []

    def make(module: str, folder: Path) -> tuple[ExportManifest, str]:
        form: Form = "native" if options.native else "hosted"
        manifest = manifest_of(
            plan,
            module,
            form,
            engine="lighteval",
            requirements=_requirements(plan, form),
            commands=_commands(plan, module, form, None if problems else shared),
        )
        if native is not None:
            manifest, code = write_native(plan, native, folder, replace(manifest, model_keys=()))
        else:
            arguments = arguments_of(plan)
            described = tuple(map(Argument.described, arguments))
            manifest = pack(plan, folder, replace(manifest, arguments=described))
            code = _hosted_code(manifest, arguments)
            write_text(folder / "model.py", _model_code(module))
        if is_configured:
            write_text(folder / _CONFIGURATION, _configuration(shared))
        _write_numbers(folder, manifest, 0 if problems else len(shared.examples))
        notes.extend(_notes(manifest, problems))
        return manifest, code

    exported = write_task(plan, out, options, make)
    if is_configured:
        notes.append(f"the model is named in {exported.files[0].removesuffix('.py')}/{_CONFIGURATION}")
    imports = () if options.native else import_notes(plan)
    return replace(exported, notes=(*notes, *imports))


def _gaps(plan: TaskPlan) -> Sequence[Gap]:
    """Return the reasons why a task cannot run with lighteval's command line in any form."""
    if plan.entity == "system":
        reason = "does not have rows, and lighteval does not run tasks without documents"
        return [Gap("definition (system_task)", reason, Fidelity.UNSUPPORTED, "run it with aigo-bridge run")]
    gaps = list(contradictions(plan))
    if not plan.samples:
        reason = "does not have rows, and lighteval does not run tasks without documents"
        gaps.append(Gap("dataset", reason, Fidelity.UNSUPPORTED))
    parts = [
        f"scorers[{number}] ({scorer.type})"
        for number, scorer in enumerate(plan.benchmark.scorers)
        if scorer.runs_answers
    ]
    if plan.runs_tools and plan.benchmark.solver is not None:
        parts.insert(0, f"solver ({plan.benchmark.solver.type})")
    reason = "runs code that a model wrote, and lighteval does not have a sandbox"
    hint = "export it with --to inspect"
    return [*gaps, *(Gap(part, reason, Fidelity.UNSUPPORTED, hint) for part in parts)]


def _requirements(plan: TaskPlan, form: Form) -> list[str]:
    if form == "hosted":
        return [f"aigo-bridge[lighteval]=={__version__}"]
    scorers = plan.benchmark.scorers
    packages = ["lighteval"]
    if any(map(is_of_records, scorers)):
        packages += ["sacrebleu", "rouge-score"]
    elif any(scorer.type == "bleu" for scorer in scorers):
        packages.append("sacrebleu")
    pinned = [f"{package}=={importlib.metadata.version(package)}" for package in packages]
    # lighteval can be installed together with newer releases but fails with them.
    return [*pinned, "xxhash<4", "huggingface_hub<2"]


def _notes(manifest: ExportManifest, problems: Sequence[str]) -> list[str]:
    notes = [f"{key!r} must be set in {MODELS}" for key in manifest.model_keys]
    if problems:
        notes.append(
            f"lighteval's own models cannot run this task: {'; '.join(problems)};"
            f" use {manifest.module}/model.py"
        )
    return notes


# Commands


def _commands(plan: TaskPlan, module: str, form: Form, shared: SharedFields | None) -> list[str]:
    """Return the commands that run the task.

    The first uses lighteval's transformers backend, unless it does not support the task. Other backends take
    the same arguments. A hosted export also has a command with aigo-bridge's model.
    """
    from aigo_lighteval.documents.translate import task_name

    options = "--custom-tasks", f"{module}.py", "--save-details"
    name, prefix = task_name(plan), ""
    if form == "hosted" and plan.model_keys:
        named = ",".join(f"{key}={PLACEHOLDER}" for key in plan.model_keys)
        prefix = f"{MODELS}={shell(named)} "
    commands = []
    if shared is not None:
        model = f"{module}/{_CONFIGURATION}" if shared.is_of_model else f"model_name={_MODEL}"
        commands.append(shell("lighteval", "accelerate", model, f"{name}|{len(shared.examples)}", *options))
    if form == "hosted":
        model = PLACEHOLDER if plan.calls_model else "none"
        commands.append(shell("lighteval", "custom", model, f"{module}/model.py", f"{name}|0", *options))
    return [prefix + command for command in commands]


def _configuration(shared: SharedFields) -> str:
    """Return the model configuration for a task that needs more than a model name. JSON is valid YAML."""
    parameters: dict[str, Any] = {"model_name": _MODEL}
    if shared.system is not None:
        parameters["system_prompt"] = shared.system
    if shared.settings:
        parameters["generation_parameters"] = dict(shared.settings)
    return json.dumps({"model_parameters": parameters}, ensure_ascii=False, indent=2) + "\n"


# Files


def _write_numbers(folder: Path, manifest: ExportManifest, num_examples: int) -> None:
    place = folder / ROWS
    place.mkdir()
    for split, number in ((SPLIT, manifest.num_samples), (EXAMPLES, num_examples)):
        if number or split == SPLIT:
            lines = (json.dumps({"sample": row, "export": mark(manifest)}) + "\n" for row in range(number))
            write_text(place / f"{split}.jsonl", "".join(lines))


def _hosted_code(manifest: ExportManifest, arguments: Sequence[Argument]) -> str:
    """Return the code for `lighteval … --custom-tasks` that calls aigo-bridge."""
    module = manifest.module
    title = f"{one_line(manifest.display_name)}: an AI GO evaluation task on lighteval."
    about = f"Written by {MARK}. The task as its author wrote it, and its rows, are in {module}/."
    head = module_docstring(title, manifest.commands, about)
    template = Path(__file__).with_name("hosted.py.jinja")
    return rendered(template, head=head, module=module, arguments=arguments)


def _model_code(module: str) -> str:
    """Return the model file for `lighteval custom`, which uses the first model class in the file."""
    about = f"The evaluated model of {module}.py, written by {MARK}."
    head = "\n".join([*wrapped(opened(about), indent=0), '"""'])
    return rendered(Path(__file__).with_name("model.py.jinja"), head=head)
