"""Export of a task as plain Inspect code: its parts with an exact native form, its rendered samples, and the
task file.

Exact means the same model calls, and the same scores and metrics for the same answers. Prompts and expected
answers are rendered during the export, so templates that only use the sample can be exported.
"""

from __future__ import annotations

import builtins
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aigo_bridge.engine.protocol import Fidelity, Gap
from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.exporting.folders import MARK
from aigo_bridge.exporting.manifest import ExportManifest
from aigo_bridge.exporting.native import (
    AUTHORS_CODE,
    UNKNOWN,
    Expect,
    Form,
    about_task,
    actions_part,
    complete,
    expected,
    has_own_value,
    is_excluded,
    near_form,
    no_form,
    part,
    reads_sample_only,
    samples_part,
    scorer_parts,
    trials_part,
    unsupported,
)
from aigo_bridge.exporting.native import (
    SCORERS as COMMON_SCORERS,
)
from aigo_bridge.exporting.packing import write_rows
from aigo_bridge.exporting.python_code import module_docstring, names_in, one_line, rendered, with_runtime
from aigo_bridge.plan.plan import Sample, TaskPlan
from aigo_bridge.scoring.registry import scorer_keys
from aigo_bridge.solving.conversation import compile_input, last_text
from aigo_bridge.solving.solvers import recorded_trace
from aigo_bridge.templates import SampleTemplate
from aigo_inspect.models.requests import generate_config

SAMPLES = "samples.jsonl"

Message = dict[str, str]
Record = dict[str, Any]

_JUDGE = near_form(
    "Inspect's model-graded scorers are the closest, but use other prompts, parse replies"
    " differently and do not"
    " retry"
)
_IN_PROCESS = near_form(
    "the task code would run in Inspect's own process, without limits of time and memory and with"
    " access to its"
    " environment"
)

SOLVERS: Mapping[str, Form] = {
    "single_turn_solver": Form("ask()"),
    "pass_through_solver": Form("recorded()"),
    "multi_turn_solver": Form("conversation()"),
    "python": AUTHORS_CODE,
    "grouped_single_turn_solver": no_form("Inspect does not support groups of answers"),
}
"""Solver type → native form. The form of a conversation depends on its turns (see `_solver_form`)."""

SCORERS: Mapping[str, Form] = {
    **COMMON_SCORERS,
    "model_as_a_judge_classifier": _JUDGE,
    "model_as_a_judge_scorer": _JUDGE,
    "labeler_via_model": no_form("no Inspect scorer returns a judge's label"),
    "function_call_coverage": no_form(
        "it compares the calls of a trace, which plain Inspect code does not have"
    ),
}
"""Scorer type → native form."""


@dataclass
class Samples:
    """All samples of a task."""

    records: list[Record] = field(default_factory=list)
    """Fields of Inspect's `Sample`. The dataset row is in `metadata.sample`."""
    problems: list[str] = field(default_factory=list)
    """Errors of samples that cannot be rendered. They would also fail in a run."""


def native_form(plan: TaskPlan) -> tuple[Sequence[Gap], Samples]:
    """Return all parts of a task with their fidelity, and its samples if all other parts are exact. The
    samples are also a part.
    """
    parts = list(_parts(plan))
    if any(part.fidelity is not Fidelity.EXACT for part in parts):
        return parts, Samples()
    samples = native_samples(plan)
    return [*parts, samples_part(samples.problems)], samples


def write_native(
    plan: TaskPlan, samples: Samples, folder: Path, manifest: ExportManifest
) -> tuple[ExportManifest, str]:
    """Write the samples to a new folder, and return the completed manifest and the code of the task file."""
    folder.mkdir(parents=True)
    write_rows(samples.records, folder / SAMPLES)
    manifest = complete(manifest, plan, folder)
    code = _code(plan, manifest, manifest.module)
    # The name of the task function must not conflict with other names in the file.
    if manifest.module in names_in(_code(plan, manifest, "_")) or hasattr(builtins, manifest.module):
        code = _code(plan, manifest, f"{manifest.module}_task")
    return manifest, code


def _code(plan: TaskPlan, manifest: ExportManifest, function: str) -> str:
    benchmark = plan.benchmark
    forms = [SCORERS[scorer.type] for scorer in benchmark.scorers]
    about = about_task(plan, forms)
    for scorer in about["scorers"]:
        scorer["asks_model"] = plan.calls_model
    solver = "[]" if benchmark.solver is None else _solver_form(plan).code
    text = (
        f"Written by {MARK} from the AI GO task {one_line(manifest.key)} (plan {manifest.digest[:12]})."
        " Prompts and"
        f" expected answers are rendered, in {manifest.module}/{SAMPLES}."
    )
    source = rendered(
        Path(__file__).with_name("native.py.jinja"),
        head=module_docstring(f"{one_line(manifest.display_name)}.", manifest.commands, text),
        module=manifest.module,
        function=function,
        description=one_line(manifest.description.strip() or manifest.display_name),
        about={
            "key": plan.task.key,
            "display_name": plan.task.display_name,
            "dataset": plan.task.key if plan.dataset is None else plan.dataset.key,
            **about,
        },
        solver=solver,
        scorers=[form.code for form in forms],
    )
    return with_runtime(source, "aigo_inspect.exporting.runtime")


