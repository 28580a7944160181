"""Replay: the model calls of a run are answered from a cassette, and each missing call is reported.

A call is identified by its request and its model key. If several records have the same request, the player
chooses in this order:

- the record from the same position: sample, trial, caller and repetition
- a record from the same trial
- the first record from a trial that this run does not have

Each record answers one call only. If a run sends a request more often than it was recorded, the extra calls
are missing from the cassette.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import orjson

from aigo_bridge.codes import Code
from aigo_bridge.engine.model_calls import CallOutcome, CallSite
from aigo_bridge.engine.recording import AskedCall, CassetteUse, digest_of, task_name
from aigo_bridge.errors import EvidenceError, Issue, SampleError, Stage
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.spec.base import MLTask
from aigo_bridge.text.canonical_json import canonical_json
from aigo_trust.recording.container import cassette_lines
from aigo_trust.recording.differences import request_differences
from aigo_trust.recording.digests import LineDigests, task_of_line

MOST_COMPARED = 200
"""Maximum number of requests to compare when searching for the one most similar to a missing call."""
MOST_SEARCHES = 50
"""Maximum number of such searches for missing calls without any record at their position."""

HINT = "record it again: aigo-bridge run … --record FILE"


@dataclass(frozen=True)
class RecordedRun:
    """Recorded run of one plan."""

    task: str
    digest: str
    """Digest of the plan."""
    engine: str
    models: Mapping[str, str]
    """Model name on the engine for each AI GO model key (`""` for the evaluated model)."""


class Cassette:
    """Calls of a cassette, indexed by request. Memory holds a few numbers for each call; the contents are in
    an anonymous temporary file.

    Args:
        path: path of the cassette.
        tell: callback for unreadable parts of the file.

    Raises:
        EvidenceError: the file is not a cassette or cannot be opened, or there is no disk space to unpack it.
    """

    def __init__(self, path: Path, tell: Callable[[Issue], None] = lambda _issue: None):
        self.path = path
        self.runs: list[RecordedRun] = []
        self.lost: Counter[str] = Counter()
        """Number of lost calls for each reason."""
        self.digests = LineDigests()
        """Digests of the lines."""
        self.is_complete = False
        """Whether the recording was finished."""
        self._spool: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the cassette
        self._starts, self._lengths = array("Q"), array("Q")
        self._trials = array("q")
        """Hash of the trial for each call."""
        self._by_request: dict[bytes, list[int]] = {}
        self._by_place: dict[bytes, int] = {}
        """Call for each position and request. If a trial was restarted, the last call is used."""
        self._at: dict[bytes, int] = {}
        """Call for each position."""
        self._replaced: set[int] = set()
        self._lost_at: dict[bytes, str] = {}
        """Reason for each position whose call is not in the cassette."""
        self._tasks: dict[tuple[str, str], MLTask] = {}
        """Task type of each plan and model key, if it is not chat."""
        self._lock = threading.Lock()
        try:
            with ExitStack() as undone:
                undone.callback(self._spool.close)
                for line, content in cassette_lines(path, tell):
                    self._add(line, content, tell)
                    if (task := task_of_line(line)) is not None:
                        self.digests.add(task, content)
                self._spool.flush()
                undone.pop_all()
        except OSError as error:
            raise EvidenceError(
                f"the file cannot be unpacked: {error.strerror}", file=str(path), code=Code.DAMAGED_CASSETTE
            ) from error

    @property
    def num_calls(self) -> int:
        """Number of calls in the cassette."""
        return len(self._starts) - len(self._replaced)

    def models(self) -> dict[str, str]:
        """Return the recorded model name for each AI GO model key. Keys with several model names are
        omitted.
        """
        names: dict[str, set[str]] = {}
        for run in self.runs:
            for key, name in run.models.items():
                names.setdefault(key, set()).add(name)
        return {key: next(iter(of_key)) for key, of_key in names.items() if len(of_key) == 1}

    def player(self, *, notes_asked: bool = False) -> Player:
        """Return a new recording for a run on one engine. Each run needs a separate recording."""
        return Player(self, notes_asked=notes_asked)

    def line(self, number: int) -> dict[str, Any]:
        """Return the recorded line of a call."""
        with self._lock:
            content = os.pread(self._spool.fileno(), self._lengths[number], self._starts[number])
        line: dict[str, Any] = orjson.loads(content)
        return line

    def close(self) -> None:
        """Delete the unpacked content."""
        self._spool.close()

    def _add(self, line: dict[str, Any], content: bytes, tell: Callable[[Issue], None]) -> None:
        try:
            match line:
                case {"call": dict(place), "request": dict(request)}:
                    outcome = CallOutcome.from_json(line)
                    self._keep(CallSite(**place), request, content)
                    if outcome.task != "chat_completion":
                        self._tasks[place["task"], place["model_key"]] = outcome.task
                case {"run": dict(run)}:
                    self.runs.append(RecordedRun(**run))
                case {"lost": lost_place, "reason": str(reason)}:
                    self.lost[reason] += 1
                    if lost_place is not None:
                        self._lost_at[_key(CallSite(**lost_place))] = reason
                case {"end": dict()}:
                    self.is_complete = True
                case {"cassette": _}:
                    pass
                case _:
                    self._tell_odd(f"it has {', '.join(map(repr, line))}", tell)
        except (TypeError, ValueError) as error:
            self._tell_odd(str(error), tell)

    def _tell_odd(self, problem: str, tell: Callable[[Issue], None]) -> None:
        message = f"a line is not a cassette record: {problem}; it is skipped"
        tell(Issue(message, file=str(self.path), severity="warning", code=Code.DAMAGED_CASSETTE))

    def _keep(self, place: CallSite, request: Any, content: bytes) -> None:
        digest = digest_of(canonical_json(request))
        number = len(self._starts)
        self._starts.append(self._spool.tell())
        self._lengths.append(self._spool.write(content))
        self._trials.append(trial_hash(place.task, place.sample, place.trial))
        self._by_request.setdefault(_key(place.model_key, digest), []).append(number)
        self._at[_key(place)] = number
        earlier = self._by_place.get(key := _key(place, digest))
        if earlier is not None:
            self._replaced.add(earlier)
        self._by_place[key] = number

    # Lookups for players

    def model_task(self, task: str, model_key: str) -> MLTask:
        """Return the task type of a plan's model. If the cassette has no such plan, use the recorded plan."""
        known = self._tasks.get((task, model_key))
        if known is not None or any(run.task == task for run in self.runs):
            return known or "chat_completion"
        others = {kind for (_, key), kind in self._tasks.items() if key == model_key}
        return others.pop() if len(others) == 1 else "chat_completion"

    def loss_at(self, place: CallSite) -> str | None:
        """Return why the call at a position was not recorded; `None` if the cassette does not mention it."""
        return self._lost_at.get(_key(place))

    def records(self, asked: AskedCall) -> list[int]:
        """Return all records of a request."""
        numbers = self._by_request.get(_key(asked.place.model_key, asked.digest), [])
        return [number for number in numbers if number not in self._replaced]

    def record_at(self, asked: AskedCall) -> int | None:
        """Return the record of a request at exactly the same position."""
        return self._by_place.get(_key(asked.place, asked.digest))

    def anything_at(self, place: CallSite) -> int | None:
        """Return the record of any request at a position."""
        return self._at.get(_key(place))

    def trial(self, number: int) -> int:
        """Return the hash of a call's trial."""
        return self._trials[number]

    def of_model(self, model_key: str) -> Iterator[dict[str, Any]]:
        """Yield the first calls of a model."""
        numbers = (number for number in range(len(self._starts)) if number not in self._replaced)
        lines = (self.line(number) for number in numbers)
        return (line for line in lines if line["call"]["model_key"] == model_key)


