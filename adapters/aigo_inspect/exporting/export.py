"""Export to Inspect: a task as files for `inspect eval`, a result as a log for `inspect view`."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import ExportedFiles, ExportOptions
from aigo_bridge.engine.protocol import contradictions, likelihood_gaps
from aigo_bridge.engine.registry import require_exact
from aigo_bridge.errors import EvidenceError, UsageError, dotted
from aigo_bridge.exporting import refuse_inexact
from aigo_bridge.exporting.folders import (
    MARK,
    PLACEHOLDER,
    check_free,
    draft_near,
    shell,
    write_task,
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
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.version import __version__

OWN_NAMES = ("exported_task", "FILES", "num_samples")
"""Names that a hosted file uses inside the task function."""


def export(plan: TaskPlan, out: Path, options: ExportOptions) -> ExportedFiles:
    """Write a plan as files for `inspect eval`: `<task>.py`, its folder, README.md and requirements.txt.

    Args:
        plan: a plan that was created from a file.
        out: output folder. It is created, or must be empty (unless `ExportOptions.force` is set).
        options: export options.

    Raises:
        InexactExportError: a part of the task has no exact native form (`ExportOptions.native`).
        UnsupportedPlanError: the task cannot run on Inspect, or cannot be moved to another folder.
        UsageError: the output folder is not empty.
    """
    from aigo_inspect.exporting.native import native_form, role_name, write_native

    check_free(out, force=options.force)
    samples = None
    if options.native:
        parts, samples = native_form(plan)
        refuse_inexact(plan.task.key, parts, "plain Inspect code")
    require_exact([*contradictions(plan), *likelihood_gaps(plan)], engine="inspect")
    # Inspect's command line does not accept `-` in role names. The hosted form finds both spellings.
    roles = tuple(role_name(key) for key in plan.model_keys) if options.native else plan.model_keys

    def make(module: str, folder: Path) -> tuple[ExportManifest, str]:
        form: Form = "native" if options.native else "hosted"
        manifest = replace(
            manifest_of(
                plan,
                module,
                form,
                engine="inspect",
                requirements=_requirements(plan, form),
                commands=(_command(plan, module, roles),),
            ),
            model_keys=roles,
        )
        if samples is not None:
            return write_native(plan, samples, folder, manifest)
        arguments = arguments_of(plan, OWN_NAMES)
        manifest = pack(plan, folder, replace(manifest, arguments=tuple(map(Argument.described, arguments))))
        return manifest, _hosted_code(manifest, arguments)

    exported = write_task(plan, out, options, make)
    notes = [f"{key!r} must be set with --model-role '{key}={PLACEHOLDER}'" for key in roles]
    imports = () if options.native else import_notes(plan)
    return replace(exported, notes=(*notes, *imports))


def export_log(result: Path, out: Path, *, force: bool) -> Path:
    """Write a result log to a folder as an Inspect log with Inspect's usual file name.

    Raises:
        EvidenceError: the file is not a result log, or contains several runs.
        UsageError: the log already exists (without `force`), or the folder is a file.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {str(out)!r} is a file, expected a folder", code=Code.UNUSABLE_OUTPUT)
    if not result.is_file():
        raise UsageError(f"file {str(result)!r} does not exist", code=Code.NOTHING_THERE)
    with draft_near(out.absolute()) as draft:
        log = _log_of(result, draft)
        place = out / log.name
        if place.exists() and not force:
            raise UsageError(
                f"{str(place)!r} already exists (replace it with --force)", code=Code.ALREADY_THERE
            )
        out.mkdir(parents=True, exist_ok=True)
        log.replace(place)
    return place


def _log_of(result: Path, folder: Path) -> Path:
    from aigo_inspect.exporting.log import export_log as write

    try:
        return write(result, folder)
    except EvidenceError as error:
        issues = [issue for issue in error.issues if issue.path]
        if not issues:
            raise
        # Missing or invalid fields usually mean another kind of file. `validate` lists all of them.
        more = f" (and {len(issues) - 1} more)" if len(issues) > 1 else ""
        message = (
            f"not a result log that can be exported: {dotted(issues[0].path)}: {issues[0].message}{more}"
        )
        hint = f"aigo-bridge validate {result} lists all problems"
        raise EvidenceError(message, file=str(result), hint=hint, code=Code.NOT_A_RESULT) from error


def _requirements(plan: TaskPlan, form: Form) -> list[str]:
    if form == "hosted":
        return [f"aigo-bridge=={__version__}"]
    packages = ["inspect-ai"]
    if any(scorer.type == "bleu" for scorer in plan.benchmark.scorers):
        packages.append("sacrebleu")
    return [f"{package}=={importlib.metadata.version(package)}" for package in packages]


def _command(plan: TaskPlan, module: str, roles: Sequence[str]) -> str:
    words = ["inspect", "eval", f"{module}.py", "--model", PLACEHOLDER if plan.calls_model else "none"]
    for role in roles:
        words += ["--model-role", f"{role}={PLACEHOLDER}"]
    return shell(*words)


def _hosted_code(manifest: ExportManifest, arguments: Sequence[Argument]) -> str:
    """Return the code of a file for `inspect eval` that calls aigo-bridge, which runs the task."""
    module = manifest.module
    title = f"{one_line(manifest.display_name)}: an AI GO evaluation task on Inspect AI."
    about = f"Written by {MARK}. The task as its author wrote it, and its rows, are in {module}/."
    return rendered(
        Path(__file__).with_name("hosted.py.jinja"),
        head=module_docstring(title, manifest.commands, about),
        module=module,
        function=f"{module}_task" if module in ("task", "exported_task") else module,
        parameters=map(_parameter, arguments),
        description="\n".join(_description(manifest, arguments)),
        arguments=arguments,
    )


def _parameter(argument: Argument) -> str:
    start, *lines = argument.default.split("\n")
    # Ruff expects the exemption on the first line of the list.
    exempt = "  # noqa: B006  # never changed" if argument.is_mutable else ""
    source = f"{argument.name}: {argument.annotation} = {start}"
    return "\n".join([f"{source}{exempt}", *lines]) + "," if lines else f"{source},{exempt}"


def _description(manifest: ExportManifest, arguments: Sequence[Argument]) -> list[str]:
    lines = wrapped(opened(one_line(manifest.description.strip() or manifest.display_name)), indent=4)
    lines += ["", "    Args:"]
    for argument in arguments:
        lines += wrapped(f"{argument.name}: {argument.doc}.", indent=8, hanging=4)
    return [*lines, "        num_samples: Run on the first samples only; None for all.", '    """']