# Parts


def _parts(plan: TaskPlan) -> Iterator[Gap]:
    """Yield all parts of a task with their fidelity in plain Inspect code."""
    if plan.entity == "system":
        yield unsupported("definition (system_task)", AUTHORS_CODE.reason)
        return
    solver = plan.benchmark.solver
    if solver is not None:
        yield part(f"solver ({solver.type})", _solver_form(plan).reason)
        if solver.postprocessor is not None:
            yield unsupported("solver.postprocessor", AUTHORS_CODE.reason)
    for number, scorer in enumerate(plan.benchmark.scorers):
        yield from _scorer_parts(plan, scorer, f"scorers[{number}]")
    yield from filter(None, (trials_part(plan), actions_part(plan)))


def _solver_form(plan: TaskPlan) -> Form:
    solver: Any = plan.benchmark.solver
    if solver.type != "multi_turn_solver":
        return SOLVERS.get(solver.type, UNKNOWN)
    if any(builder.type == "load_trace" for builder in solver.message_builders):
        return no_form("a recorded trace before the conversation can contain more than messages")
    late = next(_late_messages(solver.message_builders), None)
    if is_scripted(solver.message_builders):
        form = Form("written_conversation()")
    else:
        valued = {has_own_value(scorer) for scorer in plan.benchmark.scorers}
        if len(valued) == 2:
            return no_form(
                "a conversation that ends without an answer fails only some scorers, but in Inspect the"
                " whole sample"
            )
        form = Form(f"conversation(needs_answer={False in valued})")
    return form if late is None else no_form(f"the message {late!r} is not a template over the sample alone")


def _late_messages(builders: Any) -> Iterator[str]:
    for builder in builders:
        if builder.type == "loop":
            yield from _late_messages(builder.message_builders)
        elif builder.type == "generate_message":
            yield from _late_messages(builder.extra_input_messages)
        elif builder.type == "chat_message" and not reads_sample_only(builder.content):
            yield builder.content


def _scorer_parts(plan: TaskPlan, scorer: Any, where: str) -> Iterator[Gap]:
    name, form = f"{where} ({scorer.type})", SCORERS.get(scorer.type, UNKNOWN)
    if getattr(scorer, "method", None) == "loglikelihood":
        yield unsupported(name, "Inspect's models do not return log-likelihoods of given texts")
    elif form.code:
        yield from scorer_parts(plan, scorer, where)
    else:
        if form is AUTHORS_CODE and plan.entity == "dataset":
            form = _IN_PROCESS
        yield Gap(name, form.reason, form.fidelity)


# Samples


def native_samples(plan: TaskPlan) -> Samples:
    """Render all samples, and collect the errors of samples that cannot be rendered."""
    ask = _asker(plan.benchmark.solver)
    expect = [
        (key, expected(scorer))
        for key, scorer in zip(scorer_keys(plan.benchmark.scorers), plan.benchmark.scorers, strict=True)
    ]
    samples = Samples()
    for sample in plan.samples:
        try:
            record = _record(sample, ask, expect)
            if plan.benchmark.actions:
                record["metadata"]["excluded"] = is_excluded(plan, sample)
        except (SampleError, TemplateError) as error:
            samples.problems.append(f"sample {sample.id!r}: {error}")
            continue
        samples.records.append(record)
    if any("config" in record["metadata"] for record in samples.records):
        for record in samples.records:
            record["metadata"].setdefault("config", {})
    return samples


Ask = Callable[[Mapping[str, Any]], tuple[str | list[Message], dict[str, Any]]]
"""Row → input of the sample, and metadata that the solver needs."""


def _record(sample: Sample, ask: Ask, expect: Iterable[tuple[str, Expect]]) -> Record:
    input_of_sample, metadata = ask(sample.data)
    expected = {key: find(sample.data) for key, find in expect}
    # The first scorer compares with Inspect's target, the others with values in the metadata.
    target = next((fields.pop("ground_truth") for fields in expected.values()), "")
    metadata |= (
        {"expected": needed}
        if (needed := {key: fields for key, fields in expected.items() if fields})
        else {}
    )
    return {
        "id": sample.id,
        "input": input_of_sample,
        "target": target,
        "metadata": {**metadata, "sample": dict(sample.data)},
    }