class Player:
    """Answers the calls of a run from a cassette; see `Recording`.

    Args:
        cassette: cassette with the answers.
        notes_asked: whether to keep the requests with their positions.
    """

    def __init__(self, cassette: Cassette, *, notes_asked: bool = False):
        self.cassette = cassette
        self.asked: dict[CallSite, int | bytes] | None = {} if notes_asked else None
        """Record that answered at each position, or the request without a record; `None` if not kept."""
        self.num_given = 0
        """Number of answered calls."""
        self.num_missing = 0
        """Number of calls missing from the cassette."""
        self._used: set[int] = set()
        self._searches = 0
        self._lock = threading.Lock()

    @property
    def num_unasked(self) -> int:
        """Number of recorded calls that this run has not made."""
        return self.cassette.num_calls - len(self._used)

    @property
    def use(self) -> CassetteUse:
        """See `Recording`."""
        return "answered from"

    def lines(self, plans: Sequence[TaskPlan]) -> list[dict[str, Any]]:
        """Return all lines of the cassette, because records of other plans may also answer calls."""
        digests = self.cassette.digests
        return digests.to_json(digests.tasks())

    def of_task(self, plan: TaskPlan, engine: str, models: Mapping[str, str]) -> _TaskPlayer:
        """Return the player for one plan of the run."""
        name = task_name(plan)
        trials = {
            trial_hash(name, sample.id, trial) for sample in plan.samples for trial in range(plan.num_trials)
        }
        return _TaskPlayer(self, name, trials)

    def take(self, asked: AskedCall, trials: set[int]) -> int | None:
        """Return the record that answers a call, and mark it as used; `None` if missing."""
        with self._lock:
            number = self._record(asked, trials)
            if self.asked is not None:
                self.asked[asked.place] = asked.content if number is None else number
            if number is None:
                self.num_missing += 1
            else:
                self.num_given += 1
                self._used.add(number)
            return number

    def _record(self, asked: AskedCall, trials: set[int]) -> int | None:
        if asked.problem is not None:
            return None
        exact = self.cassette.record_at(asked)
        if exact is not None and exact not in self._used:
            return exact
        place = asked.place
        own = trial_hash(place.task, place.sample, place.trial)
        free = [number for number in self.cassette.records(asked) if number not in self._used]
        same_trial = [number for number in free if self.cassette.trial(number) == own]
        of_nobody = [number for number in free if self.cassette.trial(number) not in trials]
        return next(iter(same_trial + of_nobody), None)

    def miss(self, asked: AskedCall, stage: Stage) -> SampleError:
        """Return an error for a missing call, with the most similar recorded request."""
        return SampleError(
            f"this call is not in the cassette ({asked.place}): {self._why(asked)}",
            stage=stage,
            hint=HINT,
            kind="NotRecorded",
        )

    def _why(self, asked: AskedCall) -> str:
        if asked.problem is not None:
            return asked.problem
        if (reason := self.cassette.loss_at(asked.place)) is not None:
            return f"the call could not be recorded: {reason}"
        if self.cassette.records(asked):
            return "the call was recorded fewer times than this run makes it"
        request = orjson.loads(asked.content)
        number = self.cassette.anything_at(asked.place)
        if number is not None:
            recorded = self.cassette.line(number)["request"]
            return "; ".join(request_differences(recorded, request))
        nearest = self._nearest(asked.place.model_key, request)
        if nearest is None:
            key = asked.place.model_key
            of_model = f"model {key!r}" if key else "the evaluated model"
            return f"no similar call of {of_model} was recorded"
        place = CallSite(**nearest["call"])
        differences = request_differences(nearest["request"], request)
        return "; ".join([f"the closest recorded call ({place}) differs", *differences])

    def _nearest(self, model_key: str, request: Any) -> dict[str, Any] | None:
        with self._lock:
            self._searches += 1
            if self._searches > MOST_SEARCHES:
                return None
        words = _words(request)
        best: tuple[float, dict[str, Any]] | None = None
        for count, line in enumerate(self.cassette.of_model(model_key)):
            if count == MOST_COMPARED:
                break
            others = _words(line["request"])
            likeness = len(words & others) / max(1, len(words | others))
            if likeness > 0 and (best is None or likeness > best[0]):
                best = likeness, line
        return None if best is None else best[1]


