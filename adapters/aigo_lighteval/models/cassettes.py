"""Recorded model calls: writing them to the recording of the run, or answering from a cassette
(`cassette/<model>`).
"""

from __future__ import annotations

import time
from collections.abc import Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import anyio

from aigo_bridge.engine.model_calls import CallOutcome, FailedCall
from aigo_bridge.engine.recording import CANCELLED, CallRecording
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.execution.checkpoint import ASKER, CALL, CheckpointCall
from aigo_bridge.models.connections import Exchange, MLTask, Reply
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.process import steady_time
from aigo_bridge.scoring.likelihoods import Likelihood
from aigo_lighteval.models.messages import AttemptError, ModelAnswer, chat_messages

T = TypeVar("T", bound=ModelAnswer | tuple[Likelihood, ...])

_CONCURRENT = 10
"""Number of concurrent calls, as for other models."""


@contextmanager
def call_recording(call: CheckpointCall | None, stage: Stage) -> Iterator[None]:
    """Make a call with all its attempts in this block. A call that fails is recorded too.

    Raises:
        SampleError: a cassette answers, and the call is not in it.
    """
    recording = None if call is None else call.recording
    if recording is None:
        yield
        return
    started = steady_time()
    token = CALL.set(call)
    try:
        yield
    except SampleError as error:
        if error.kind != "LimitExceeded":  # with this error, the model was not called
            failed = FailedCall(error.message, error.kind, error.hint)
            recording.keep(CallOutcome(failed), started, steady_time() - started)
        raise
    except anyio.get_cancelled_exc_class():
        recording.lose(CANCELLED)
        raise
    finally:
        CALL.reset(token)


async def recorded(
    call: CheckpointCall | None, attempt: Coroutine[Any, Any, tuple[T, Exchange]]
) -> tuple[T, Exchange]:
    """Await an attempt, record its outcome and return it."""
    if call is None or call.recording is None:
        return await attempt
    started, before = steady_time(), time.perf_counter()
    answer, exchange = await attempt
    outcome = (
        CallOutcome(answer.reply, answer.task) if isinstance(answer, ModelAnswer) else CallOutcome(answer)
    )
    call.recording.keep(outcome, started, time.perf_counter() - before)
    return answer, exchange


class CassetteCaller:
    """Model that returns the recorded answers of an earlier run."""

    def __init__(self, name: str):
        self.name = name
        self.settings: Mapping[str, Any] = {}
        self.max_concurrent = _CONCURRENT

    async def attempt(self, request: ModelRequest, stage: Stage) -> tuple[ModelAnswer, Exchange]:
        """Return the recorded answer.

        Raises:
            SampleError: the call is not in the cassette.
            AttemptError: the recorded call failed.
        """
        recording, outcome = self._outcome(stage)
        if outcome.task == "chat_completion":
            chat_messages(
                request, stage
            )  # raises the usual error for content that this engine does not support
        if not isinstance(outcome.said, Reply):
            raise _other("likelihoods were recorded, not an answer", stage)
        if outcome.native:
            raise _other(
                f"the answer was recorded in a form that only {', '.join(outcome.native)} can read", stage
            )
        return ModelAnswer(outcome.said, outcome.task), _exchange(recording, outcome)

    async def likelihoods(
        self, request: ModelRequest, continuations: Sequence[str], stage: Stage
    ) -> tuple[tuple[Likelihood, ...], Exchange]:
        """Return the recorded likelihoods.

        Raises:
            SampleError: the call is not in the cassette.
            AttemptError: the recorded call failed.
        """
        recording, outcome = self._outcome(stage)
        if not isinstance(outcome.said, tuple):
            raise _other("an answer was recorded, not likelihoods", stage)
        return outcome.said, _exchange(recording, outcome)

    def _outcome(self, stage: Stage) -> tuple[CallRecording, CallOutcome]:
        call = CALL.get()
        recording = None if call is None else call.recording
        outcome = None if recording is None else recording.played(stage)
        if recording is None or outcome is None:
            raise _other(f"model {self.name!r} only answers in runs with --replay", stage)
        if isinstance(outcome.said, FailedCall):
            raise AttemptError(outcome.said.error(stage), is_transient=False)
        return recording, outcome

    async def aclose(self) -> None:
        """Do nothing: no resources are open."""


def _other(message: str, stage: Stage) -> SampleError:
    return SampleError(message, stage=stage, kind="NotRecorded")


def _exchange(recording: CallRecording, outcome: CallOutcome) -> Exchange:
    return Exchange(recording.request, f"{{{outcome.to_json().decode()}}}")


def played_task(model_key: str) -> MLTask:
    """Return the task type of a recorded model."""
    asker = ASKER.get()
    recording = None if asker is None else asker.recording
    return "chat_completion" if recording is None else recording.model_task(model_key) or "chat_completion"
