"""Conversion between Inspect's answers and cassettes, and the provider `cassette/<model>` that answers from
one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from inspect_ai.model import (
    ChatMessage,
    ContentReasoning,
    ContentText,
    GenerateConfig,
    ModelAPI,
    ModelCall,
    ModelOutput,
)
from inspect_ai.tool import ToolChoice, ToolInfo
from pydantic import ValidationError

from aigo_bridge.dtypes import TraceItem
from aigo_bridge.engine.model_calls import CallOutcome, FailedCall
from aigo_bridge.engine.recording import CallRecording
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.execution.checkpoint import ASKER, CALL, CheckpointCall
from aigo_bridge.models.connections import CallError, Choice, Reply, ToolCallReply, Usage
from aigo_bridge.spec.base import MLTask
from aigo_inspect.models.answers import answer_items, chat_output
from aigo_inspect.models.requests import RAW_OUTPUT, call_input, model_output

_ENGINE = "inspect"


# Recording


def native_request(asked: Mapping[str, Any]) -> dict[str, Any] | str:
    """Return an agent's request in the chat form, or the reason why this is not possible.

    Generation options are left out, because they are specific to Inspect and its providers.

    Args:
        asked: the arguments of a provider's `generate`.
    """
    try:
        call = call_input(
            "chat_completion", asked["input"], asked["tools"], asked["tool_choice"], GenerateConfig(), None
        )
    except (CallError, KeyError) as error:
        return f"a model call of an agent cannot be recorded in a cassette: {error}"
    return {"agent": {**call.input, **call.options}}


def outcome_of(output: ModelOutput) -> CallOutcome:
    """Convert an answer to a cassette outcome. Inspect's own form is added if the common form would lose
    information.
    """
    opaque = (output.metadata or {}).get(RAW_OUTPUT)
    if opaque is not None and opaque["task"] != "chat_completion":
        task, raw = opaque["task"], opaque["output"]
        value = raw["embeddings"] if task == "embeddings" else raw
        reply = Reply(value=value, raw=raw, usage=_usage(output), model=output.model or None)
        return CallOutcome(reply, task)
    reply = Reply(
        choices=tuple(_choice(choice) for choice in output.choices),
        usage=_usage(output),
        raw=None if opaque is None else opaque["output"],
        model=output.model or None,
    )
    if _is_plain(output) or _essence(model_output(output.model, "chat_completion", reply)) == _essence(
        output
    ):
        return CallOutcome(reply)
    return CallOutcome(reply, native={_ENGINE: output.model_dump(mode="json", exclude_none=True)})


def _is_plain(output: ModelOutput) -> bool:
    """Return whether an answer contains only text, which is the usual case."""
    return all(
        isinstance(choice.message.content, str) and not choice.message.tool_calls and choice.logprobs is None
        for choice in output.choices
    )


def _essence(output: ModelOutput) -> Any:
    """Return the parts of an answer that affect a result."""
    items = [_without_ids(item) for item in answer_items(output)] if output.choices else []
    reasons = [choice.stop_reason for choice in output.choices]
    return items, chat_output(output), reasons, [choice.message.text for choice in output.choices]


def _without_ids(item: TraceItem) -> dict[str, Any]:
    return {name: part for name, part in item.model_dump(mode="json").items() if name != "id"}


def _usage(output: ModelOutput) -> Usage | None:
    usage = output.usage
    if usage is None:
        return None
    cached = usage.input_tokens_cache_read
    read = usage.input_tokens + (cached or 0) + (usage.input_tokens_cache_write or 0)
    return Usage(read, usage.output_tokens, cached, usage.reasoning_tokens)


def _choice(choice: Any) -> Choice:
    message = choice.message
    parts = [] if isinstance(message.content, str) else message.content
    refusals = [part.text for part in parts if isinstance(part, ContentText) and part.refusal]
    thoughts = [part.reasoning for part in parts if isinstance(part, ContentReasoning)]
    texts = [part.text for part in parts if isinstance(part, ContentText) and not part.refusal]
    return Choice(
        text=message.content if isinstance(message.content, str) else "\n".join(texts),
        refusal="\n".join(refusals) if refusals else None,
        reasoning="\n".join(thoughts) if thoughts else None,
        tool_calls=tuple(
            ToolCallReply(call.id, call.function, json.dumps(call.arguments, ensure_ascii=False))
            for call in message.tool_calls or ()
        ),
        finish_reason=choice.stop_reason,
        logprobs=()
        if choice.logprobs is None
        else tuple(token.model_dump(mode="json") for token in choice.logprobs.content),
    )


# Replay


class CassetteAPI(ModelAPI):
    """Provider `cassette/<model>`, which replays recorded answers."""

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008  # Inspect's signature
    ):
        super().__init__(model_name, base_url, api_key, [], config)

    async def generate(
        self,
        input: list[ChatMessage],  # noqa: A002  # Inspect's signature
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> tuple[ModelOutput, ModelCall]:
        """Return the recorded answer.

        Raises:
            SampleError: the call is not in the cassette, or it failed during the recording.
        """
        call = CALL.get()
        request = {"input": input, "tools": tools, "tool_choice": tool_choice}
        recording = call.recording if call is not None else _recording_of_agent(self.model_name, request)
        outcome = None if recording is None else recording.played("solver")
        if recording is None or outcome is None:
            message = f"model 'cassette/{self.model_name}' only answers in runs with --replay"
            raise SampleError(message, stage="solver", kind="NotRecorded")
        reply = outcome.said
        if isinstance(reply, FailedCall):
            raise reply.error("solver")
        if not isinstance(reply, Reply):
            raise SampleError(
                "likelihoods were recorded instead of an answer", stage="solver", kind="NotRecorded"
            )
        return _output(self.model_name, outcome, reply), ModelCall.create(
            json.loads(recording.request), json.loads(b"{%b}" % outcome.to_json())
        )

    def should_retry(self, ex: BaseException) -> bool:
        """Return `False`: a recorded failure is final."""
        return False


def _recording_of_agent(model: str, asked: Mapping[str, Any]) -> CallRecording | None:
    asker = ASKER.get()
    return (
        None
        if asker is None or asker.recording is None
        else asker.recording.native_call("", model, native_request(asked))
    )


def _output(name: str, outcome: CallOutcome, reply: Reply) -> ModelOutput:
    native = (outcome.native or {}).get(_ENGINE)
    if outcome.native and native is None:
        raise SampleError(
            f"the answer was recorded in a form that only {', '.join(outcome.native)} can read",
            stage="solver",
            kind="NotRecorded",
        )
    if native is None:
        return model_output(name, outcome.task, reply)
    try:
        return ModelOutput.model_validate(native)
    except ValidationError as error:
        message = f"the recorded answer is not an Inspect output: {error.errors()[0]['msg']}"
        raise SampleError(message, stage="solver", kind="NotRecorded") from error


@contextmanager
def played_failures(call: CheckpointCall | None, stage: Stage) -> Iterator[None]:
    """Raise the errors of a replayed call in this block with the stage of the caller.

    Raises:
        SampleError: the call is not in the cassette, or it failed during the recording.
    """
    outcome = None if call is None or call.recording is None else call.recording.played(stage)
    try:
        yield
    except SampleError as error:
        if outcome is None or error.stage == stage:
            raise
        raise SampleError(error.message, stage=stage, hint=error.hint, kind=error.kind) from error


def played_task(model_key: str, api: ModelAPI) -> MLTask | None:
    """Return the ML task of a replayed model; `None` if the model is not replayed."""
    if not isinstance(api, CassetteAPI):
        return None
    asker = ASKER.get()
    recording = None if asker is None else asker.recording
    return "chat_completion" if recording is None else recording.model_task(model_key) or "chat_completion"
