"""Checkpoint of model answers during a run, so that a killed run does not repeat finished calls when it is
resumed.

Each answer is one line with a checksum and JSON, written before the answer is used. A truncated or damaged
line is ignored without affecting others. The checkpoint is a convenience and never makes a run fail: if it
cannot be written (on a full disk), the run continues without it. After a kill, the checkpoint is complete up
to the last answer. It does not use `fsync`, so a power failure may lose the last seconds.

A call is identified by the trial, the caller (the solver or a scorer), the model, the request, and the
number of earlier identical requests. Repeated calls therefore keep their different answers. Answers of
failed trials are removed, so that a resumed run makes their calls again.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import logging
import os
import stat
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.process.locks import CLOSED_IN_CHILDREN, NO_LINK, lock
from aigo_bridge.redaction.secrets import redact_json

if TYPE_CHECKING:
    from aigo_bridge.engine.recording import CallRecording, TrialRecording

FORMAT = 1

_LOGGER = logging.getLogger(__name__)


class Checkpoint:
    """Model answers of one plan's run in a folder.

    Args:
        folder: folder of the run's logs.
        identity: JSON that distinguishes the plan and its models from all others.
        goes_on: whether to reuse the answers of an interrupted run. Otherwise they are deleted.
    """

    def __init__(self, folder: Path, identity: Any, *, goes_on: bool):
        name = hashlib.sha256(
            json.dumps([FORMAT, identity], sort_keys=True, default=str).encode()
        ).hexdigest()
        self.path = folder / f".answers-{name[:16]}.jsonl"
        self._places: dict[str, tuple[int, int]] = {}
        """Key of a call → start and length of its line."""
        self.num_given = 0
        """Number of reused answers."""
        self._file: int | None = None
        try:
            self._file = _opened(self.path)
            # Lock the file, because two simultaneous runs of one plan would exchange answers.
            lock(self._file, wait=False)
            if goes_on:
                self._read()
            else:
                os.ftruncate(self._file, 0)
        except BlockingIOError:
            self.close()
        except OSError as error:
            self._give_up(error)

    @property
    def num_answers(self) -> int:
        """Number of stored answers."""
        return len(self._places)

    def forget(self, sample_id: str | int, trial: int) -> None:
        """Remove the answers of a failed trial, so that a resumed run calls the models again."""
        with contextlib.suppress(TypeError):
            self._append(orjson.dumps({"failed": _trial(sample_id, trial)}))

    def get(self, key: str) -> Any:
        """Return the answer to a call; `None` if it is not stored."""
        place = self._places.get(key)
        if place is None or self._file is None:
            return None
        try:
            entry = _entry(os.pread(self._file, place[1], place[0]))
        except OSError:
            return None
        answer = None if entry is None else entry.get("answer")
        self.num_given += answer is not None
        return answer

    def put(self, trial: str, key: str, answer: bytes) -> None:
        """Store the answer to a call as JSON, unless it contains a secret."""
        with contextlib.suppress(TypeError, ValueError):  # An id may not be valid UTF-8 text.
            if redact_json(answer) == answer:
                self._append(orjson.dumps({"trial": trial, "call": key, "answer": orjson.Fragment(answer)}))

    def close(self) -> None:
        """Close the file after an interruption. The answers stay for the next run."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def remove(self) -> None:
        """Delete the file after a finished run, because its log contains the answers."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.close()

    def _append(self, content: bytes) -> None:
        if self._file is None:
            return
        line = b"%08x %s\n" % (zlib.crc32(content), content)
        try:
            # Write each call as one line. Other processes may also have the file open, and a kill leaves a
            # whole line or its beginning.
            written = os.write(self._file, line)
        except OSError as error:
            self._give_up(error)
            return
        if written < len(line):
            self._give_up(OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)))

    def _read(self) -> None:
        assert self._file is not None
        of_trial: dict[str, list[str]] = {}
        position = 0
        line = b"\n"
        with os.fdopen(os.dup(self._file), "rb") as lines:
            for line in lines:
                entry = _entry(line)
                match entry:
                    case {"failed": str(trial)}:
                        for key in of_trial.pop(trial, []):
                            self._places.pop(key, None)
                    case {"trial": str(trial), "call": str(key)}:
                        self._places[key] = (position, len(line))
                        of_trial.setdefault(trial, []).append(key)
                position += len(line)
        if not line.endswith(b"\n"):
            os.write(self._file, b"\n")

    def _give_up(self, error: OSError) -> None:
        _LOGGER.warning(
            "%s cannot be written (%s): if this run is killed, unfinished samples are run "
            "again when you resume it",
            self.path,
            error.strerror or error,
        )
        self.close()


class Asker:
    """Caller of models within one trial: the solver, or a scorer by its key. Each attempt has a new caller.

    Args:
        checkpoint: stores the answers during the run; `None` to store nothing.
        recording: records or replays the calls; `None` to do neither.
        sample_id: id of the sample.
        trial: number of the trial, from 0.
        who: name of the caller.
    """

    def __init__(
        self,
        checkpoint: Checkpoint | None,
        recording: TrialRecording | None,
        sample_id: str | int,
        trial: int,
        who: str,
    ):
        self._checkpoint = checkpoint
        self.sample_id = str(sample_id)
        self._trial = _trial(sample_id, trial)
        self._who = who
        self._times: Counter[str] = Counter()
        self.recording = recording

    def call(
        self, model_key: str, model: str, request: ModelRequest, continuations: Sequence[str] | None = None
    ) -> CheckpointCall:
        """Return one call, which may take several attempts. A further identical request is another call.

        Args:
            model_key: AI GO key of the model.
            model: model name for the engine.
            request: request to the model.
            continuations: texts whose likelihoods are requested, which the checkpoint does not store; `None`
                for an answer.
        """
        recording = self.recording
        call = None if recording is None else recording.call(model_key, model, request, continuations)
        if self._checkpoint is None or continuations is not None:
            return CheckpointCall(None, self._trial, "", call)
        content = [self._trial, self._who, model, _asked(request)]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
        self._times[digest] += 1
        return CheckpointCall(self._checkpoint, self._trial, f"{digest[:32]}.{self._times[digest]}", call)


class CheckpointCall:
    """Model call with its earlier answer and its recording."""

    def __init__(self, checkpoint: Checkpoint | None, trial: str, key: str, recording: CallRecording | None):
        self._checkpoint = checkpoint
        self._trial = trial
        self._key = key
        self.recording = recording

    def answer(self) -> Any:
        """Return the answer of the interrupted run as JSON; `None` if it is not stored."""
        return None if self._checkpoint is None else self._checkpoint.get(self._key)

    def keep(self, answer: bytes) -> None:
        """Store an answer, given as JSON."""
        if self._checkpoint is not None:
            self._checkpoint.put(self._trial, self._key, answer)


ASKER: ContextVar[Asker | None] = ContextVar("asker", default=None)
"""Current caller; `None` if its answers are neither stored nor recorded."""

CALL: ContextVar[CheckpointCall | None] = ContextVar("call", default=None)
"""Current call, for the code that carries it out."""


def asked_for() -> str | None:
    """Return the id of the sample that the current model call belongs to; `None` outside of a run."""
    asker = ASKER.get()
    return None if asker is None else asker.sample_id


@contextlib.contextmanager
def asking(asker: Asker | None) -> Iterator[None]:
    """Set the caller for all model calls in this block."""
    token = ASKER.set(asker)
    try:
        yield
    finally:
        ASKER.reset(token)


def _opened(path: Path) -> int:
    """Return a file descriptor of the checkpoint. The file must be new or a regular file, because a link or
    pipe may belong to another user.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | CLOSED_IN_CHILDREN | NO_LINK, 0o600)
    kind = os.fstat(file)
    if not stat.S_ISREG(kind.st_mode) or kind.st_nlink > 1:
        os.close(file)
        raise OSError(errno.EINVAL, "is a link or not a regular file")
    return file


def _asked(request: ModelRequest) -> list[Any]:
    """Return the content of a request. Ids of trace items are left out, because they are new each time."""
    items = [item.model_dump(mode="json") for item in request.items or ()]
    without_ids = [{name: value for name, value in item.items() if name != "id"} for item in items]
    return [request.input.model_dump(mode="json"), dict(request.options), without_ids]


def _trial(sample_id: str | int, trial: int) -> str:
    return f"{trial}/{sample_id}"


def _entry(line: bytes) -> dict[str, Any] | None:
    """Return the content of a line; `None` if it is truncated or damaged."""
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(content):
            return None
        entry = orjson.loads(content)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
