"""Stored model replies for scorers, used when a result is scored again.

The replies come from the result, if its score metadata contains the judge calls, or from the cassette of the
run. No model is called. Each request of a scorer is compared with the stored request, and a different request
gets no reply.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import orjson

from aigo_bridge.dtypes import (
    ChatCompletionModelOutput,
    ChatCompletionModelOutputChoice,
    ChatCompletionOutputMessage,
    ModelResponse,
    ModelUsage,
)
from aigo_bridge.engine.model_calls import CallOutcome, FailedCall
from aigo_bridge.engine.recording import AskedCall, TrialRecording, task_name
from aigo_bridge.errors import SampleError, Stage
from aigo_bridge.models.connections import Reply
from aigo_bridge.models.protocol import Model, ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.redaction.secrets import MASK
from aigo_bridge.spec.base import MLTask
from aigo_bridge.text.plurals import plural
from aigo_trust.recording.differences import request_differences
from aigo_trust.recording.replay import Cassette

CALLS = "judge_calls"
"""Key in a score's metadata that contains the calls of its judge."""


class GivenReplies:
    """Stored replies for one scorer in one trial.

    After the scorer has run, `problem` and `place` describe a request that differs from the stored one.
    `missing` is the reason why a reply is not available.
    """

    def __init__(self) -> None:
        self.problem: str | None = None
        """Difference between the current and the stored request; `None` if they match."""
        self.place: tuple[str | int, ...] = (CALLS,)
        """Location of the difference in the score's metadata."""
        self.missing: str | None = None
        """Reason why a reply is missing; `None` if all requests have replies."""
        self.num_given = 0

    def __call__(self, key: str) -> Model:
        return _GivenModel(self, key)

    def name(self, key: str) -> str:
        """Return the model name for a key."""
        raise NotImplementedError

    def reply(self, key: str, request: ModelRequest) -> ModelResponse:
        """Return the stored reply of the model.

        Raises:
            SampleError: the stored call failed, or its reply is missing.
        """
        raise NotImplementedError

    def rest(self) -> str | None:
        """Return a description of unused replies; `None` if all were used or the number is unknown."""
        return None

    def _lacks(self, reason: str) -> SampleError:
        self.missing = self.missing or reason
        return SampleError(reason, stage="score", kind="NoReply")

    def _differs(self, problem: str) -> SampleError:
        self.problem = self.problem or problem
        return SampleError(problem, stage="score", kind="AnotherQuestion")


class _GivenModel:
    """Model that returns stored replies."""

    def __init__(self, replies: GivenReplies, key: str):
        self._replies = replies
        self._key = key

    @property
    def key(self) -> str:
        return self._key

    @property
    def name(self) -> str:
        return self._replies.name(self._key)

    async def predict(self, request: ModelRequest) -> ModelResponse:
        return self._replies.reply(self._key, request)


class NoReplies(GivenReplies):
    """Missing replies, with the reason in `reason`."""

    def __init__(self, reason: str):
        super().__init__()
        self._reason = reason

    def name(self, key: str) -> str:
        return key

    def reply(self, key: str, request: ModelRequest) -> ModelResponse:
        raise self._lacks(self._reason)


class ScoreReplies(GivenReplies):
    """Stored calls in the metadata of a score, in order."""

    def __init__(self, calls: Sequence[Any]):
        super().__init__()
        self._calls = calls

    def name(self, key: str) -> str:
        call = self._calls[self.num_given] if self.num_given < len(self._calls) else None
        name = call.get("model") if isinstance(call, Mapping) else None
        return name if isinstance(name, str) else key

    def reply(self, key: str, request: ModelRequest) -> ModelResponse:
        number = self.num_given
        if number >= len(self._calls):
            raise self._differs(f"the scorer asks a call number {number + 1}, the result has {number}")
        call = self._calls[number]
        self.num_given += 1
        self.place = (CALLS, number)
        if not isinstance(call, Mapping) or not isinstance(call.get("reply"), str):
            raise self._differs(f"call {number + 1} has no reply")
        messages = [{"role": message.role, "content": message.content} for message in request.input.messages]
        if not like(call.get("messages"), messages):
            self.place = (CALLS, number, "messages")
            differences = request_differences(call.get("messages"), messages)
            raise self._differs(f"call {number + 1}: {'; '.join(differences)}")
        return _response(call["reply"], call.get("usage"))

    def rest(self) -> str | None:
        if self.missing or self.problem or self.num_given == len(self._calls):
            return None
        self.place = (CALLS, self.num_given)
        return f"the result has {plural(len(self._calls), 'call')}, the scorer makes {self.num_given}"


