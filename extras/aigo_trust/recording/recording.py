"""Recording: each model call of a run is written to a cassette before its answer is used."""

from __future__ import annotations

import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from aigo_bridge.engine.model_calls import CallOutcome, FailedCall
from aigo_bridge.engine.recording import AskedCall, CassetteUse, task_name
from aigo_bridge.errors import Stage
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.redaction.secrets import KNOWN, redact_json
from aigo_bridge.spec.base import MLTask
from aigo_bridge.version import __version__
from aigo_trust.recording.container import FORMAT, CassetteWriter
from aigo_trust.recording.digests import LineDigests, task_of_line

MOST_REASONS = 5
"""Maximum number of different reasons to keep for calls missing from the cassette."""


class Recorder:
    """Writes the calls of a run to a cassette; see `Recording`.

    Args:
        path: path of the cassette.
        append: whether to append to an existing cassette.

    Raises:
        UsageError: the cassette cannot be written, or already exists.
    """

    def __init__(self, path: Path, *, append: bool = False):
        head = {"cassette": FORMAT, "version": __version__, "created_at": round(time.time(), 3)}
        self._digests = LineDigests()
        self._file = CassetteWriter(path, head, append=append, taken_over=self._take_over)
        self._order = threading.Lock()
        """Lock for writing and counting a line, so that digests follow the order of the lines."""
        self.num_calls = 0
        """Number of recorded calls."""
        self.num_redacted = 0
        """Number of recorded calls with a masked secret."""
        self.num_lost = 0
        """Number of calls that could not be recorded."""
        self.reasons: dict[str, None] = {}
        """First different reasons for calls that could not be recorded."""

    @property
    def path(self) -> Path:
        """Path of the cassette."""
        return self._file.path

    @property
    def num_bytes(self) -> int:
        """Size of the cassette in bytes."""
        return self._file.num_bytes

    @property
    def problem(self) -> str | None:
        """Reason why later calls are missing from the cassette, such as a full disk; `None` if none are."""
        return self._file.problem

    @property
    def use(self) -> CassetteUse:
        """See `Recording`."""
        return "recorded"

    def lines(self, plans: Sequence[TaskPlan]) -> list[dict[str, Any]]:
        """See `Recording`."""
        with self._order:
            return self._digests.to_json([task_name(plan) for plan in plans])

    def _take_over(self, line: Mapping[str, Any], content: bytes) -> None:
        task = task_of_line(line)
        if task is not None:
            self._digests.add(task, content)

    def _put(self, task: str, content: bytes, checksum: int) -> bool:
        """Write a line and return whether it is in the cassette. The caller holds `_order`."""
        if not self._file.write(content, checksum):
            return False
        self._digests.add(task, content, checksum)
        return True

    def _write(self, task: str, content: bytes) -> None:
        with self._order:
            self._put(task, content, zlib.crc32(content))

    def of_task(self, plan: TaskPlan, engine: str, models: Mapping[str, str]) -> _TaskRecorder:
        """Return the recorder for one plan of the run."""
        name = task_name(plan)
        run = {"task": name, "digest": plan.digest, "engine": engine, "models": dict(models)}
        self._write(name, redact_json(orjson.dumps({"run": run})))
        return _TaskRecorder(self, name)

    def add(self, asked: AskedCall, outcome: CallOutcome, started: float, seconds: float) -> None:
        """Record a finished call."""
        if asked.problem is not None:
            self.lose(asked, asked.problem)
            return
        try:
            line = _call_line(asked, outcome, started, seconds)
        except (TypeError, ValueError) as error:
            self.lose(asked, str(error))
            return
        redactor = KNOWN.redactor
        clean = redactor.json(line)
        # A response without secrets keeps its exact value.
        is_masked = asked.is_masked or (clean is not line and clean != line)
        content = asked.content if asked.redactor is redactor else redactor.json(asked.content)
        content = b'%b,"request":%b}' % (clean[:-1], content)
        checksum = zlib.crc32(content)
        with self._order:
            if self._put(asked.place.task, content, checksum):
                self.num_calls += 1
                self.num_redacted += is_masked

    def lose(self, asked: AskedCall, reason: str) -> None:
        """Record the reason why a call cannot be recorded."""
        with self._order:
            self.num_lost += 1
            if len(self.reasons) < MOST_REASONS:
                self.reasons[reason] = None
        try:
            line = orjson.dumps({"lost": asked.place.to_json(), "reason": reason[:1000]})
        except TypeError:  # the ID is not valid UTF-8 text
            self._file.write(orjson.dumps({"lost": None, "reason": "the id of its sample is not text"}))
            return
        self._write(asked.place.task, redact_json(line))

    def close(self) -> None:
        """Close the cassette at the end of the run."""
        self._file.close(orjson.dumps({"end": {"calls": self.num_calls, "lost": self.num_lost}}))


def _call_line(asked: AskedCall, outcome: CallOutcome, started: float, seconds: float) -> bytes:
    """Return the line of a finished call without its request. Secrets are already removed from the request.

    Raises:
        ValueError: the answer cannot be written as JSON.
        TypeError: the sample ID cannot be written as JSON.
    """
    line: dict[str, Any] = {"call": asked.place.to_json(), "model": asked.model}
    outcome.add_to(line)
    # These convert to thousandths and millionths much faster than `round`.
    line["started_at"] = int(started * 1e3 + 0.5) / 1e3
    line["seconds"] = int(seconds * 1e6 + 0.5) / 1e6
    try:
        return orjson.dumps(line)
    except TypeError:
        outcome.to_json()  # records the error if it is the answer
        raise


class _TaskRecorder:
    def __init__(self, recorder: Recorder, task: str):
        self._recorder = recorder
        self.task = task

    def model_task(self, model_key: str) -> MLTask | None:
        return None

    def call(self, asked: AskedCall) -> _RecordedCall:
        return _RecordedCall(self._recorder, asked)


class _RecordedCall:
    def __init__(self, recorder: Recorder, asked: AskedCall):
        self._recorder = recorder
        self._asked = asked
        self._is_kept = False

    @property
    def request(self) -> str:
        return self._asked.content.decode()

    def played(self, stage: Stage) -> CallOutcome | None:
        return None

    def keep(self, outcome: CallOutcome, started: float, seconds: float) -> None:
        # Keep the answer of a call that fails afterwards, for example at a token limit.
        if not self._is_kept or not isinstance(outcome.said, FailedCall):
            self._is_kept = True
            self._recorder.add(self._asked, outcome, started, seconds)

    def lose(self, reason: str) -> None:
        if self._is_kept:
            return
        self._is_kept = True
        self._recorder.lose(self._asked, reason)
