"""Wrappers around a provider's `generate` that connect it to the run's checkpoint
(`aigo_bridge.execution.checkpoint`) and recordings (`aigo_bridge.engine.recording`).

The wrapper is at the provider, so that Inspect logs a stored answer like any other, with its raw request
and response. It also covers the calls that an agent makes directly.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from weakref import WeakSet

import anyio
from inspect_ai._util.http import parse_retry_after
from inspect_ai.event import ModelEvent
from inspect_ai.log._samples import _active_model_event  # the event of the call; no public API
from inspect_ai.model import ModelAPI, ModelCall, ModelOutput
from inspect_ai.model._model_call import ModelRequestId  # no public API
from pydantic import BaseModel, ValidationError
from pydantic_core import PydanticSerializationError, to_json

from aigo_bridge.engine.model_calls import CallOutcome, FailedCall
from aigo_bridge.engine.recording import CANCELLED, CallRecording
from aigo_bridge.errors import SampleError
from aigo_bridge.execution.checkpoint import ASKER, CALL, CheckpointCall
from aigo_bridge.models.gate import is_gated, passing, paused
from aigo_bridge.process import steady_time
from aigo_inspect.models.cassettes import CassetteAPI, native_request, outcome_of
from aigo_inspect.models.secrets import Generated

_KEEPING = "_aigo_bridge_keeping"

_PAUSES = (429, 503)
"""HTTP statuses that ask the client to pause."""

_HEARD: WeakSet[Any] = WeakSet()
"""Clients whose responses are already reported to the gate."""


@contextmanager
def calling(call: CheckpointCall | None) -> Iterator[None]:
    """Set the current call for this block. Retries inside the block belong to the same call."""
    token = CALL.set(call)
    try:
        yield
    finally:
        CALL.reset(token)


@contextmanager
def failures_kept(call: CheckpointCall | None) -> Iterator[None]:
    """Record a failed or cancelled call of this block in its recording."""
    recording = None if call is None else call.recording
    started = steady_time()
    try:
        yield
    except SampleError as error:
        if recording is not None:
            failed = FailedCall(error.message, error.kind, error.hint)
            recording.keep(CallOutcome(failed), started, steady_time() - started)
        raise
    except anyio.get_cancelled_exc_class():
        if recording is not None:
            recording.lose(CANCELLED)
        raise


def keep_answers(api: ModelAPI) -> None:
    """Wrap `generate` of a provider: answer from the checkpoint if possible, add new answers to it, and
    record all answers.
    """
    if vars(api).get(_KEEPING) or isinstance(api, CassetteAPI):
        return
    generate = api.generate

    async def kept(*args: Any, **kwargs: Any) -> Generated:
        call = CALL.get()
        recording = call.recording if call is not None else _agent_recording(api, kwargs)
        started = steady_time()
        before = time.perf_counter()
        result = _generated(None if call is None else call.answer(), _active_model_event.get())
        if result is None:
            _hear_pauses(api)
            try:
                async with passing(api.model_name):
                    result = await generate(*args, **kwargs)
            except Exception as error:
                paused(api.model_name, getattr(api.should_retry(error), "retry_after", None))
                if call is None and recording is not None:
                    recording.lose(f"a model call of an agent failed: {type(error).__name__}")
                raise
            answer = None if call is None else _json(result, _active_model_event.get())
            if call is not None and answer is not None:
                call.keep(answer)
        if recording is not None:
            _record(recording, result, started, time.perf_counter() - before, by_agent=call is None)
        return result

    vars(api)["generate"] = kept
    vars(api)[_KEEPING] = True


def _hear_pauses(api: ModelAPI) -> None:
    """Report pauses that an endpoint requests to the gate. HTTPX clients otherwise handle them silently."""
    client = getattr(api, "http_client", None)
    hooks = getattr(client, "event_hooks", None)
    if is_gated() and isinstance(hooks, dict) and "response" in hooks and client not in _HEARD:
        _HEARD.add(client)

        async def hear(response: Any) -> None:
            if response.status_code in _PAUSES:
                paused(api.model_name, parse_retry_after(response.headers))

        hooks["response"].append(hear)


def _agent_recording(api: ModelAPI, asked: dict[str, Any]) -> CallRecording | None:
    """Return the recording entry for an agent's direct call, which does not use the `Model` protocol."""
    asker = ASKER.get()
    if asker is None or asker.recording is None:
        return None
    return asker.recording.native_call("", api.model_name, native_request(asked))


def _record(call: CallRecording, result: Generated, start: float, seconds: float, *, by_agent: bool) -> None:
    output = result[0] if isinstance(result, tuple) else result
    if not isinstance(output, Exception) and not output.error:
        call.keep(outcome_of(output), start, seconds)
    elif by_agent:
        # Inspect decides about a retry.
        call.lose("a model call of an agent failed")


class _EventRecord(BaseModel):
    """Fields of a model event that the provider's client sets during the call."""

    request_ids: list[ModelRequestId] | None = None
    retries: int | None = None


def _json(result: Generated, event: ModelEvent | None) -> bytes | None:
    """Return an answer and its log record in the checkpoint's format; `None` for a failure."""
    output, call = result if isinstance(result, tuple) else (result, None)
    if isinstance(output, Exception) or output.error:
        return None
    record = (
        None
        if event is None
        else event.model_dump(mode="json", include=set(_EventRecord.model_fields), exclude_none=True)
    )
    try:
        return to_json({"output": output, "call": call, "event": record})
    except PydanticSerializationError:  # lone surrogates cannot be written as JSON
        return None


def _generated(kept: Any, event: ModelEvent | None) -> Generated | None:
    """Return an answer from the checkpoint, and complete the event of its call."""
    if not isinstance(kept, dict):
        return None
    try:
        output = ModelOutput.model_validate(kept.get("output"))
        call = None if kept.get("call") is None else ModelCall.model_validate(kept["call"])
        record = _EventRecord.model_validate(kept.get("event") or {})
    except ValidationError:
        return None
    if event is not None:
        event.request_ids, event.retries = record.request_ids, record.retries
    return output if call is None else (output, call)
