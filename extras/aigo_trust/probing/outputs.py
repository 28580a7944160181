"""Access to the text that scorers read in a solver's output, and replacement of this text."""

from __future__ import annotations

from collections.abc import Sequence

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionOutputMessage,
    GroupedSolverOutput,
    GroupedSolverTrace,
    LFMessage,
    LFModelOutput,
    OpenResponsesModelOutput,
    OutputTextContent,
    RAGCompletionOutput,
    SingleSolverOutput,
    SolverOutput,
    SolverTrace,
    TraceItem,
)
from aigo_bridge.dtypes.items import last_assistant_message, message_text
from aigo_bridge.errors import SampleError
from aigo_bridge.scoring.variables import answer_text


def text_of(output: SolverOutput | None) -> str | None:
    """Return the model's last answer as text; `None` for a group of answers, vectors or tool calls only."""
    if output is None or isinstance(output, GroupedSolverOutput | GroupedSolverTrace):
        return None
    try:
        return answer_text(output)
    except SampleError:
        message = last_assistant_message(output.items) if isinstance(output, SolverTrace) else None
        return None if message is None else message_text(message)


def with_text(output: SolverOutput, text: str) -> SolverOutput:
    """Return a copy of the output with a different last answer.

    Raises:
        ValueError: the output does not contain text (see `text_of`).
    """
    if text_of(output) is None:
        raise ValueError("the output does not contain text")
    if isinstance(output, SolverTrace):
        raw_outputs = list(output.raw_outputs)
        if raw_outputs:
            raw_outputs[-1] = _output(raw_outputs[-1], text)
        trace = output.trace.model_copy(update={"items": _items(output.trace.items, text)})
        return output.model_copy(update={"trace": trace, "raw_outputs": raw_outputs})
    assert isinstance(output, SingleSolverOutput)
    return output.model_copy(
        update={"messages": _messages(output.messages, text), "output": _output(output.output, text)}
    )


def texts_of(output: SolverOutput | None) -> tuple[str, ...] | None:
    """Return the last answer, or one for each conversation of a group; `None` if one is not text."""
    if isinstance(output, GroupedSolverOutput | GroupedSolverTrace):
        texts = [text_of(member) for member in _members(output)]
    else:
        texts = [text_of(output)]
    answers = tuple(text for text in texts if text is not None)
    return answers if answers and len(answers) == len(texts) else None


def with_texts(output: SolverOutput, texts: Sequence[str]) -> SolverOutput:
    """Return a copy of the output with different last answers, one for each text (see `texts_of`).

    Raises:
        ValueError: the output does not contain text, or has a different number of texts.
    """
    if not isinstance(output, GroupedSolverOutput | GroupedSolverTrace):
        (text,) = texts
        return with_text(output, text)
    changed = [with_text(member, text) for member, text in zip(_members(output), texts, strict=True)]
    group = output.solver_outputs
    named = dict(zip(group, changed, strict=True)) if isinstance(group, dict) else changed
    return output.model_copy(update={"solver_outputs": named})


def _members(output: GroupedSolverOutput | GroupedSolverTrace) -> Sequence[SolverOutput]:
    group = output.solver_outputs
    return list(group.values()) if isinstance(group, dict) else list(group)


def with_group_reversed(output: SolverOutput | None) -> SolverOutput | None:
    """Return a group of answers in reverse order; `None` unless the output is a list of several answers."""
    if not isinstance(output, GroupedSolverOutput | GroupedSolverTrace):
        return None
    group = output.solver_outputs
    if isinstance(group, dict) or len(group) < 2:
        return None
    return output.model_copy(update={"solver_outputs": group[::-1]})


def _output(output: LFModelOutput, text: str) -> LFModelOutput:
    if isinstance(output, OpenResponsesModelOutput):
        return output.model_copy(update={"items": _items(output.items, text)})
    if isinstance(output, ChatCompletionModelOutput | RAGCompletionOutput) and output.choices:
        choice, *alternatives = output.choices
        message = choice.message.model_copy(update={"content": text})
        return output.model_copy(
            update={"choices": [choice.model_copy(update={"message": message}), *alternatives]}
        )
    return output


def _items(items: Sequence[TraceItem], text: str) -> list[TraceItem]:
    answer = last_assistant_message(items)
    if answer is None:
        return list(items)
    changed = answer.model_copy(update={"content": [OutputTextContent(text=text, annotations=[])]})
    return [changed if item is answer else item for item in items]


def _messages(messages: Sequence[LFMessage], text: str) -> list[LFMessage]:
    changed = list(messages)
    for place in range(len(changed) - 1, -1, -1):
        message = changed[place]
        if isinstance(message, ChatCompletionOutputMessage) and message.role == "assistant":
            changed[place] = message.model_copy(update={"content": text})
            break
    return changed
