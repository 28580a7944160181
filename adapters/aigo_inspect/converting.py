"""An Inspect task as an AI GO task: every prompt as Inspect renders it, every answer scored by Inspect's own scorer.

Prompts are rendered once, by the task's own solvers on its own samples, and become rows; so they are the same texts. The scorer is a Python
scorer that gives an answer to Inspect's scorer; so it is the same score. Only solvers and scorers of Inspect itself of which this is known to
hold are converted; everything else is refused with the list of what stands in the way.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from inspect_ai import Task
from inspect_ai._eval.task.util import sample_messages
from inspect_ai._util.registry import is_registry_object, registry_info, registry_params
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ModelName, ModelOutput
from inspect_ai.scorer import Target
from inspect_ai.scorer._reducer.registry import reducer_log_names
from inspect_ai.solver import Solver, TaskState
from inspect_ai.solver._chain import Chain

from aigo_bridge.benchmarks import ConvertedBenchmark
from aigo_bridge.engine import Fidelity, Gap
from aigo_bridge.errors import UnsupportedPlanError, UsageError

PROMPTING = frozenset(
    f"inspect_ai/{name}"
    for name in ("system_message", "user_message", "assistant_message", "prompt_template", "chain_of_thought")
)
"""Solvers that only write messages."""

ANSWERING = frozenset({"inspect_ai/generate", "inspect_ai/multiple_choice"})
"""Solvers that call the model once and leave its answer as it is."""

SCORERS = frozenset(
    f"inspect_ai/{name}" for name in ("match", "includes", "exact", "f1", "pattern", "answer", "choice")
)
"""Scorers that look at answer, target and choices only."""

JUDGES = frozenset(f"inspect_ai/{name}" for name in ("model_graded_qa", "model_graded_fact"))
"""Scorers that ask a model; a Python scorer has none to ask."""

MEANS = frozenset({"inspect_ai/accuracy", "inspect_ai/mean"})
"""Metrics that are the mean over samples."""

_SNIPPET = """\
# Scores an answer with Inspect's own scorer; needs the package inspect-ai.
import asyncio
import json

from inspect_ai._util.registry import registry_create
from inspect_ai.model import ChatMessageUser, ModelName, ModelOutput
from inspect_ai.scorer import Target, value_to_float
from inspect_ai.solver import TaskState

SCORER, SCORER_PARAMS = {scorer!r}, json.loads({scorer_params!r})
SOLVER, SOLVER_PARAMS = {solver!r}, json.loads({solver_params!r})


async def _score(sample, answer):
    output = ModelOutput.from_content("model", answer)
    state = TaskState(
        model=ModelName("none/none"),
        sample_id=sample["sample_id"],
        epoch=1,
        input=sample["input"],
        messages=[ChatMessageUser(content=sample["input"])],
        target=Target(sample["targets"]),
        choices=sample["choices"] or None,
        output=output,
    )

    async def generate(state, *args, **kwargs):
        state.output = output
        return state

    if SOLVER is not None:  # it reads the chosen letters from the answer
        state = await registry_create("solver", SOLVER, **SOLVER_PARAMS)(state, generate)
    return await registry_create("scorer", SCORER, **SCORER_PARAMS)(state, Target(sample["targets"]))


def compute_scores(sample, solver_output):
    answer = solver_output.output.choices[0].message.content or ""
    score = asyncio.run(_score(sample, answer))
    metadata = {{"value": score.value, "answer": score.answer}}
    return {{"scores": {{"score": value_to_float()(score.value)}}, "metadata": metadata}}
