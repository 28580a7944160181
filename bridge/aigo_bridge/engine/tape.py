"""Hook around each model call: an extra records its outcome or answers it. Engines know only these protocols.

A run has one tape (`RunSettings.tape`). Whoever asks models in a trial (the solver, a scorer) has it from
`ProgressCounter.asker`, so that each call is known by its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from aigo_bridge.engine.model_calls import CallOutcome, CallSite, request_text
from aigo_bridge.errors import Stage
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.secrets import KNOWN
from aigo_bridge.spec.base import MLTask
from aigo_bridge.text.canonical_json import canonical_json

PREFIX = "cassette/"
"""In front of the names of models that a cassette answers for: no log, cache or resumed run takes them for
the models themselves.
"""

CassetteUse = Literal["recorded", "answered from"]
"""What a cassette was to a run."""

CANCELLED = "the call was stopped before an answer arrived"
"""Why a call of a sample that ran into a limit of time, say, is not in a cassette."""


class AskedCall(NamedTuple):
    """A call with its place."""

    place: CallSite
    model: str
    """The engine's name of the model."""
    content: bytes
    """The request in canonical JSON, without secrets; empty where it has none."""
    problem: str | None = None
    """Why it has no canonical JSON; `None`: it has."""
    redactor: Redactor | None = None
    """What has taken out secrets; `None`: nothing has."""
    is_masked: bool = False
    """Whether there were any."""

    @property
    def digest(self) -> bytes:
        """Of the request."""
        return digest_of(self.content)


def digest_of(content: bytes) -> bytes:
    """What tells one request from others."""
    return hashlib.sha256(content).digest()[:16]


class TapedCall(Protocol):
    """One call on its way past a tape."""

    @property
    def request(self) -> str:
        """What is asked, in canonical JSON; empty where it has none."""
        ...

    def played(self, stage: Stage) -> CallOutcome | None:
        """What the call came to when it was recorded; `None`: the model is to be asked.

        Raises:
            SampleError: answers come from a cassette, and this call is not in it.
        """
        ...

    def keep(self, outcome: CallOutcome, started: float, seconds: float) -> None:
        """Note what the call came to, before anybody uses it.

        Args:
            outcome: an answer, or that there was none after all attempts.
            started: Unix time in seconds.
            seconds: how long it took.
        """
        ...

    def lose(self, reason: str) -> None:
        """Note that the call cannot be recorded."""
        ...


class TaskTape(Protocol):
    """The tape of one plan's run."""

    @property
    def task(self) -> str:
        """The plan's name among those of the run."""
        ...

    def model_task(self, model_key: str) -> MLTask | None:
        """What a model of the plan is for; `None`: the tape does not know, or only the model does."""
        ...

    def call(self, asked: AskedCall) -> TapedCall:
        """One call; all attempts are one."""
        ...


class Tape(Protocol):
    """The tape of a run on one engine."""

    @property
    def use(self) -> CassetteUse:
        """What its cassette is to the run."""
        ...

    def lines(self, plans: Sequence[TaskPlan]) -> list[dict[str, Any]]:
        """What tells the lines of its cassette from any others; see `LineDigests.to_json`.

        Args:
            plans: those of the run that has ended, one for each time it was repeated.
        """
        ...

    def of_task(self, plan: TaskPlan, engine: str, models: Mapping[str, str]) -> TaskTape:
        """For one plan of the run.

        Args:
            plan: the plan.
            engine: who carries it out.
            models: AI GO model key (`""` for the evaluated model) → the engine's name.
        """
        ...


class TrialTape:
    """The tape for one who asks in one trial; made anew for each attempt at it."""

    def __init__(self, tape: TaskTape, sample_id: str | int, trial: int, by: str):
        self._tape = tape
        self._place = (tape.task, sample_id, trial, by)
        self._times: dict[tuple[str, int, int], int] = {}
        """How many times each was asked; by a number of the request, for requests are long."""

    def model_task(self, model_key: str) -> MLTask | None:
        """See `TaskTape.model_task`."""
        return self._tape.model_task(model_key)

    def call(
        self, model_key: str, model: str, request: ModelRequest, continuations: Sequence[str] | None = None
    ) -> TapedCall:
        """One call through the Model protocol."""
        try:
            return self._call(model_key, model, request_text(request, continuations))
        except ValueError as error:
            return self._call(model_key, model, b"", str(error))

    def native_call(self, model_key: str, model: str, request: Mapping[str, Any] | str) -> TapedCall:
        """One call that an engine makes by itself (an agent's).

        Args:
            model_key: AI GO's key of the model.
            model: the engine's name of it.
            request: JSON of its own, without what only that engine sets; or why it has no form.
        """
        if isinstance(request, str):
            return self._call(model_key, model, b"", request)
        try:
            return self._call(model_key, model, canonical_json(request))
        except ValueError as error:
            return self._call(model_key, model, b"", str(error))

    def _call(self, model_key: str, model: str, text: bytes, problem: str | None = None) -> TapedCall:
        redactor = KNOWN.redactor
        # So that a request is the same one, whoever's secret stands in it.
        content = redactor.json(text)
        asked = (model_key, len(content), hash(content))
        times = self._times.get(asked, 0)
        self._times[asked] = times + 1
        place = CallSite(*self._place, model_key, times)
        # What holds no secret comes back as it was given.
        is_masked = content is not text and content != text
        return self._tape.call(AskedCall(place, model, content, problem, redactor, is_masked))


def task_name(plan: TaskPlan) -> str:
    """What tells a plan from others of its run."""
    specification = plan.specification
    if specification is None:
        return plan.task.key
    run = f"#{specification.run + 1}" if specification.num_runs > 1 else ""
    return f"{specification.evaluation}/{specification.key}{run}"


def played_name(name: str) -> str:
    """Return the name of a model whose calls are answered from a cassette."""
    return name if name.startswith(PREFIX) else f"{PREFIX}{name}"
