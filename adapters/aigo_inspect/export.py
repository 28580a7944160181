"""Export to Inspect: a task as files for `inspect eval`, a result as a log for `inspect view`."""

from __future__ import annotations

import importlib.metadata
from dataclasses import asdict, replace
from pathlib import Path

from aigo_bridge import __version__
from aigo_bridge.engines import require_exact
from aigo_bridge.errors import EvidenceError, Issue, UsageError, dotted
from aigo_bridge.exporting import Exported, ExportOptions, refuse_inexact
from aigo_bridge.exporting.folders import check_free, draft_near, manifests, new_content
from aigo_bridge.exporting.manifest import Form, Manifest
from aigo_bridge.exporting.names import module_name
from aigo_bridge.exporting.packing import pack
from aigo_bridge.exporting.python_code import arguments_of
from aigo_bridge.exporting.readme import PLACEHOLDER, readme, requirements, shell
from aigo_bridge.exporting.snippet_imports import snippet_imports
from aigo_bridge.gaps import contradictions, likelihood_gaps
from aigo_bridge.plan import TaskPlan


def export(plan: TaskPlan, out: Path, options: ExportOptions) -> Exported:
    """Write a plan as files that `inspect eval` runs: `<task>.py`, its folder, README.md and requirements.txt.

    Args:
        plan: made from a file.
        out: the folder; it is made, or has to be empty (but see `ExportOptions.force`).
        options: see there.

    Raises:
        InexactExportError: a part of the task has no exact native form (`ExportOptions.native`).
        UnsupportedPlanError: the task cannot run on Inspect, or cannot be moved to another folder.
        UsageError: the folder is not free.
    """
    from aigo_inspect.exporting.native import native_form, write_native

    check_free(out, force=options.force)
    samples = None
    if options.native:
        parts, samples = native_form(plan)
        refuse_inexact(plan.task.key, parts, "plain Inspect code")
    require_exact([*contradictions(plan), *likelihood_gaps(plan)], engine="inspect")
    with new_content(out, force=options.force) as draft:
        others = [other for other in manifests(out) if other.key != plan.task.key]
        manifest = _manifest(
            plan, [other.module for other in others], "native" if options.native else "hosted"
        )
        folder = draft / manifest.module
        if samples is not None:
            manifest, code = write_native(plan, samples, folder, manifest)
        else:
            manifest, code = _write_hosted(plan, folder, manifest)
        manifest.write(folder)
        (draft / f"{manifest.module}.py").write_text(code, encoding="utf-8", newline="\n")
        tasks = sorted([*others, manifest], key=lambda task: task.module)
        (draft / "README.md").write_text(readme(tasks), encoding="utf-8", newline="\n")
        (draft / "requirements.txt").write_text(requirements(tasks), encoding="utf-8", newline="\n")
        files = [path.relative_to(draft).as_posix() for path in sorted(draft.rglob("*")) if path.is_file()]
    main = f"{manifest.module}.py"
    return Exported(
        folder=out,
        files=(main, *(name for name in files if name != main)),
        commands=manifest.commands,
        notes=_notes(manifest),
    )


def export_log(result: Path, out: Path, *, force: bool) -> Path:
    """Write a result log as an Inspect log into a folder, under the name that Inspect would give it.

    Raises:
        EvidenceError: the file is no result log, or has several runs.
        UsageError: the log is there already (without `force`), or the folder is a file.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {str(out)!r} is a file, expected a folder")
    if not result.is_file():
        raise UsageError(f"there is no file {str(result)!r}")
    with draft_near(out.absolute()) as draft:
        written = _log_of(result, draft)
        place = out / written.name
        if place.exists() and not force:
            raise UsageError(f"{str(place)!r} is there already (--force replaces it)")
        out.mkdir(parents=True, exist_ok=True)
        written.replace(place)
    return place


def _log_of(result: Path, folder: Path) -> Path:
    from aigo_inspect.writing import export_log as write

    try:
        return write(result, folder)
    except EvidenceError as error:
        found = [issue for issue in error.issues if issue.path]
        if not found:
            raise
        # Fields that are missing or wrong are mostly those of another kind of file; `validate` names them one by one.
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        message = f"not a result log that can be exported: {dotted(found[0].path)}: {found[0].message}{more}"
        hint = f"aigo-bridge validate {result} says what is wrong with it"
        raise EvidenceError([Issue(message, file=str(result), hint=hint)]) from error


def _manifest(plan: TaskPlan, taken: list[str], form: Form) -> Manifest:
    module = module_name(plan.task.key, taken)
    if form == "native":
        packages = ["inspect-ai"]
        if any(scorer.type == "bleu" for scorer in plan.benchmark.scorers):
            packages.append("sacrebleu")
        needs = tuple(f"{package}=={importlib.metadata.version(package)}" for package in packages)
    else:
        needs = (f"aigo-bridge=={__version__}",)
    return Manifest(
        module=module,
        form=form,
        engine="inspect",
        key=plan.task.key,
        display_name=plan.task.display_name,
        description=plan.task.description,
        digest=plan.digest,
        task_digest="",
        num_samples=len(plan.samples),
        num_trials=plan.num_trials,
        calls_model=plan.calls_model,
        model_keys=tuple(_roles(plan, form)),
        requirements=needs,
        imports=snippet_imports(plan) if form == "hosted" else (),
        commands=(_command(plan, module, form),),
        config=dict(plan.config),
    )


def _command(plan: TaskPlan, module: str, form: Form) -> str:
    words = ["inspect", "eval", f"{module}.py", "--model", PLACEHOLDER if plan.calls_model else "none"]
    for role in _roles(plan, form):
        words += ["--model-role", f"{role}={PLACEHOLDER}"]
    return shell(*words)


def _roles(plan: TaskPlan, form: Form) -> list[str]:
    """Names under which other models are given to Inspect; the hosted form finds both spellings."""
    from aigo_inspect.exporting.native_samples import role_name

    return [role_name(key) if form == "native" else key for key in plan.model_keys]


def _write_hosted(plan: TaskPlan, folder: Path, manifest: Manifest) -> tuple[Manifest, str]:
    from aigo_inspect.exporting.hosted import OWN_NAMES, hosted_code

    arguments = arguments_of(plan, OWN_NAMES)
    described = [{**asdict(argument), "default": _one_line(argument.default)} for argument in arguments]
    manifest = pack(plan, folder, replace(manifest, arguments=tuple(described)))
    return manifest, hosted_code(manifest, arguments)


def _one_line(source: str) -> str:
    return " ".join(source.split())


def _notes(manifest: Manifest) -> tuple[str, ...]:
    notes = [f"{key!r} has to be given as --model-role '{key}={PLACEHOLDER}'" for key in manifest.model_keys]
    if manifest.imports:
        names = ", ".join(manifest.imports)
        notes.append(f"the author's code imports {names}, which requirements.txt does not name")
    return tuple(notes)
