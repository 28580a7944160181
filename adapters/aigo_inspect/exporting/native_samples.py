"""The samples of a task as plain Inspect samples: prompts and expected answers rendered, one JSON object a line."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from aigo_bridge.errors import SampleError, TemplateError
from aigo_bridge.exporting.comparisons import Expect, expected, is_excluded
from aigo_bridge.plan import Sample, TaskPlan
from aigo_bridge.scoring import scorer_keys
from aigo_bridge.solving.conversation import last_text
from aigo_bridge.solving.inputs import compile_input
from aigo_bridge.solving.recorded import recorded_trace
from aigo_bridge.templates import SampleTemplate
from aigo_inspect.native_requests import generate_config

Message = dict[str, str]
Record = dict[str, Any]


@dataclass
class Samples:
    """All samples of a task."""

    records: list[Record] = field(default_factory=list)
    """Fields of Inspect's `Sample`; `metadata.sample` is the row."""
    problems: list[str] = field(default_factory=list)
    """Why some samples have no native form: they would fail in a run too."""
    has_config: bool = False
    """Whether some samples ask for generation options."""


def native_samples(plan: TaskPlan) -> Samples:
    """Render every sample; those that cannot be are told."""
    ask = _asker(plan.benchmark.solver)
    expect = [
        (key, expected(scorer))
        for key, scorer in zip(scorer_keys(plan.benchmark.scorers), plan.benchmark.scorers, strict=True)
    ]
    found = Samples()
    for sample in plan.samples:
        try:
            record = _record(sample, ask, expect)
            if plan.benchmark.actions:
                record["metadata"]["excluded"] = is_excluded(plan, sample)
        except (SampleError, TemplateError) as error:
            found.problems.append(f"sample {sample.id!r}: {error}")
            continue
        found.records.append(record)
        found.has_config = found.has_config or "config" in record["metadata"]
    if found.has_config:
        for record in found.records:
            record["metadata"].setdefault("config", {})
    return found


Ask = Callable[[Mapping[str, Any]], tuple[str | list[Message], dict[str, Any]]]
"""Row → the sample's input, and what the solver needs besides."""


def _record(sample: Sample, ask: Ask, expect: Iterable[tuple[str, Expect]]) -> Record:
    given, metadata = ask(sample.data)
    expected = {key: find(sample.data) for key, find in expect}
    # The first scorer compares with Inspect's own target, the others with what stands beside it.
    target = next((fields.pop("ground_truth") for fields in expected.values()), "")
    metadata |= (
        {"expected": needed}
        if (needed := {key: fields for key, fields in expected.items() if fields})
        else {}
    )
    return {
        "id": sample.id,
        "input": given,
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
    """The input of a sample that asks nothing: the row, as the hosted task shows it."""
    return json.dumps(dict(row), ensure_ascii=False, default=str)


def _recorded_answer(row: Mapping[str, Any], column: str) -> str:
    text = last_text(recorded_trace(row, column).items)
    if text is None:
        raise SampleError("the recorded trace has no answer", stage="solver", kind="InvalidTrace")
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
"""One of `say` (a message), `generate`, `ask` (another model) and `loop`, with `stop` where a text can end the sequence around it."""

Render = Callable[[Mapping[str, Any]], Step]
"""Row → the step for it."""


def is_scripted(builders: Iterable[Any]) -> bool:
    """Whether the turns of a conversation are known before a model has said anything."""
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
            asked = {
                "role": role_name(builder.model_key),
                "with_conversation": builder.include_conversation,
                "says_as": builder.output_role or "assistant",
            }
            return lambda row: {"ask": {**asked, "messages": [step(row)["say"] for step in extra]}, **stop}
        case _:
            template = SampleTemplate(builder.content)
            return lambda row: {"say": _message(builder.role, template.render(sample=row)), **stop}


def role_name(key: str) -> str:
    """The role of another model: Inspect's command line has no `-` in names of roles."""
    return key.replace("-", "_")


def _turns(steps: Iterable[Step]) -> list[list[Message]]:
    """The messages before the first answer, and those after each."""
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
    first, *turns = _turns(step(row) for step in script)
    if not turns:
        raise SampleError("the model is never asked", stage="solver", kind="MissingValue")
    return _not_empty(first), {"turns": turns}
