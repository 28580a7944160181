"""From command line options to the plain arguments of a plan."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Literal, cast, get_args

from aigo_bridge.errors import UsageError
from aigo_bridge.evaluate import parse_config
from aigo_bridge.evaluation.naming import parse_reference
from aigo_bridge.evaluation.run_files import holds_evaluation
from aigo_bridge.full_data import full_origin
from aigo_bridge.plan import CachePolicy, PlanOrigin


def origin_of(
    task: str,
    *,
    config: list[str] | None,
    dataset: list[str] | None,
    root: Path | None,
    num_samples: int | None = None,
    subsampling: str | None = None,
    num_trials: int | None = None,
    allow_bad_tasks: bool = False,
    full: bool = False,
) -> PlanOrigin:
    """The origin of a plan; with `full`, on the real rows in place of sample data.

    Raises:
        UsageError: an option makes no sense.
        SpecError: the task cannot be read, which is needed to type the config.
    """
    if subsampling not in (None, "head", "random"):
        raise UsageError(f"--subsampling: found {subsampling!r}, expected head or random")
    if allow_bad_tasks and (parse_reference(task) is not None or holds_evaluation(task)):
        raise UsageError(f"--allow-bad-tasks is for files of task records, found {task!r}")
    reach = None if root is None else str(root.resolve())
    files = {key: str(Path(file).resolve()) for key, file in pairs("--dataset", dataset).items()}
    origin = PlanOrigin(
        task=_stable_name(task),
        config=parse_config(task, pairs("--config", config), root=reach),
        datasets=files,
        num_samples=num_samples,
        subsampling=cast("Literal['head', 'random'] | None", subsampling),
        num_trials=num_trials,
        root=reach,
        allow_bad_tasks=allow_bad_tasks,
    )
    return full_origin(origin) if full else origin


def pairs(option: str, given: list[str] | None) -> dict[str, str]:
    """Repeated `KEY=VALUE` options as a mapping.

    Raises:
        UsageError: one has no `=`, or a key is given twice.
    """
    found: dict[str, str] = {}
    for text in given or []:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise UsageError(f"{option}: found {text!r}, expected KEY=VALUE")
        if key in found:
            raise UsageError(f"{option}: {key!r} is given twice")
        found[key] = value
    return found


def cache_policy(text: str | None) -> CachePolicy | None:
    """A cache policy that was typed; `None` when none was.

    Raises:
        UsageError: there is no such policy.
    """
    known = get_args(CachePolicy)
    if text is not None and text not in known:
        raise UsageError(f"--cache: found {text!r}, expected {', '.join(known[:-1])} or {known[-1]}")
    return cast("CachePolicy | None", text)


def _stable_name(task: str) -> str:
    """The task so that another process finds it: a shipped task's name, else the absolute path (of a run file's part, that of the file)."""
    reference = parse_reference(task)
    if reference is not None:
        return str(replace(reference, file=reference.file.resolve()))
    path = Path(task)
    return str(path.resolve()) if path.exists() else task
