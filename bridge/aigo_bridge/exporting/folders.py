"""Folder of an export. It appears when it is complete, and files that an export did not write are kept, even
with `--force`.

An exported task consists of `<module>.py` and a folder `<module>/`. A README.md and a requirements.txt
next to them cover all exported tasks in the folder.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import ExportedFiles, ExportOptions
from aigo_bridge.errors import UsageError
from aigo_bridge.exporting.manifest import FILE, ExportManifest, read_manifest
from aigo_bridge.exporting.python_code import module_name
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.process.temporary import draft_folder_of
from aigo_bridge.redaction.secrets import redact
from aigo_bridge.spec.base import SAMPLE_NOTE, is_sample_data
from aigo_bridge.text.escapes import visible
from aigo_bridge.text.plurals import plural
from aigo_bridge.version import __version__

MARK = "aigo-bridge export"
"""Mark near the top of every file that an export writes outside the folders of tasks."""

PLACEHOLDER = "PROVIDER/MODEL"
"""Placeholder in commands for a model that the user must choose."""

_LONGEST_CELL = 200


def write_task(
    plan: TaskPlan, out: Path, options: ExportOptions, make: Callable[[str, Path], tuple[ExportManifest, str]]
) -> ExportedFiles:
    """Write a task to a folder, in addition to the tasks that were exported there before.

    Args:
        plan: plan of the task.
        out: the folder.
        options: export options.
        make: creates and fills the task's own folder, given the name of its module; returns the manifest
            and the code of the task file.

    Raises:
        UsageError: the folder contains other files.
    """
    with new_content(out, force=options.force) as draft:
        neighbours = [neighbour for neighbour in manifests(out) if neighbour.key != plan.task.key]
        module = module_name(plan.task.key, [neighbour.module for neighbour in neighbours])
        manifest, code = make(module, draft / module)
        manifest.write(draft / module)
        main = f"{module}.py"
        tasks = sorted([*neighbours, manifest], key=lambda task: task.module)
        for name, text in (
            (main, code),
            ("README.md", readme(tasks)),
            ("requirements.txt", requirements(tasks)),
        ):
            write_text(draft / name, text)
        files = [path.relative_to(draft).as_posix() for path in sorted(draft.rglob("*")) if path.is_file()]
    return ExportedFiles(out, (main, *(name for name in files if name != main)), manifest.commands)


def write_text(path: Path, text: str) -> None:
    """Write a text file with line feeds on every system."""
    path.write_text(text, encoding="utf-8", newline="\n")


@contextmanager
def new_content(out: Path, *, force: bool) -> Iterator[Path]:
    """Yield a folder to fill. Its content is moved to `out` if the block ends without an exception, and
    deleted otherwise.

    A new folder appears in one step. In an existing folder, the task file is removed first and written
    last, so that the result of an interruption cannot run with incomplete data.

    Raises:
        UsageError: `out` cannot be created, is a file, is not empty (without `force`), or contains files
            of these names that an export did not write.
    """
    target = Path(os.path.realpath(out))
    check_free(target, force=force)
    with draft_near(target) as draft:
        yield draft
        refuse_secrets(draft)
        if target.exists():
            _refuse_foreign(draft, target)
            _move_in(draft, target)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            draft.rename(target)


@contextmanager
def draft_near(target: Path) -> Iterator[Path]:
    """Yield a folder on the same file system as `target`. It is deleted at the end unless it was moved.
    Parent folders of the target are not created.

    Raises:
        UsageError: the folder cannot be created.
    """
    parent = next(folder for folder in target.parents if folder.exists())
    with ExitStack() as stack:
        try:
            draft = stack.enter_context(draft_folder_of(target, parent))
        except OSError as error:
            raise UsageError(
                f"--out: {str(target)!r} cannot be made: {error.strerror}", code=Code.UNUSABLE_OUTPUT
            ) from error
        yield draft


def check_free(out: Path, *, force: bool) -> None:
    """Check that the target can be exported to.

    Raises:
        UsageError: it is a file, or a non-empty folder (without `force`).
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"--out: {str(out)!r} is a file, expected a folder", code=Code.UNUSABLE_OUTPUT)
    if out.is_dir() and not force and any(out.iterdir()):
        raise UsageError(
            f"--out: folder {str(out)!r} is not empty; choose another, or replace what an earlier export"
            " wrote there with --force",
            code=Code.ALREADY_THERE,
        )


def manifests(out: Path) -> list[ExportManifest]:
    """Return the exported tasks in a folder, by module name."""
    folders = sorted(path.parent for path in out.glob(f"*/{FILE}")) if out.is_dir() else []
    return [read_manifest(folder) for folder in folders]


def refuse_secrets(draft: Path) -> None:
    """Raise an error for files with secrets. Exports are shared, and removing a secret would change the task.

    Raises:
        UsageError: a file contains a value that this process knows to be secret.
    """
    secret_files = [path for path in sorted(draft.rglob("*")) if path.is_file() and not _is_clean(path)]
    if secret_files:
        names = ", ".join(repr(path.relative_to(draft).as_posix()) for path in secret_files)
        raise UsageError(
            f"--out: {names} would contain a known secret, so nothing is exported; remove it "
            "from the task, its data or its configuration "
            "(docs/reference/models.md#secrets)",
            code=Code.NOT_EXPORTABLE,
        )


