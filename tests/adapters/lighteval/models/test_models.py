"""Recorded calls contain the state at the time of the call, independent of the time of writing."""

from __future__ import annotations

import signal
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.support.jobs import run_job

from aigo_bridge.dtypes import (
    ChatCompletionInput,
    ChatCompletionInputMessage,
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    CustomTaskInputMessage,
    ModelResponse,
    ModelUsage,
)
from aigo_bridge.engine.protocol import Progress
from aigo_bridge.errors import SampleError
from aigo_bridge.models.connections import Choice, Exchange, Reply, Usage
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.solving.conversation import empty_trace, request_of_items, text_item
from aigo_lighteval.engine import LightevalEngine
from aigo_lighteval.models.messages import ModelAnswer
from aigo_lighteval.models.models import CallLog, _take_place, current, dumped, tokens_used

pytestmark = pytest.mark.xdist_group("lighteval")


def answer(text: str, **fields: Any) -> ModelResponse:
    return ModelAnswer(Reply(choices=(Choice(text=text, **fields),), usage=Usage(3, None))).response()


def test_a_recorded_call_does_not_change_with_later_turns() -> None:
    """Conversations grow, and the messages of an iteration may be reverted."""
    trace = empty_trace()
    trace.append(text_item("user", "first"))
    with CallLog("multi_turn_solver", "solver") as record:
        plain, said = request_of_items(trace.items), answer("one")
        record.add("m", plain, 1.0, said, (3, 0), Exchange("{}", "{}", 200))
        trace.add_model_response(said)
        trace.append(CustomTaskInputMessage(type="custom_task_input_message", content={"x": [1]}))
        record.add("m", request_of_items(trace.items), 2.0, answer("two"), None, None)
    before = record.to_json()
    del trace.items[1:]
    trace.append(text_item("user", "last"))
    assert record.to_json() == before
    first, second = before["calls"]
    assert first["input"] == [dumped(text_item("user", "first"))]
    assert first["usage"] == {"num_prompt_tokens": 3, "num_completion_tokens": 0}
    assert first["exchange"] == ["{}", "{}", 200]
    assert second["input"][1:] == [
        *first["output"],
        {"type": "custom_task_input_message", "content": {"x": [1]}},
    ]
    assert "usage" not in second
    assert "exchange" not in second
    assert tokens_used(record) == tokens_used(before) == [("m", (3, 0)), ("m", None)]


def test_a_failed_call_keeps_the_reason_without_exception_frames() -> None:
    record = CallLog("single_turn_solver", "solver")
    request = ModelRequest(
        ChatCompletionInput(messages=[ChatCompletionInputMessage(role="user", content="?")])
    )
    error = SampleError("no answer", stage="solver")
    gone = weakref.ref(error)
    record.add("m", request, 1.0, error, None, None)
    del error
    assert gone() is None
    (call,) = record.to_json()["calls"]
    assert (call["error"], call["output"]) == ("no answer", [])


def test_call_logs_can_be_nested() -> None:
    assert current() is None
    with CallLog("solver", "solver") as outer:
        with CallLog("judge", "scorer") as inner:
            assert current() is inner
        assert current() is outer
        assert outer.ended_at is None
    assert current() is None
    assert inner.ended_at is not None
    assert inner.ended_at >= inner.started_at


@pytest.mark.parametrize("reason", ["stop", "length", None])
def test_a_plain_answer_equals_the_generally_converted_answer(reason: str | None) -> None:
    """Answers with logprobs use the general conversion; others must give the same result."""
    plain = answer("Oslo", finish_reason=reason)
    general = answer("Oslo", finish_reason=reason, logprobs=({"token": "Oslo", "logprob": -0.1},))
    wanted = [dumped(item) for item in general.items]
    del wanted[0]["content"][0]["logprobs"]
    wanted[0]["id"] = plain.items[0].id  # type: ignore[union-attr]  # a message
    assert [dumped(item) for item in plain.items] == wanted
    message = ChatCompletionOutputMessage(role="assistant", content="Oslo")
    assert plain.raw_output == ChatCompletionModelOutput(
        choices=[ChatCompletionModelOutputChoice(message=message)],
        usage=ModelUsage(num_prompt_tokens=3, num_completion_tokens=0),
    )


def test_cancelled_calls_release_their_capacity() -> None:
    most = 0

    async def main() -> int:
        limiter = anyio.CapacityLimiter(2)

        async def call() -> None:
            nonlocal most
            await _take_place(limiter)
            try:
                most = max(most, int(limiter.borrowed_tokens))
                await anyio.sleep(0.001)
            finally:
                limiter.release()

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(call)
            with anyio.move_on_after(0.0015):
                await call()
            group.start_soon(call)
        return int(limiter.available_tokens)

    assert anyio.run(main) == 2
    assert most == 2


@pytest.mark.parametrize("reply", [{"error": "no", "status": 400}, {"text": "yes"}], ids=["failed", "scored"])
def test_a_run_that_never_waits_can_be_interrupted(
    reply: dict[str, Any],
    make_plan: Callable[..., TaskPlan],
    script: Callable[..., str],
    tmp_path: Path,
) -> None:
    """Progress counts failed and scored samples, which are kept."""
    made = make_plan([{"q": str(number), "a": "yes"} for number in range(3000)])
    main, told = threading.main_thread().ident, []

    def interrupt(progress: Progress) -> None:
        told.append(progress.done)
        if progress.done == 500:
            assert main is not None
            # The main thread waits for the run by now and reports its end afterwards.
            time.sleep(0.1)
            signal.pthread_kill(main, signal.SIGINT)
            time.sleep(0.3)

    engine = LightevalEngine()
    model = script({"match": {"regex": "."}, "reply": reply})
    log = run_job(engine, made, tmp_path / "out", model=model, on_progress=interrupt)
    evidence = engine.read(log.path)
    assert evidence.execution.status == "cancelled"
    assert 500 <= max(told) < 600
    assert len(list(evidence.trials())) == max(told)
