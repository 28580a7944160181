"""Analysis of the solvers of an Inspect task: their prompts, and the reasons against a conversion.

A task can be converted if its solvers call the model once. Inspect's own solvers are listed here. Solvers of
installed packages are run on the task's samples with several made-up answers. Any behavior other than one
model call with a constant prompt prevents the conversion.

The converted task runs such solvers again with each answer, so that their results are available to the
scorer.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from inspect_ai import Task
from inspect_ai._eval.task.util import sample_messages
from inspect_ai._util.registry import registry_params
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, GenerateConfig, ModelAPI, ModelName, ModelOutput
from inspect_ai.model._model import Model, active_model_context_var
from inspect_ai.scorer import Target
from inspect_ai.solver import Solver, TaskState
from inspect_ai.solver._chain import Chain
from inspect_ai.util._store import init_subtask_store

from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.text.plurals import plural
from aigo_inspect.benchmarks.references import NotFoundAgainError, name_of, reaching, reference

PROMPTING = frozenset(
    f"inspect_ai/{name}"
    for name in ("system_message", "user_message", "assistant_message", "prompt_template", "chain_of_thought")
)
"""Solvers that only write messages."""

ANSWERING = frozenset({"inspect_ai/generate", "inspect_ai/multiple_choice"})
"""Solvers that call the model once and do not change its answer."""

HARMLESS = frozenset({"get_model", "scores", "store", "store_as"})
"""Names of `references.CALLS` that a solver may use. Stored values are stored again, and a model call is
detected."""

PROBES = ("", "A", "ANSWER: A", "I cannot answer that.", "1\n2\n")
"""Made-up answers for the first samples, in addition to the correct answer."""

NUM_PROBED = 20
"""Number of samples that are run with all made-up answers. Other samples are run with the correct and the
empty answer."""

Turns = list[tuple[str, str]]
"""Role and text of each message."""

_RUN_IT = "run it with `aigo-bridge run inspect:…`, which keeps the solver"


def solvers_of(task: Task) -> list[Solver]:
    """Return the solvers of a task in order, with chains flattened."""
    setup = task.setup if isinstance(task.setup, Sequence) else [task.setup] if task.setup else []
    return [single for part in (*setup, task.solver) for single in _single(part)]


def _single(solver: Solver) -> list[Solver]:
    if isinstance(solver, Chain):
        return [single for part in solver for single in _single(part)]
    return [solver]


def are_known(solvers: Sequence[Solver]) -> bool:
    """Return whether all solvers are Inspect's own, and only the last one calls the model."""
    names = [name_of(solver) for solver in solvers]
    return bool(names) and names[-1] in ANSWERING and all(name in PROMPTING for name in names[:-1])


@dataclass
class SolverActivity:
    """Observed behavior of the solvers of a task."""

    prompts: list[Turns] = field(default_factory=list)
    """Prompt of each sample."""
    faults: dict[str, int] = field(default_factory=dict)
    """Reason against a conversion → number of samples."""
    settings: set[str] = field(default_factory=set)
    """Generation settings that the solvers pass."""


def solver_gaps(solvers: Sequence[Solver]) -> list[Gap]:
    """Return the reasons against a conversion that are visible without running the solvers."""
    gaps = []
    for number, solver in enumerate(solvers):
        name = name_of(solver)
        part = f"solver[{number}] ({name})"
        params = registry_params(solver) if name in ANSWERING else {}
        if name in PROMPTING | ANSWERING:
            if params.get("shuffle"):
                gaps.append(_no(part, "shuffles the choices differently in each run"))
            if settings := sorted(key for key in params if key not in _ASKING and params[key]):
                gaps.append(_settings_gap(part, settings))
            continue
        if name.startswith("inspect_ai/"):
            gaps.append(_no(part, "is not known to be one model call with a fixed prompt", _RUN_IT))
            continue
        if names := [each for each in reaching(solver) if each not in HARMLESS]:
            gaps.append(
                _no(part, f"does more than call the model: its code uses {', '.join(names)}", _RUN_IT)
            )
            continue
        try:
            reference(solver)
        except NotFoundAgainError as error:
            gaps.append(_no(part, f"cannot be copied: {error}", _RUN_IT))
            continue
        if "get_model" in reaching(solver):
            reason = "reads the evaluated model; during conversion it gets a model without a name"
            gaps.append(Gap(part, reason, Fidelity.APPROXIMATE, "the prompts are compared during scoring"))
    return gaps


_ASKING = frozenset({"template", "cot", "multiple_correct", "shuffle"})
"""Solver parameters that are part of the prompt."""