def _is_clean(path: Path) -> bool:
    name = path.name
    if redact(name) != name:
        return False
    text = path.read_bytes().decode("utf-8", "surrogateescape")
    return redact(text) is text


def _refuse_foreign(draft: Path, target: Path) -> None:
    foreign = [entry.name for entry in sorted(draft.iterdir()) if not _is_ours(target / entry.name)]
    if foreign:
        names = ", ".join(map(repr, foreign))
        raise UsageError(
            f"--out: {names} in folder {str(target)!r} are not from an export, so they are not replaced;"
            " choose another folder",
            code=Code.ALREADY_THERE,
        )


def _is_ours(path: Path) -> bool:
    """Return whether the path is free or was written by an export."""
    if not path.exists():
        return True
    if path.is_dir():
        return (path / FILE).is_file()
    with path.open("rb") as file:
        return MARK.encode() in file.read(2000)


def _move_in(draft: Path, target: Path) -> None:
    entries = sorted(draft.iterdir())
    tasks = [entry for entry in entries if entry.suffix == ".py"]
    for entry in tasks:
        (target / entry.name).unlink(missing_ok=True)
    for entry in (*(entry for entry in entries if entry not in tasks), *tasks):
        place = target / entry.name
        if place.is_dir():
            place.rename(draft / f".{entry.name}.old")
        entry.replace(place)


# README.md and requirements.txt


def readme(tasks: Sequence[ExportManifest]) -> str:
    """Return the README of a folder with the commands and requirements of each task."""
    lines = [f"<!-- written by {MARK}, release {__version__} -->", ""]
    if len(tasks) > 1:
        lines += ["# Evaluation tasks", ""]
    for task in tasks:
        lines += _task(task, "#" if len(tasks) == 1 else "##")
    return "\n".join(lines).rstrip() + "\n"


def requirements(tasks: Sequence[ExportManifest]) -> str:
    """Return the requirements.txt for all tasks in a folder."""
    names = sorted({name for task in tasks for name in task.requirements})
    return "\n".join([f"# written by {MARK}", *names]) + "\n"


def shell(*words: str) -> str:
    """Return a command line with shell quoting."""
    return " ".join(shlex.quote(word) for word in words)


def _task(task: ExportManifest, level: str) -> list[str]:
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
        lines += [f"The task code also imports {names}: install these packages.", ""]
    lines += _models(task)
    if task.arguments:
        column = (
            f"parameter (in `{task.module}.py`)"
            if task.engine == "lighteval"
            else "argument (`-T name=value`)"
        )
        lines += [f"| {column} | type | meaning | default |", "|---|---|---|---|"]
        lines += [_argument(argument, task.engine) for argument in task.arguments]
        lines += [""]
    trials = f", {plural(task.num_trials, 'trial')} each" if task.num_trials > 1 else ""
    rows = f" {plural(task.num_samples, 'sample')}{trials}." if task.dataset is not None else ""
    return [*lines, f"Task `{task.key}`, plan `{task.digest[:12]}`.{rows} {_form(task)}", ""]


def _form(task: ExportManifest) -> str:
    if task.form == "native":
        return (
            f"`{task.module}.py` is plain code that needs no aigo-bridge; prompts and expected answers"
            " were rendered"
            " at the time of the export."
        )
    return (
        f"`{task.module}/` contains the original task and its rows. `{task.module}.py` "
        "refuses to run if they have changed."
    )


def _models(task: ExportManifest) -> list[str]:
    """Return notes about models for engines whose commands depend on the model."""
    if task.engine != "lighteval":
        return []
    commands = [command for command in task.commands if "lighteval accelerate" in command]
    lines: list[str] = []
    if commands:
        place = f", in `{task.module}/model.yaml`" if f"{task.module}/model.yaml" in commands[0] else ""
        backends = (
            "`lighteval accelerate` is for models of transformers; lighteval's other backends take the"
            " same task and files."
            f" `MODEL` stands for the model{place}. A model without a chat template is asked the bare text."
        )
        lines += [backends, ""]
        if task.form == "native":
            silent = (
                "Plain code only receives answers. lighteval truncates prompts that are too "
                "long for the model, and accepts any system prompt. With some backends "
                "(litellm), a failed call is an empty answer. The hosted form detects all of "
                "these cases."
            )
            lines += [silent, ""]
    if any("lighteval custom" in command for command in task.commands):
        purpose = "carries out the whole task with a model as `aigo-bridge run --engine lighteval` takes it"
        lines += [f"`lighteval custom` with `{task.module}/model.py` {purpose}.", ""]
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
    shown = _text(text).replace("|", "\\|").replace("`", "'")
    return shown if len(shown) <= _LONGEST_CELL else shown[: _LONGEST_CELL - 1] + "…"
