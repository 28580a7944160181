"""Playing: the calls of a run are answered from a cassette, and what is not in it is told, call by call.

A call is known by its request and the key of its model. Of several records of one request that one is taken
which was made at the same place (sample, trial, who asks, how many times before); then one of the same trial;
then, in their order, those of trials that this run does not have. No record answers twice: a request that is
made more often than it was recorded is not in the cassette.
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
from aigo_bridge.engine.tape import AskedCall, CassetteUse, digest_of, task_name
from aigo_bridge.errors import EvidenceError, Issue, SampleError, Stage
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.spec.base import MLTask
from aigo_bridge.text.canonical_json import canonical_json
from aigo_trust.recording.container import cassette_lines
from aigo_trust.recording.differences import request_differences
from aigo_trust.recording.digests import LineDigests, task_of_line

MOST_COMPARED = 200
"""Requests that are looked at to find the one that is nearest to one that is not in the cassette."""
MOST_SEARCHES = 50
"""Missing calls for which that is done where nothing was recorded at their place."""

HINT = "record it again: aigo-bridge run … --record FILE"


@dataclass(frozen=True)
class RecordedRun:
    """One plan that was recorded."""

    task: str
    digest: str
    """Of its plan."""
    engine: str
    models: Mapping[str, str]
    """AI GO model key (`""` for the evaluated model) → the engine's name."""


class Cassette:
    """The calls of a cassette, looked up by what is asked; of each a few numbers are kept in memory, what was
    said lies in a file without a name.

    Args:
        path: the file.
        tell: told of what cannot be read of it.

    Raises:
        EvidenceError: it is no cassette, cannot be opened, or there is no room to unpack it.
    """

    def __init__(self, path: Path, tell: Callable[[Issue], None] = lambda _issue: None):
        self.path = path
        self.runs: list[RecordedRun] = []
        self.lost: Counter[str] = Counter()
        """Why calls are not in it → how many."""
        self.digests = LineDigests()
        """Of its lines."""
        self.is_complete = False
        """Whether the recording came to its end."""
        self._spool: BinaryIO = tempfile.TemporaryFile()  # noqa: SIM115  # closed with the cassette
        self._starts, self._lengths = array("Q"), array("Q")
        self._trials = array("q")
        """Of each call the hash of its trial."""
        self._by_request: dict[bytes, list[int]] = {}
        self._by_place: dict[bytes, int] = {}
        """Place and request → the call; of several the last one: the trial was begun anew."""
        self._at: dict[bytes, int] = {}
        """Place → the call."""
        self._replaced: set[int] = set()
        self._lost_at: dict[bytes, str] = {}
        """Place → why the call there is not in the cassette."""
        self._tasks: dict[tuple[str, str], MLTask] = {}
        """Plan and model key → what the model is for, where that is no chat."""
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
                [
                    Issue(
                        f"the file cannot be unpacked: {error.strerror}",
                        file=str(path),
                        code=Code.DAMAGED_CASSETTE,
                    )
                ]
            ) from error

    @property
    def num_calls(self) -> int:
        """Calls that it has."""
        return len(self._starts) - len(self._replaced)

    def models(self) -> dict[str, str]:
        """AI GO model key → the name of the one model that was recorded under it; keys with several are left
        out.
        """
        names: dict[str, set[str]] = {}
        for run in self.runs:
            for key, name in run.models.items():
                names.setdefault(key, set()).add(name)
        return {key: next(iter(of_key)) for key, of_key in names.items() if len(of_key) == 1}

    def player(self, *, notes_asked: bool = False) -> Player:
        """The tape of a run on one engine; each run has one of its own."""
        return Player(self, notes_asked=notes_asked)

    def line(self, number: int) -> dict[str, Any]:
        """What the cassette says of a call."""
        with self._lock:
            content = os.pread(self._spool.fileno(), self._lengths[number], self._starts[number])
        line: dict[str, Any] = orjson.loads(content)
        return line

    def close(self) -> None:
        """Give the unpacked content back."""
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

    # For players

    def model_task(self, task: str, model_key: str) -> MLTask:
        """What a model of a plan is for; where another plan was recorded, what it was for in that one."""
        known = self._tasks.get((task, model_key))
        if known is not None or any(run.task == task for run in self.runs):
            return known or "chat_completion"
        others = {kind for (_, key), kind in self._tasks.items() if key == model_key}
        return others.pop() if len(others) == 1 else "chat_completion"

    def loss_at(self, place: CallSite) -> str | None:
        """Why the call at a place is not in the cassette; `None`: nothing is known of such a call."""
        return self._lost_at.get(_key(place))

    def records(self, asked: AskedCall) -> list[int]:
        """All records of a request."""
        numbers = self._by_request.get(_key(asked.place.model_key, asked.digest), [])
        return [number for number in numbers if number not in self._replaced]

    def record_at(self, asked: AskedCall) -> int | None:
        """The record of a request at its very place."""
        return self._by_place.get(_key(asked.place, asked.digest))

    def anything_at(self, place: CallSite) -> int | None:
        """The record of any request at a place."""
        return self._at.get(_key(place))

    def trial(self, number: int) -> int:
        """Hash of a call's trial."""
        return self._trials[number]

    def of_model(self, model_key: str) -> Iterator[dict[str, Any]]:
        """The first calls of a model."""
        numbers = (number for number in range(len(self._starts)) if number not in self._replaced)
        lines = (self.line(number) for number in numbers)
        return (line for line in lines if line["call"]["model_key"] == model_key)


