"""Template variables of scorers, and the correct answers that scorers define."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionOutputMessage,
    GroupedSolverOutput,
    GroupedSolverTrace,
    RAGCompletionOutput,
    SolverOutput,
    SolverTrace,
)
from aigo_bridge.errors import SampleError
from aigo_bridge.jsonl_spec.conversion import is_of_records
from aigo_bridge.metrics.grades import is_missing
from aigo_bridge.plan.plan import Sample
from aigo_bridge.scoring.rendering import render as render  # noqa: PLC0414  # public name for plug-ins
from aigo_bridge.scoring.rendering import render_compared as render_compared  # noqa: PLC0414  # public name for plug-ins
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.text.plurals import plural

VIEWS = ("solver_output", "messages", "model_output", "input_prompt", "trace")
"""Names, or name prefixes, of the variables in addition to `sample`."""

_CHAT = (ChatCompletionInputMessage, ChatCompletionOutputMessage)
_GROUPS = (GroupedSolverTrace, GroupedSolverOutput)


def variables(sample: Sample, output: SolverOutput | None) -> dict[str, Any]:
    """Return the template variables: `sample` and, with a solver, the views of its output that published
    prompts use.

    A group of conversations has no single answer: its only view is `solver_output`.
    """
    if output is None:
        return {"sample": sample.data}
    if isinstance(output, _GROUPS):
        return {"sample": sample.data, "solver_output": output}
    messages = output.messages
    values: dict[str, Any] = {
        "sample": sample.data,
        "solver_output": output,
        "messages": messages,
        "model_output": output.output,
    }
    if all(isinstance(message, _CHAT) for message in messages):
        # The name suggests the prompt: all messages before the last answer. Custom tasks have no messages.
        values["input_prompt"] = "\n".join(str(message.content) for message in _asked(messages))
    if isinstance(output, SolverTrace):
        values |= {"trace": output.trace, "model_outputs": output.raw_outputs}
    return values


def last_call(output: SolverOutput) -> tuple[Any, Any]:
    """Return the last model input and output for deprecated snippets; for a custom task, the values
    themselves.

    Raises:
        SampleError: the output is a group, which has no last answer.
    """
    if isinstance(output, _GROUPS):
        raise SampleError(
            f"the solver returned a group of {plural(len(output.solver_outputs), 'answer')}, and the"
            " snippet accepts a single answer",
            stage="score",
            hint="write compute_scores(sample, solver_output), and pick from solver_output.solver_outputs",
            kind="MissingValue",
        )
    messages = output.messages
    if all(isinstance(message, _CHAT) for message in messages):
        prompt = [_plain(message) for message in _asked(messages)]
        return ChatCompletionInput(messages=prompt), output.output
    # In a custom task, inputs and outputs alternate; an embedding task has the texts and their vectors.
    return messages[-2] if len(messages) > 1 else messages[-1], output.output


def _asked(messages: Sequence[Any]) -> Sequence[Any]:
    """Return the chat messages before the model's last answer."""
    answer = max(
        (i for i, message in enumerate(messages) if message.role == "assistant"), default=len(messages)
    )
    return messages[:answer]


def _plain(
    message: ChatCompletionInputMessage | ChatCompletionOutputMessage,
) -> ChatCompletionInputMessage:
    if isinstance(message, ChatCompletionInputMessage):
        return message
    return ChatCompletionInputMessage(role=message.role, content=message.content)


def looks_at_output(*templates: SampleTemplate | None) -> bool:
    """Return whether a template may read more than the row and therefore needs views of the output."""
    value = [template for template in templates if template is not None]
    return any(
        # A name that a template sets is not in `reads`, but may be read where it is unset.
        any(view in template.source for view in VIEWS)
        or any(path[0] != "sample" for path in template.reads | template.optional_reads)
        for template in value
    )


def answer_text(output: SolverOutput | None) -> str:
    """Return the content of the last chat completion message, which scorers compare by default.

    Raises:
        SampleError: the output contains no chat completion.
    """
    if isinstance(output, _GROUPS):
        count = len(output.solver_outputs)
        raise SampleError(
            f"the solver returned a group of {plural(count, 'answer')}, expected a single answer to compare",
            stage="score",
            hint="set a `value` of the scorer that picks one, or use a python scorer",
            kind="MissingValue",
        )
    answer = output.output if output is not None else None
    if isinstance(answer, ChatCompletionModelOutput | RAGCompletionOutput) and answer.choices:
        return answer.choices[0].message.content
    raise SampleError(
        "the solver output does not contain a chat completion to compare",
        stage="score",
        hint="set a `value` of the scorer, e.g. '{{ sample.answer }}'",
        kind="MissingValue",
    )


Row = Mapping[str, Any]
Answers = Callable[[Row], tuple[str, ...]]
"""Row → the distinct texts that scorers compare with, in order; empty if the row defines none."""


def right_answers(scorers: Sequence[ScorerSpec]) -> Answers:
    """Return the correct answers of rows before a model call, for viewers and never for scores."""
    sources = [answers for scorer in scorers if (answers := _answers(scorer)) is not None]

    def answers_of(row: Row) -> tuple[str, ...]:
        return tuple(dict.fromkeys(text for answers in sources for text in answers(row)))

    return answers_of


def _answers(scorer: ScorerSpec) -> Answers | None:
    column = scorer.truth_column
    if column is not None:
        return lambda row: () if is_missing(row.get(column)) else (str(row[column]),)
    if is_of_records(scorer):
        return _targets
    if scorer.truth is None or scorer.truth_template is None:
        return None
    return _rendered(scorer.truth_template, scorer.truth)


def _targets(row: Row) -> tuple[str, ...]:
    """Return the targets of a task record; each is correct."""
    targets = row.get("targets")
    return tuple(map(str, targets)) if isinstance(targets, list | tuple) else ()


def _rendered(source: str, field: str) -> Answers | None:
    template = SampleTemplate(source)
    if any(name[0] != "sample" for name in template.reads | template.optional_reads):
        return None

    def answers(row: Row) -> tuple[str, ...]:
        try:
            return (render_compared(template, {"sample": row}, field),)
        except SampleError:
            return ()  # The sample will fail when it is scored.

    return answers
