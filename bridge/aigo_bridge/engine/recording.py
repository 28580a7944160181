"""Hook around each model call: an extra records its outcome or answers it. Engines only use these protocols.

A run has one recording (`RunSettings.recording`). A caller in a trial (the solver, a scorer) gets it from
`ProgressCounter.asker`, so that each call is identified by its position.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol

from aigo_bridge.errors import Stage
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.secrets import KNOWN
from aigo_bridge.text.canonical_json import canonical_json

if TYPE_CHECKING:
    from aigo_bridge.engine.model_calls import CallOutcome, CallSite
    from aigo_bridge.models.protocol import ModelRequest
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_bridge.spec.base import MLTask

PREFIX = "cassette/"
"""Prefix of model names in runs answered from a cassette, so that logs, caches and resumed runs do not
confuse them with the models themselves.
"""

CassetteUse = Literal["recorded", "answered from"]
"""Use of a cassette in a run."""

CANCELLED = "the call was stopped before an answer arrived"
"""Reason why a call is missing in a cassette, for example because its sample exceeded a time limit."""


class AskedCall(NamedTuple):
    """Call with its position."""

    place: CallSite
    model: str
    """Model name for the engine."""
    content: bytes
    """Request in canonical JSON, without secrets; empty if it cannot be represented."""
    problem: str | None = None
    """Reason why the request cannot be represented in canonical JSON; `None` if it can."""
    redactor: Redactor | None = None
    """Redactor that removed secrets; `None` if it was not used."""
    is_masked: bool = False
    """Whether secrets were removed."""

    @property
    def digest(self) -> bytes:
        """Digest of the request."""
        return digest_of(self.content)


def digest_of(content: bytes) -> bytes:
    """Return a digest that identifies a request."""
    return hashlib.sha256(content).digest()[:16]


class CallRecording(Protocol):
    """One call that uses a recording."""

    @property
    def request(self) -> str:
        """Request in canonical JSON; empty if it cannot be represented."""
        ...

    def played(self, stage: Stage) -> CallOutcome | None:
        """Return the recorded outcome of the call; `None` if the model must be called.

        Raises:
            SampleError: answers come from a cassette, and it does not contain this call.
        """
        ...

    def keep(self, outcome: CallOutcome, started: float, seconds: float) -> None:
        """Record the outcome of the call (an answer, or the error after all attempts) before it is used."""
        ...

    def lose(self, reason: str) -> None:
        """Record that the call cannot be recorded."""
        ...


class TaskRecording(Protocol):
    """Recording for the run of one plan."""

    @property
    def task(self) -> str:
        """Name of the plan within the run."""
        ...

    def model_task(self, model_key: str) -> MLTask | None:
        """Return the task of a model in the plan; `None` if it is not recorded, or only the model
        determines it.
        """
        ...

    def call(self, asked: AskedCall) -> CallRecording:
        """Return the recording of a call. All attempts are one call."""
        ...


class Recording(Protocol):
    """Recording of a run on one engine."""

    @property
    def use(self) -> CassetteUse:
        """Use of the cassette in the run."""
        ...

    def lines(self, plans: Sequence[TaskPlan]) -> list[dict[str, Any]]:
        """Return the digests that identify the lines of the cassette (see `LineDigests.to_json`), from the
        plans of the finished run, one for each repetition.
        """
        ...

    def of_task(self, plan: TaskPlan, engine: str, models: Mapping[str, str]) -> TaskRecording:
        """Return the recording for one plan of the run on an engine, with its models by AI GO key."""
        ...


class TrialRecording:
    """Recording for one caller in one trial. Each attempt has a new recording."""

    def __init__(self, recording: TaskRecording, sample_id: str | int, trial: int, by: str):
        self._recording = recording
        self._place = (recording.task, sample_id, trial, by)
        self._times: dict[tuple[str, int, int], int] = {}
        """Number of identical requests, by a hash of the request, because requests are long."""

    def model_task(self, model_key: str) -> MLTask | None:
        """Return the task of a model (see `TaskRecording.model_task`)."""
        return self._recording.model_task(model_key)

    def call(
        self, model_key: str, model: str, request: ModelRequest, continuations: Sequence[str] | None = None
    ) -> CallRecording:
        """Return the recording of a call for a request through the Model protocol."""
        from aigo_bridge.engine.model_calls import request_text

        try:
            return self._call(model_key, model, request_text(request, continuations))
        except ValueError as error:
            return self._call(model_key, model, b"", str(error))

    def native_call(self, model_key: str, model: str, request: Mapping[str, Any] | str) -> CallRecording:
        """Return the recording of a call for a request that an engine makes directly (for an agent).

        Args:
            model_key: AI GO key of the model.
            model: model name for the engine.
            request: JSON of the request, without values that only the engine sets; or the reason why it
                cannot be represented.
        """
        if isinstance(request, str):
            return self._call(model_key, model, b"", request)
        try:
            return self._call(model_key, model, canonical_json(request))
        except ValueError as error:
            return self._call(model_key, model, b"", str(error))

    def _call(self, model_key: str, model: str, text: bytes, problem: str | None = None) -> CallRecording:
        from aigo_bridge.engine.model_calls import CallSite

        redactor = KNOWN.redactor
        # Requests with different secrets count as equal.
        content = redactor.json(text)
        asked = (model_key, len(content), hash(content))
        times = self._times.get(asked, 0)
        self._times[asked] = times + 1
        place = CallSite(*self._place, model_key, times)
        # A text without a secret is returned unchanged.
        is_masked = content is not text and content != text
        return self._recording.call(AskedCall(place, model, content, problem, redactor, is_masked))


def task_name(plan: TaskPlan) -> str:
    """Return a name that distinguishes a plan from the others in its run."""
    specification = plan.specification
    if specification is None:
        return plan.task.key
    run = f"#{specification.run + 1}" if specification.num_runs > 1 else ""
    return f"{specification.evaluation}/{specification.key}{run}"


def played_name(name: str) -> str:
    """Return the name of a model whose calls are answered from a cassette."""
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"
