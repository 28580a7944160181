"""Export to lighteval: a task as files for its command line."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict, replace
from pathlib import Path

from aigo_bridge import __version__
from aigo_bridge.engines import require_exact
from aigo_bridge.exporting import Exported, ExportOptions, refuse_inexact
from aigo_bridge.exporting.folders import check_free, manifests, new_content
from aigo_bridge.exporting.manifest import Form, Manifest
from aigo_bridge.exporting.names import module_name
from aigo_bridge.exporting.packing import pack
from aigo_bridge.exporting.python_code import arguments_of
from aigo_bridge.exporting.readme import readme, requirements
from aigo_bridge.exporting.snippet_imports import snippet_imports
from aigo_bridge.plan import TaskPlan


def export(plan: TaskPlan, out: Path, options: ExportOptions) -> Exported:
    """Write a plan as files that `lighteval … --custom-tasks` runs: `<task>.py`, its folder, README.md and requirements.txt.

    Args:
        plan: made from a file.
        out: the folder; it is made, or has to be empty (but see `ExportOptions.force`).
        options: see there.

    Raises:
        InexactExportError: a part of the task has no exact native form (`ExportOptions.native`).
        UnsupportedPlanError: the task cannot run on lighteval, or cannot be moved to another folder.
        UsageError: the folder is not free.
    """
    from aigo_lighteval.exporting import commands
    from aigo_lighteval.exporting.gaps import export_gaps
    from aigo_lighteval.exporting.hosted import hosted_code, model_code
    from aigo_lighteval.exporting.native import native_form, write_native
    from aigo_lighteval.exporting.questions import shared_question
    from aigo_lighteval.exporting.rows import write_numbers

    check_free(out, force=options.force)
    native = None
    if options.native:
        parts, native = native_form(plan)
        refuse_inexact(plan.task.key, parts, "plain lighteval code")
    require_exact(export_gaps(plan), engine="lighteval")
    shared, problems = shared_question(plan)
    with new_content(out, force=options.force) as draft:
        others = [other for other in manifests(out) if other.key != plan.task.key]
        form: Form = "hosted" if native is None else "native"
        module = module_name(plan.task.key, [other.module for other in others])
        lines = [] if problems else [commands.backend_command(plan, module, shared, form)]
        if native is None:
            lines.append(commands.custom_command(plan, module))
        manifest = _manifest(plan, module, form, tuple(lines))
        folder = draft / module
        if native is not None:
            manifest, code = write_native(plan, native, folder, manifest)
        else:
            arguments = arguments_of(plan)
            described = [
                {**asdict(argument), "default": " ".join(argument.default.split())} for argument in arguments
            ]
            manifest = pack(plan, folder, replace(manifest, arguments=tuple(described)))
            code = hosted_code(manifest, arguments)
            _write(folder / commands.MODEL_FILE, model_code(manifest))
        if not problems and shared.is_of_model:
            _write(folder / commands.CONFIGURATION, commands.configuration(shared))
        write_numbers(folder, manifest, 0 if problems else len(shared.examples))
        manifest.write(folder)
        _write(draft / f"{module}.py", code)
        tasks = sorted([*others, manifest], key=lambda task: task.module)
        _write(draft / "README.md", readme(tasks))
        _write(draft / "requirements.txt", requirements(tasks))
        files = [path.relative_to(draft).as_posix() for path in sorted(draft.rglob("*")) if path.is_file()]
    main = f"{module}.py"
    return Exported(
        folder=out,
        files=(main, *(name for name in files if name != main)),
        commands=manifest.commands,
        notes=_notes(manifest, problems, with_configuration=not problems and shared.is_of_model),
    )


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _manifest(plan: TaskPlan, module: str, form: Form, commands: tuple[str, ...]) -> Manifest:
    if form == "native":
        needs = (
            *(f"{package}=={importlib.metadata.version(package)}" for package in _packages(plan)),
            # lighteval installs beside newer ones, and does not work with them.
            "xxhash<4",
            "huggingface_hub<2",
        )
    else:
        needs = (f"aigo-bridge[lighteval]=={__version__}",)
    return Manifest(
        module=module,
        form=form,
        engine="lighteval",
        key=plan.task.key,
        display_name=plan.task.display_name,
        description=plan.task.description,
        digest=plan.digest,
        task_digest="",
        num_samples=len(plan.samples),
        num_trials=plan.num_trials,
        calls_model=plan.calls_model,
        model_keys=plan.model_keys if form == "hosted" else (),
        requirements=needs,
        imports=snippet_imports(plan) if form == "hosted" else (),
        commands=commands,
        config=dict(plan.config),
    )


def _packages(plan: TaskPlan) -> list[str]:
    from aigo_lighteval.golds import is_of_records

    scorers = plan.benchmark.scorers
    records = any(map(is_of_records, scorers))
    bleu = ["sacrebleu"] if records or any(scorer.type == "bleu" for scorer in scorers) else []
    return ["lighteval", *bleu, *(["rouge-score"] if records else [])]


def _notes(manifest: Manifest, problems: list[str], *, with_configuration: bool) -> tuple[str, ...]:
    from aigo_lighteval.exporting.commands import CONFIGURATION, MODELS

    notes = [f"{key!r} has to be named in {MODELS}" for key in manifest.model_keys]
    if problems:
        notes.append(
            f"lighteval's own models cannot be asked what the task asks: {'; '.join(problems)}; {manifest.module}/model.py runs it"
        )
    if with_configuration:
        notes.append(f"the model is named in {manifest.module}/{CONFIGURATION}")
    if manifest.imports:
        names = ", ".join(manifest.imports)
        notes.append(f"the author's code imports {names}, which requirements.txt does not name")
    return tuple(notes)