class _TaskPlayer:
    def __init__(self, player: Player, task: str, trials: set[int]):
        self._player = player
        self.task = task
        self._trials = trials

    def model_task(self, model_key: str) -> MLTask | None:
        return self._player.cassette.model_task(self.task, model_key)

    def call(self, asked: AskedCall) -> _PlayedCall:
        return _PlayedCall(self._player, asked, self._trials)


class _PlayedCall:
    def __init__(self, player: Player, asked: AskedCall, trials: set[int]):
        self._player = player
        self._asked = asked
        self._trials = trials
        self._number: int | None = None

    @property
    def request(self) -> str:
        return self._asked.content.decode()

    def played(self, stage: Stage) -> CallOutcome | None:
        player = self._player
        if self._number is None:
            self._number = player.take(self._asked, self._trials)
        if self._number is None:
            raise player.miss(self._asked, stage)
        return CallOutcome.from_json(player.cassette.line(self._number))

    def keep(self, outcome: CallOutcome, started: float, seconds: float) -> None:
        """Do nothing, because the call is already in a cassette."""

    def lose(self, reason: str) -> None:
        """Do nothing, for the same reason as `keep`."""


def trial_hash(task: str, sample: str | int, trial: int) -> int:
    """Return an eight-byte hash that identifies a trial."""
    return int.from_bytes(_key(task, sample, trial)[:8], "big", signed=True)


def _key(*parts: Any) -> bytes:
    """Return a 16-byte key for plain values."""
    shown: Iterable[str] = (part.hex() if isinstance(part, bytes) else repr(part) for part in parts)
    return hashlib.blake2b("\0".join(shown).encode("utf-8", "replace"), digest_size=16).digest()


def _words(request: Any) -> set[str]:
    if isinstance(request, dict):
        return {word for part in request.values() for word in _words(part)}
    if isinstance(request, list):
        return {word for part in request for word in _words(part)}
    return set(request.lower().split()) if isinstance(request, str) else set()
