"""Conversion of an Inspect task to an AI GO task with the same prompts and the same scores.

The task's own solvers render the prompts once, on its own samples, and the prompts become dataset rows. A
Python scorer passes each answer to Inspect's scorer.

Only solvers and scorers with this guarantee are converted: Inspect's own, and solvers and scorers of
installed packages. Otherwise the conversion fails with a list of all reasons.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task
from inspect_ai._eval.task.util import sample_messages
from inspect_ai.dataset import Sample

from aigo_bridge.codes import Code
from aigo_bridge.engine.benchmarks import ConvertedBenchmark
from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.errors import UnsupportedPlanError, UsageError
from aigo_bridge.exporting.carried_code import problem_of
from aigo_bridge.text.plurals import plural
from aigo_inspect.benchmarks.scorers import (
    has_rows_for_epochs,
    needs_metadata,
    needs_state,
    scorer_gaps,
    scorer_of,
)
from aigo_inspect.benchmarks.solvers import Turns, solver_gaps, solvers_of, watch, watched_gaps


def convert(task: Task, *, key: str | None = None) -> ConvertedBenchmark:
    """Convert an Inspect task. Return the AI GO task, its rows, and the differences.

    Args:
        task: the Inspect task.
        key: key of the AI GO task [default: derived from the task name].

    Raises:
        UnsupportedPlanError: the AI GO task would behave differently. The error lists all reasons.
        UsageError: the task has no samples.
    """
    solvers = solvers_of(task)
    samples = list(task.dataset)
    gaps = [*solver_gaps(solvers), *_task_gaps(task), *scorer_gaps(task), *_sample_gaps(task)]
    _refuse(task, gaps)
    if not samples:
        raise UsageError(f"task {task.name!r} has no samples", code=Code.UNFIT_BENCHMARK)
    watched = watch(solvers, samples)
    gaps += watched_gaps(watched, len(samples))
    _refuse(task, gaps)
    rendered = watched.prompts
    messages, columns = _messages(rendered)
    if needs_metadata(task):
        columns = [
            {**cells, "metadata": _json(sample.metadata)}
            for cells, sample in zip(columns, samples, strict=True)
        ]
    if needs_state(task):
        columns = [
            {**cells, "state": _json({"input": _input(sample), "messages": turns})}
            for cells, turns, sample in zip(columns, rendered, samples, strict=True)
        ]
    rows = tuple(
        {
            "sample_id": sample.id if sample.id is not None else number,
            "input": sample.input if isinstance(sample.input, str) else sample.input[-1].text,
            "targets": [sample.target] if isinstance(sample.target, str) else list(sample.target),
            "choices": list(sample.choices or []),
            **cells,
        }
        for number, (sample, cells) in enumerate(zip(samples, columns, strict=True), start=1)
    )
    if has_rows_for_epochs(task):
        rows = tuple(
            {**row, "sample_id": f"{row['sample_id']}-{epoch}", "native_id": row["sample_id"], "epoch": epoch}
            for row in rows
            for epoch in range(1, (task.epochs or 1) + 1)
        )
    scorers = [scorer_of(scorer, task) for scorer in task.scorer or []]
    right = "\n".join(rows[0]["targets"])
    problems = [(number, problem_of(scorer, rows[0], right)) for number, scorer in enumerate(scorers)]
    _refuse(task, [_no(f"scorer[{number}]", problem) for number, problem in problems if problem is not None])
    name = key or re.sub(r"[^a-zA-Z0-9_\-]+", "-", task.name.rpartition("/")[2]).strip("-") or "task"
    definition: dict[str, Any] = {
        "type": "benchmark_task",
        "dataset": {"key": f"{name}-samples"},
        "solver": {"type": "single_turn_solver", "input_builder": messages},
        "scorers": scorers,
    }
    if task.epochs is not None and task.epochs > 1 and not has_rows_for_epochs(task):
        definition["trials"] = {"num_trials": task.epochs}
    document = {
        "key": name,
        "display_name": task.name,
        "description": (
            f"The Inspect task {task.name!r}, with prompts as Inspect renders them and its own scoring"
        ),
        "definition": definition,
    }
    return ConvertedBenchmark(document, rows, tuple(gaps))


# Reasons against a conversion


def _refuse(task: Task, gaps: Sequence[Gap]) -> None:
    refused = [gap for gap in gaps if gap.fidelity is Fidelity.UNSUPPORTED]
    if not refused:
        return
    lines = [f"task {task.name!r} cannot be converted: {plural(len(refused), 'gap')}"]
    lines += [f"  - {gap.part}: {gap.reason}" + (f" ({gap.hint})" if gap.hint else "") for gap in refused]
    raise UnsupportedPlanError("\n".join(lines), code=Code.NOT_EXPORTABLE)


def _no(part: str, reason: str, hint: str | None = None) -> Gap:
    return Gap(part, reason, Fidelity.UNSUPPORTED, hint)


def _task_gaps(task: Task) -> list[Gap]:
    gaps = [
        _no(part, "an AI GO task cannot have one")
        for part, value in (
            ("sandbox", task.sandbox),
            ("cleanup", task.cleanup),
            ("early_stopping", task.early_stopping),
        )
        if value
    ]
    if task.model is not None:
        reason = f"an AI GO task does not name a model; this one runs {str(task.model)!r}"
        gaps.append(Gap("model", reason, Fidelity.APPROXIMATE, "set it with --model"))
    settings = sorted(task.config.model_dump(exclude_none=True))
    if settings:
        reason = f"generation settings are not part of an AI GO task: {', '.join(settings)}"
        gaps.append(Gap("config", reason, Fidelity.APPROXIMATE, "set them on the model"))
    if has_rows_for_epochs(task):
        reason = (
            f"each of its {task.epochs} epochs becomes a separate row, because AI GO only averages trials"
        )
        hint = "do not use a cache of answers, which would return the same answer for all epochs"
        gaps.append(Gap("epochs", reason, Fidelity.APPROXIMATE, hint))
    gaps += [
        Gap(limit, "limits are options of `run`", Fidelity.APPROXIMATE)
        for limit in ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")
        if getattr(task, limit, None) is not None
    ]
    return gaps


def _sample_gaps(task: Task) -> list[Gap]:
    gaps = []
    for name in ("sandbox", "files", "setup"):
        number = sum(bool(getattr(sample, name)) for sample in task.dataset)
        if number:
            gaps.append(
                _no(
                    f"samples' {name}",
                    f"{plural(number, 'sample has', 'samples have')} this field, which an AI GO"
                    " task cannot have",
                )
            )
    odd = sum(not _is_json(sample.metadata) for sample in task.dataset) if needs_metadata(task) else 0
    if odd:
        gaps.append(
            _no(
                "samples' metadata",
                f"{plural(odd, 'sample has', 'samples have')} metadata that is not JSON, and a"
                " solver or scorer may read it",
            )
        )
    media = sum(
        not isinstance(message.content, str) or message.role not in ("system", "user", "assistant")
        for sample in task.dataset
        for message in sample_messages(sample)
    )
    if media:
        gaps.append(
            _no(
                "samples' input",
                f"{plural(media, 'message is', 'messages are')} not plain text from system, user or"
                " assistant",
            )
        )
    return gaps


def _is_json(value: Any) -> bool:
    try:
        return bool(json.loads(json.dumps(value, allow_nan=False)) == value)
    except (TypeError, ValueError, RecursionError):
        return False


def _json(value: Any) -> str:
    return "" if not value else json.dumps(value, ensure_ascii=False)


def _input(sample: Sample) -> Any:
    if isinstance(sample.input, str):
        return sample.input
    return [[message.role, message.text] for message in sample.input]


# Prompts


def _messages(rendered: Sequence[Turns]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return the input builder, and the columns that it reads for each sample."""
    roles = [[role for role, _ in messages] for messages in rendered]
    if any(row_roles != roles[0] for row_roles in roles):
        columns = [
            {"messages": [{"role": role, "content": text} for role, text in messages]}
            for messages in rendered
        ]
        template = '{"messages": {{ sample.messages | tojson }}}'
        return {"type": "generic", "template": template}, list(columns)
    names = [f"message_{number}_{role}" for number, role in enumerate(roles[0], start=1)]
    builder = {
        "type": "chat_completion",
        "input_messages": [
            {"role": role, "content": f"{{{{ sample.{name} }}}}"}
            for role, name in zip(roles[0], names, strict=True)
        ],
    }
    return builder, [
        {name: text for name, (_, text) in zip(names, messages, strict=True)} for messages in rendered
    ]