class CassetteReplies(GivenReplies):
    """Recorded calls of one scorer in one trial of a cassette.

    Args:
        cassette: cassette with the replies.
        task: name of the plan in its run.
        place: sample ID, trial number from 0, and caller.
        any_sample: whether the sample ID may differ in the cassette, as for rows of a post-processor.
    """

    def __init__(
        self, cassette: Cassette, task: str, place: tuple[str | int, int, str], *, any_sample: bool = False
    ):
        super().__init__()
        self._cassette = cassette
        self._task = task
        self._place = place
        self._any_sample = any_sample
        self._recording = TrialRecording(_Nothing(task), *place)
        self._names = cassette.models()
        self._used: set[int] = set()

    def name(self, key: str) -> str:
        return self._names.get(key, key)

    def reply(self, key: str, request: ModelRequest) -> ModelResponse:
        self.num_given += 1
        call = self._recording.call(key, "", request)
        assert isinstance(call, _Question)
        number = self._record(call.asked)
        if number is None:
            raise self._unknown(call.asked, request)
        self._used.add(number)
        answer = CallOutcome.from_json(self._cassette.line(number)).said
        if isinstance(answer, FailedCall):
            raise answer.error("score")
        if not isinstance(answer, Reply):
            raise self._lacks("likelihoods were recorded, not an answer")
        usage = answer.usage
        return _response(
            answer.choices[0].text if answer.choices else "",
            None
            if usage is None
            else {"num_prompt_tokens": usage.prompt, "num_completion_tokens": usage.completion},
        )

    def _record(self, asked: AskedCall) -> int | None:
        exact = self._cassette.record_at(asked)
        if exact is not None:
            return exact
        sample, trial, by = self._place
        is_of_run = any(run.task == self._task for run in self._cassette.runs)
        for number in self._cassette.records(asked):
            call = self._cassette.line(number)["call"]
            if (
                number not in self._used
                and (call["trial"], call["by"]) == (trial, by)
                and (self._any_sample or call["sample"] == sample)
                and (not is_of_run or call["task"] == self._task)
            ):
                return number
        return None

    def _unknown(self, asked: AskedCall, request: ModelRequest) -> SampleError:
        if asked.problem is not None:
            return self._lacks(asked.problem)
        if (reason := self._cassette.loss_at(asked.place)) is not None:
            return self._lacks(f"a call could not be recorded: {reason}")
        number = self._cassette.anything_at(asked.place)
        if number is None:
            return self._lacks(f"a call is not in the cassette ({asked.place})")
        recorded = self._cassette.line(number)["request"]
        question = orjson.loads(asked.content)
        return self._differs("; ".join(request_differences(recorded, question)))


class _Question:
    """Call that is only looked up."""

    def __init__(self, asked: AskedCall):
        self.asked = asked

    @property
    def request(self) -> str:
        return self.asked.content.decode()

    def played(self, stage: Stage) -> CallOutcome | None:
        return None

    def keep(self, outcome: CallOutcome, started: float, seconds: float) -> None:
        """Do nothing, because replayed calls are not recorded."""

    def lose(self, reason: str) -> None:
        """Do nothing, for the same reason as `keep`."""


class _Nothing:
    """Recording that only provides the position of a call."""

    def __init__(self, task: str):
        self.task = task

    def model_task(self, model_key: str) -> MLTask | None:
        return None

    def call(self, asked: AskedCall) -> _Question:
        return _Question(asked)


def _response(text: str, usage: Any) -> ModelResponse:
    message = ChatCompletionOutputMessage(role="assistant", content=text)
    fields: dict[str, Any] = {"choices": [ChatCompletionModelOutputChoice(message=message)]}
    if isinstance(usage, Mapping):
        counts = {name: count for name, count in usage.items() if isinstance(count, int)}
        if {"num_prompt_tokens", "num_completion_tokens"} <= counts.keys():
            fields["usage"] = ModelUsage(**counts)
    return ModelResponse(raw_output=ChatCompletionModelOutput(**fields), items=[])


def like(stored: Any, computed: Any) -> bool:
    """Return whether a stored value equals a computed one. A mask in a stored text matches any secret."""
    if isinstance(stored, str) and isinstance(computed, str):
        if stored == computed:
            return True
        return MASK in stored and _unmasked(stored.split(MASK), computed)
    if isinstance(stored, Mapping) and isinstance(computed, Mapping):
        return stored.keys() == computed.keys() and all(
            like(value, computed[name]) for name, value in stored.items()
        )
    if isinstance(stored, list | tuple) and isinstance(computed, list | tuple):
        return len(stored) == len(computed) and all(map(like, stored, computed))
    if isinstance(stored, bool) or isinstance(computed, bool):
        return stored is computed
    if isinstance(stored, int | float) and isinstance(computed, int | float):
        return stored == computed
    return type(stored) is type(computed) and bool(stored == computed)


def _unmasked(parts: Sequence[str], text: str) -> bool:
    """Return whether a text contains the parts in order, and starts and ends with the outer parts."""
    *inner, ending = parts
    position = 0
    for number, part in enumerate(inner):
        place = text.find(part, position)
        if place < 0 or (number == 0 and place > 0):
            return False
        position = place + len(part)
    return len(text) - len(ending) >= position and text.endswith(ending)


def run_name(plan: TaskPlan, run: int | None) -> str:
    """Return the name of a plan in a cassette for one of its runs (numbered from 0)."""
    specification = plan.specification
    if run is None or specification is None:
        return task_name(plan)
    return task_name(replace(plan, specification=replace(specification, run=run)))