def watched_gaps(watched: SolverActivity, num_samples: int) -> list[Gap]:
    """Return the reasons against a conversion that were observed."""
    gaps = [
        _no("solver", f"{reason} ({number} of {plural(num_samples, 'sample')})", _RUN_IT)
        for reason, number in watched.faults.items()
    ]
    if watched.settings:
        gaps.append(_settings_gap("solver", sorted(watched.settings)))
    return gaps


def _settings_gap(part: str, settings: Sequence[str]) -> Gap:
    reason = f"its settings are not part of an AI GO task: {', '.join(settings)}"
    return Gap(part, reason, Fidelity.APPROXIMATE, "set them on the model")


def _no(part: str, reason: str, hint: str | None = None) -> Gap:
    return Gap(part, reason, Fidelity.UNSUPPORTED, hint)


# Runs with made-up answers


def watch(solvers: Sequence[Solver], samples: Sequence[Sample]) -> SolverActivity:
    """Run the solvers on all samples. Return the prompts and the reasons against a conversion."""
    import anyio

    watched = SolverActivity()
    known = are_known(solvers)
    state = random.getstate()
    try:
        with no_model() as model:
            anyio.run(_watch, watched, solvers, samples, known, model)
    finally:
        random.setstate(state)
    return watched


async def _watch(
    watched: SolverActivity,
    solvers: Sequence[Solver],
    samples: Sequence[Sample],
    known: bool,
    model: _NoModel,
) -> None:
    for number, sample in enumerate(samples):
        right = sample.target if isinstance(sample.target, str) else "\n".join(sample.target)
        answers = [right] if known else [right, *(PROBES if number < NUM_PROBED else PROBES[:1])]
        prompts: list[Turns] = []
        faults: set[str] = set()
        for answer in answers:
            if not known:
                random.seed(len(prompts))
            call = await _run(solvers, sample, answer, stop=known)
            if call.error is not None and (call.num == 0 or not prompts):
                faults.add(
                    f"fails with {type(call.error).__name__}"
                )  # a made-up answer may also fail in Inspect
            if model.num_calls:
                model.num_calls = 0
                faults.add("calls a model itself")
                call.faults.discard("does not call the model")
            faults |= call.faults
            prompts.append(call.prompt)
            watched.settings |= call.settings
        if any(prompt != prompts[0] for prompt in prompts):
            faults.add("writes a different prompt each time")
        for fault in faults:
            watched.faults[fault] = watched.faults.get(fault, 0) + 1
        watched.prompts.append(prompts[0])


@dataclass
class _Call:
    """Observed behavior for one sample and answer."""

    prompt: Turns = field(default_factory=list)
    num: int = 0
    error: Exception | None = None
    faults: set[str] = field(default_factory=set)
    settings: set[str] = field(default_factory=set)


class _AskedError(Exception):
    """Signal to stop at the model call, because later steps do not matter."""


async def _run(solvers: Sequence[Solver], sample: Sample, answer: str, *, stop: bool) -> _Call:
    call = _Call()
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

    async def generate(state: TaskState, *_: Any, **settings: Any) -> TaskState:
        call.num += 1
        if call.num == 1:
            call.prompt = turns_of(state.messages)
            call.settings = {
                name for name in settings if settings[name] and name not in ("tool_calls", "cache")
            }
            if stop:
                raise _AskedError
            if state.tools:
                call.faults.add("gives the model tools")
            if any(not _is_text(message) for message in state.messages):
                call.faults.add("calls the model with more than text from system, user and assistant")
        state.output = ModelOutput.from_content("model", answer)
        state.messages.append(state.output.message)
        return state

    try:
        init_subtask_store(state.store)
        for solver in solvers:
            state = await solver(state, generate)
            if state.completed:
                break
    except _AskedError:
        return call
    except Exception as error:  # noqa: BLE001  # third-party code may raise anything; every exception is a reason
        call.error = error
    if call.num > 1 or (call.num == 0 and call.error is None):
        call.faults.add("calls the model more than once" if call.num else "does not call the model")
    return call


def turns_of(messages: Sequence[ChatMessage]) -> Turns:
    """Return the role and text of messages."""
    return [(message.role, message.text) for message in messages]


def _is_text(message: ChatMessage) -> bool:
    return isinstance(message.content, str) and message.role in ("system", "user", "assistant")


class _NoModel(ModelAPI):
    """Model that counts its calls and always fails."""

    num_calls = 0

    def __init__(self) -> None:
        super().__init__("none", None, None, [], GenerateConfig())

    async def generate(self, *_: Any, **__: Any) -> ModelOutput:
        self.num_calls += 1
        raise RuntimeError("this model cannot be called")


@contextmanager
def no_model() -> Iterator[_NoModel]:
    """Replace the active model of this block with a model that cannot be called."""
    api = _NoModel()
    token = active_model_context_var.set(Model(api, GenerateConfig()))
    try:
        yield api
    finally:
        active_model_context_var.reset(token)