def _asker(solver: Any) -> Ask:
    if solver is None:
        return lambda row: (_text(row), {})
    if solver.type == "pass_through_solver":
        return lambda row: (_text(row), {"answer": _recorded_answer(row, solver.trace_column)})
    if solver.type == "multi_turn_solver":
        script = _steps(solver.message_builders)
        if is_scripted(solver.message_builders):
            return lambda row: _conversation(script, row)
        return lambda row: (_text(row), {"steps": [step(row) for step in script]})
    build = compile_input(solver.input_builder)

    def single(row: Mapping[str, Any]) -> tuple[list[Message], dict[str, Any]]:
        request = build(row)
        if request.items is not None:
            raise SampleError(
                "the input is more than chat messages", stage="solver", kind="UnsupportedContent"
            )
        messages = [_message(message.role, message.content) for message in request.input.messages]
        config = generate_config(request, "solver").model_dump(mode="json", exclude_none=True)
        return _not_empty(messages), {"config": config} if config else {}

    return single


def _text(row: Mapping[str, Any]) -> str:
    """Return the input of a sample without a question: the row, as in a hosted task."""
    return json.dumps(dict(row), ensure_ascii=False, default=str)


def _recorded_answer(row: Mapping[str, Any], column: str) -> str:
    text = last_text(recorded_trace(row, column).items)
    if text is None:
        raise SampleError("the recorded trace contains no answer", stage="solver", kind="InvalidTrace")
    return text


def _message(role: str, content: object) -> Message:
    if not isinstance(content, str):
        raise SampleError("a message refers to a file by id", stage="solver", kind="UnsupportedContent")
    return {"role": role, "content": content}


def _not_empty(messages: list[Message]) -> list[Message]:
    if not messages:
        raise SampleError(
            "the conversation begins without a message", stage="solver", kind="InvalidModelInput"
        )
    return messages


# Conversations

Step = dict[str, Any]
"""One of `say` (a message), `generate`, `ask` (another model) and `loop`. `stop` is the text that ends the
enclosing sequence."""

Render = Callable[[Mapping[str, Any]], Step]
"""Row → step for the row."""


def is_scripted(builders: Iterable[Any]) -> bool:
    """Return whether the turns of a conversation do not depend on answers of a model."""
    return all(
        getattr(builder, "terminate_if", None) is None
        and (
            builder.type in ("chat_message", "generate")
            or (
                builder.type == "loop"
                and builder.on_max_iterations == "continue"
                and is_scripted(builder.message_builders)
            )
        )
        for builder in builders
    )


def _steps(builders: Iterable[Any]) -> list[Render]:
    return [_step(builder) for builder in builders]


def _step(builder: Any) -> Render:
    condition = getattr(builder, "terminate_if", None)
    stop = (
        {}
        if condition is None
        else {"stop": {"includes": condition.includes, "keep": condition.keep_iteration}}
    )
    match builder.type:
        case "generate":
            return lambda _: {"generate": True, **stop}
        case "loop":
            inner = _steps(builder.message_builders)
            is_bound = builder.on_max_iterations == "error"
            times = builder.max_iterations
            return lambda row: {"loop": [step(row) for step in inner], "times": times, "must_stop": is_bound}
        case "generate_message":
            extra = _steps(builder.extra_input_messages)
            prompts = {
                "role": role_name(builder.model_key),
                "with_conversation": builder.include_conversation,
                "says_as": builder.output_role or "assistant",
            }
            return lambda row: {"ask": {**prompts, "messages": [step(row)["say"] for step in extra]}, **stop}
        case _:
            template = SampleTemplate(builder.content)
            return lambda row: {"say": _message(builder.role, template.render(sample=row)), **stop}


def role_name(key: str) -> str:
    """Return the role of another model, with `_` in place of `-`, which Inspect's command line does not
    accept.
    """
    return key.replace("-", "_")


def _turns(steps: Iterable[Step]) -> list[list[Message]]:
    """Return the messages before the first answer, and the messages after each answer."""
    turns: list[list[Message]] = [[]]
    for step in _unrolled(steps):
        if "say" in step:
            turns[-1].append(step["say"])
        else:
            turns.append([])
    return turns


def _unrolled(steps: Iterable[Step]) -> Iterator[Step]:
    for step in steps:
        if "loop" in step:
            for _ in range(step["times"]):
                yield from _unrolled(step["loop"])
        else:
            yield step


def _conversation(script: Iterable[Render], row: Mapping[str, Any]) -> tuple[list[Message], dict[str, Any]]:
    opening, *turns = _turns(step(row) for step in script)
    if not turns:
        raise SampleError("the model is never called", stage="solver", kind="MissingValue")
    return _not_empty(opening), {"turns": turns}
