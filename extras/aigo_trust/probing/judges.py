"""Judge models of a probe: called through an engine, recorded, or answered from a cassette."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import anyio

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    ModelResponse,
    ModelUsage,
)
from aigo_bridge.dtypes.conversion import assistant_message
from aigo_bridge.engine.model_calls import CallOutcome, FailedCall
from aigo_bridge.engine.recording import CANCELLED, CallRecording, TaskRecording, TrialRecording
from aigo_bridge.errors import SampleError
from aigo_bridge.models.connections import Reply
from aigo_bridge.models.connections.replies import Choice, Usage
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.process import steady_time

_RECORDING: ContextVar[TrialRecording | None] = ContextVar("probe_recording", default=None)
"""Recording for the judge calls of the current answer; `None` without a recording."""


@dataclass
class Judges:
    """Judge models of a plan by key."""

    names: Mapping[str, str]
    """Model name on the engine for each model key."""
    make: Callable[[str], Model] | None
    """Function that creates a model by name; `None` if all answers come from the recording."""
    recording: TaskRecording | None = None
    max_connections: int = 10
    """Maximum number of concurrent calls over all models."""
    num_calls: int = 0
    """Number of calls so far."""
    _models: dict[str, Model] = field(default_factory=dict)
    _limiter: anyio.CapacityLimiter | None = None

    def __call__(self, key: str) -> Model:
        """See `Models`."""
        if key not in self.names:
            raise SampleError(f"no model was given for {key!r}", stage="score", kind="NoModel")
        return _Judge(key, self.names[key], self)

    def made(self, name: str) -> Model | None:
        """Return the model with this name. It is created at the first use.

        Raises:
            UsageError: the engine does not have this model, or cannot use it.
        """
        if self.make is None:
            return None
        if name not in self._models:
            self._models[name] = self.make(name)
        return self._models[name]

    def limiter(self) -> anyio.CapacityLimiter:
        """Limiter of concurrent calls. It belongs to the event loop of the first call."""
        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(self.max_connections)
        return self._limiter

    @contextmanager
    def asked_by(self, sample: str | int, trial: int, who: str) -> Iterator[None]:
        """Set the position of all judge calls in this block, which scores one answer once."""
        token = _RECORDING.set(
            None if self.recording is None else TrialRecording(self.recording, sample, trial, who)
        )
        try:
            yield
        finally:
            _RECORDING.reset(token)


@dataclass(frozen=True)
class _Judge:
    key: str
    name: str
    judges: Judges

    async def predict(self, request: ModelRequest) -> ModelResponse:
        """See `Model`."""
        recording = _RECORDING.get()
        call = None if recording is None else recording.call(self.key, self.name, request)
        played = None if call is None else call.played("score")
        if played is not None:
            self.judges.num_calls += 1
            return _response(played)
        model = self.judges.made(self.name)
        if model is None:
            raise SampleError(f"no model was given for {self.key!r}", stage="score", kind="NoModel")
        async with self.judges.limiter():
            self.judges.num_calls += 1
            return await _recorded(model, request, call)


async def _recorded(model: Model, request: ModelRequest, call: CallRecording | None) -> ModelResponse:
    started, counter = steady_time(), time.perf_counter()

    def keep(said: Reply | FailedCall) -> None:
        if call is not None:
            call.keep(CallOutcome(said), started, time.perf_counter() - counter)

    try:
        response = await model.predict(request)
    except SampleError as error:
        keep(FailedCall(error.message, error.kind, error.hint))
        raise
    except anyio.get_cancelled_exc_class():
        if call is not None:
            call.lose(CANCELLED)
        raise
    keep(_reply(response))
    return response


def _reply(response: ModelResponse) -> Reply:
    """Return the recorded text as a reply. Judges only read the text."""
    try:
        text = response.text
    except ValueError:  # no message, for example only a function call
        text = ""
    usage = getattr(response.raw_output, "usage", None)
    used = None if usage is None else Usage(usage.num_prompt_tokens, usage.num_completion_tokens)
    return Reply((Choice(text),), usage=used)


def _response(outcome: CallOutcome) -> ModelResponse:
    if isinstance(outcome.said, FailedCall):
        raise outcome.said.error("score")
    if not isinstance(outcome.said, Reply):
        raise SampleError("likelihoods were recorded, not an answer", stage="score", kind="NotRecorded")
    text = outcome.said.choices[0].text if outcome.said.choices else ""
    usage = outcome.said.usage
    message = ChatCompletionOutputMessage(role="assistant", content=text)
    output = ChatCompletionModelOutput(
        choices=[ChatCompletionModelOutputChoice(message=message)],
        usage=None
        if usage is None
        else ModelUsage(num_prompt_tokens=usage.prompt, num_completion_tokens=usage.completion),
    )
    return ModelResponse(raw_output=output, items=[assistant_message(text)])