class Player:
    """The tape of a run that is answered from a cassette; see `Tape`.

    Args:
        cassette: has the answers.
        notes_asked: whether it is kept what was asked where.
    """

    def __init__(self, cassette: Cassette, *, notes_asked: bool = False):
        self.cassette = cassette
        self.asked: dict[CallSite, int | bytes] | None = {} if notes_asked else None
        """Place → the record that has answered, or the request that none has; `None`: not noted."""
        self.num_given = 0
        """Calls that were answered."""
        self.num_missing = 0
        """Calls that were not in the cassette."""
        self._used: set[int] = set()
        self._searches = 0
        self._lock = threading.Lock()

    @property
    def num_unasked(self) -> int:
        """Calls of the cassette that this run has not made."""
        return self.cassette.num_calls - len(self._used)

    @property
    def use(self) -> CassetteUse:
        """See `Tape`."""
        return "answered from"

    def lines(self, plans: Sequence[TaskPlan]) -> list[dict[str, Any]]:
        """All lines: those of other plans may answer, too."""
        digests = self.cassette.digests
        return digests.to_json(digests.tasks())

    def of_task(self, plan: TaskPlan, engine: str, models: Mapping[str, str]) -> _TaskPlayer:
        """For one plan of the run."""
        name = task_name(plan)
        trials = {
            trial_hash(name, sample.id, trial) for sample in plan.samples for trial in range(plan.num_trials)
        }
        return _TaskPlayer(self, name, trials)

    def take(self, asked: AskedCall, trials: set[int]) -> int | None:
        """The record that answers a call, which then answers no other; `None`: there is none."""
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
        """That a call is not in the cassette, and what is nearest to it."""
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
        """It is in a cassette already."""

    def lose(self, reason: str) -> None:
        """As above."""


def trial_hash(task: str, sample: str | int, trial: int) -> int:
    """What tells a trial from others, in eight bytes."""
    return int.from_bytes(_key(task, sample, trial)[:8], "big", signed=True)


def _key(*parts: Any) -> bytes:
    """Sixteen bytes for anything plain."""
    shown: Iterable[str] = (part.hex() if isinstance(part, bytes) else repr(part) for part in parts)
    return hashlib.blake2b("\0".join(shown).encode("utf-8", "replace"), digest_size=16).digest()


def _words(request: Any) -> set[str]:
    """The words of a request: what likeness is measured by."""
    if isinstance(request, dict):
        return {word for part in request.values() for word in _words(part)}
    if isinstance(request, list):
        return {word for part in request for word in _words(part)}
    return set(request.lower().split()) if isinstance(request, str) else set()