"""


def convert(task: Task, *, key: str | None = None) -> ConvertedBenchmark:
    """The AI GO task, its rows, and what is different.

    Args:
        task: the task, made.
        key: key of the AI GO task; `None` makes one from the task's name.

    Raises:
        UnsupportedPlanError: the task does something that would not be the same; all of it is listed.
        UsageError: there are no samples.
    """
    solvers = _solvers(task.solver)
    gaps = [*_solver_gaps(solvers), *_task_gaps(task), *_scorer_gaps(task), *_sample_gaps(task)]
    if refused := [gap for gap in gaps if gap.fidelity is Fidelity.UNSUPPORTED]:
        lines = [f"task {task.name!r} cannot be converted: {len(refused)} gap(s)"]
        lines += [f"  - {gap.part}: {gap.reason}" + (f" ({gap.hint})" if gap.hint else "") for gap in refused]
        raise UnsupportedPlanError("\n".join(lines))
    samples = list(task.dataset)
    if not samples:
        raise UsageError(f"task {task.name!r} has no samples")
    rendered = [_rendered(solvers, sample) for sample in samples]
    messages, columns = _messages(rendered)
    rows = tuple(
        {
            "sample_id": sample.id if sample.id is not None else number,
            "input": sample.input if isinstance(sample.input, str) else sample.input[-1].text,
            "targets": [sample.target] if isinstance(sample.target, str) else list(sample.target),
            "choices": list(sample.choices or []),
            **own,
        }
        for number, (sample, own) in enumerate(zip(samples, columns, strict=True), start=1)
    )
    name = key or re.sub(r"[^a-zA-Z0-9_\-]+", "-", task.name.rpartition("/")[2]).strip("-") or "task"
    definition: dict[str, Any] = {
        "type": "benchmark_task",
        "dataset": {"key": f"{name}-samples"},
        "solver": {"type": "single_turn_solver", "input_builder": messages},
        "scorers": [_scorer(each, solvers[-1], task) for each in task.scorer or []],
    }
    if task.epochs is not None and task.epochs > 1:
        definition["trials"] = {"num_trials": task.epochs}
    document = {
        "key": name,
        "display_name": task.name,
        "description": f"The Inspect task {task.name!r}: its prompts as Inspect renders them, its own scoring",
        "definition": definition,
    }
    return ConvertedBenchmark(document, rows, tuple(gaps))


# What stands in the way


def _solvers(solver: Solver) -> list[Solver]:
    if isinstance(solver, Chain):
        return [each for part in solver for each in _solvers(part)]
    return [solver]


def _name(thing: object) -> str:
    return registry_info(thing).name if is_registry_object(thing) else getattr(thing, "__name__", "?")


def _no(part: str, reason: str, hint: str | None = None) -> Gap:
    return Gap(part, reason, Fidelity.UNSUPPORTED, hint)


def _solver_gaps(solvers: Sequence[Solver]) -> list[Gap]:
    gaps = []
    for number, solver in enumerate(solvers):
        name, last = _name(solver), number == len(solvers) - 1
        part = f"solver[{number}] ({name})"
        if name not in (ANSWERING if last else PROMPTING):
            hint = "run it with `aigo-bridge run inspect:…`, which keeps the solver"
            gaps.append(_no(part, "is not known to be one model call with a fixed prompt", hint))
            continue
        if not last:
            continue
        params = registry_params(solver)
        if params.get("shuffle"):
            gaps.append(_no(part, "shuffles the choices anew in each run"))
        settings = sorted(
            key
            for key in params
            if key not in {"template", "cot", "multiple_correct", "shuffle"} and params[key]
        )
        if settings:
            reason = f"its settings are not part of an AI GO task: {', '.join(settings)}"
            gaps.append(Gap(part, reason, Fidelity.APPROXIMATE, "set them on the model"))
    return gaps


def _task_gaps(task: Task) -> list[Gap]:
    gaps = [
        _no(part, "an AI GO task has none")
        for part, there in (
            ("setup", task.setup),
            ("sandbox", task.sandbox),
            ("cleanup", task.cleanup),
            ("early_stopping", task.early_stopping),
        )
        if there
    ]
    if task.model is not None:
        reason = f"an AI GO task names no model; this one runs {str(task.model)!r}"
        gaps.append(Gap("model", reason, Fidelity.APPROXIMATE, "give it with --model"))
    settings = sorted(task.config.model_dump(exclude_none=True))
    if settings:
        reason = f"generation settings are not part of an AI GO task: {', '.join(settings)}"
        gaps.append(Gap("config", reason, Fidelity.APPROXIMATE, "set them on the model"))
    gaps += [
        Gap(limit, "limits are options of a run", Fidelity.APPROXIMATE)
        for limit in ("message_limit", "token_limit", "time_limit", "working_limit", "cost_limit")
        if getattr(task, limit, None) is not None
    ]
    if (task.epochs or 1) > 1:
        reducers = reducer_log_names(task.epochs_reducer or [])
        gaps += [
            _no("epochs", f"the reducer {reducer!r} has another formula than AI GO's trials, or none")
            for reducer in reducers or []
            if reducer != "mean"
        ]
    return gaps


def _scorer_gaps(task: Task) -> list[Gap]:
    scorers = task.scorer or []
    gaps = [] if scorers else [_no("scorer", "the task has none")]
    if task.metrics is not None:
        gaps.append(_no("metrics", "the task's own metrics in place of its scorers' are not known to AI GO"))
    for number, scorer in enumerate(scorers):
        name = _name(scorer)
        part = f"scorer[{number}] ({name})"
        if name in JUDGES:
            reason = "AI GO's judges add an instruction of their own and read a JSON reply; this one's prompt and grades are others"
            hint = "run it with `aigo-bridge run inspect:… --model-map grader=MODEL`, which keeps the judge"
            gaps.append(_no(part, reason, hint))
            continue
        if name not in SCORERS:
            gaps.append(_no(part, "is not known to need answer and target only"))
            continue
        for metric in _metrics(scorer):
            if metric not in MEANS:
                reason = f"metric {metric!r} is left out: AI GO has none like it"
                gaps.append(Gap(part, reason, Fidelity.APPROXIMATE, "sample scores are the same"))
    return gaps


def _sample_gaps(task: Task) -> list[Gap]:
    gaps = []
    for name in ("sandbox", "files", "setup"):
        number = sum(bool(getattr(sample, name)) for sample in task.dataset)
        if number:
            gaps.append(_no(f"samples' {name}", f"{number} samples have it, an AI GO task has none"))
    media = sum(
        not isinstance(message.content, str) or message.role not in ("system", "user", "assistant")
        for sample in task.dataset
        for message in sample_messages(sample)
    )
    if media:
        gaps.append(_no("samples' input", f"{media} messages are no plain text of system, user or assistant"))
    return gaps


def _metrics(scorer: object) -> list[str]:
    found = registry_info(scorer).metadata.get("metrics") or []
    return [_name(metric) for metric in found] if isinstance(found, list) else ["by key"]


# Prompts


class _AskedOnceError(Exception):
    """The model would be called now; carries the messages."""

    def __init__(self, messages: list[ChatMessage]):
        self.messages = messages


def _rendered(solvers: Sequence[Solver], sample: Sample) -> list[tuple[str, str]]:
    """Role and text of each message that the model gets for a sample."""
    import anyio

    async def generate(state: TaskState, *_: Any, **__: Any) -> TaskState:
        raise _AskedOnceError(list(state.messages))

    async def ask() -> list[ChatMessage]:
        state = TaskState(
            model=ModelName("none/none"),
            sample_id=sample.id if sample.id is not None else 0,
            epoch=1,
            input=sample.input,
            messages=sample_messages(sample),
            target=Target(sample.target),
            choices=sample.choices,
            output=ModelOutput(),
            metadata=dict(sample.metadata or {}),
        )
        try:
            for solver in solvers:
                state = await solver(state, generate)
        except _AskedOnceError as asked:
            return asked.messages
        raise UnsupportedPlanError("the task's solver calls no model")

    return [(message.role, message.text) for message in anyio.run(ask)]


def _messages(rendered: Sequence[list[tuple[str, str]]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Input builder and, for each sample, the columns that it reads."""
    roles = [[role for role, _ in messages] for messages in rendered]
    if any(each != roles[0] for each in roles):
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


# Scores


def _scorer(scorer: object, solver: Solver, task: Task) -> dict[str, Any]:
    name = _name(scorer)
    choosing = _name(solver) == "inspect_ai/multiple_choice"
    params = registry_params(solver) if choosing else {}
    kept = {key: params[key] for key in ("cot", "multiple_correct") if params.get(key)}
    key = name.rpartition("/")[2]
    same = [each for each in task.scorer or [] if _name(each) == name]
    if len(same) > 1:
        key = f"{key}-{next(number for number, each in enumerate(same, start=1) if each is scorer)}"
    return {
        "type": "python",
        "key": key,
        "compute_scores_snippet": _SNIPPET.format(
            scorer=name,
            scorer_params=json.dumps(registry_params(scorer)),
            solver=_name(solver) if choosing else None,
            solver_params=json.dumps(kept),
        ),
        "metrics": [
            {"type": "mean", "key": short, "field": "score", "name": short}
            for short in (metric.rpartition("/")[2] for metric in _metrics(scorer) if metric in MEANS)
        ],
    }
