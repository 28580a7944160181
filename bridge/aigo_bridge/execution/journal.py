"""Answers of models while a run is under way, so that a run that was killed asks for none of them again.

One line per answer, written before anything is made of it: a checksum, and JSON. A line that was cut off, or
damaged, is no line; nothing else is affected. It is a convenience and never a reason for a run to fail: where
it cannot be written (a full disk), the run goes on without it. What a kill leaves behind is whole up to the
last answer; there is no `fsync`, so a loss of power may cost the last seconds.

Which answer belongs to which call is told by the trial, by who asks (the solver, a scorer), by the model, by
what is asked, and by how many times the same was asked there before: repeated calls keep their different
answers. Answers of trials that ended with a failure are taken out, so that resuming such a run asks again.
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
    from aigo_bridge.engine.tape import TapedCall, TrialTape

FORMAT = 1

_LOGGER = logging.getLogger(__name__)


class Journal:
    """The answers of one plan's run in a folder.

    Args:
        folder: where the run's logs are.
        identity: JSON that tells the plan and its models from all others.
        goes_on: take the answers of a run that did not come to its end; else those are forgotten.
    """

    def __init__(self, folder: Path, identity: Any, *, goes_on: bool):
        name = hashlib.sha256(
            json.dumps([FORMAT, identity], sort_keys=True, default=str).encode()
        ).hexdigest()
        self.path = folder / f".answers-{name[:16]}.jsonl"
        self._places: dict[str, tuple[int, int]] = {}
        """Key of a call → where its line begins, and how long it is."""
        self.num_given = 0
        """Answers that were given again."""
        self._file: int | None = None
        try:
            self._file = _opened(self.path)
            # Two runs of one plan at a time would answer each other's calls.
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
        """Answers that are there."""
        return len(self._places)

    def forget(self, sample_id: str | int, trial: int) -> None:
        """A trial has ended with a failure: resuming the run asks again."""
        with contextlib.suppress(TypeError):
            self._append(orjson.dumps({"failed": _trial(sample_id, trial)}))

    def get(self, key: str) -> Any:
        """The answer to a call; `None` when there is none."""
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
        """Keep the answer to a call, JSON; one that holds a secret is not kept."""
        with contextlib.suppress(TypeError, ValueError):  # an id that is no text in UTF-8
            if redact_json(answer) == answer:
                self._append(orjson.dumps({"trial": trial, "call": key, "answer": orjson.Fragment(answer)}))

    def close(self) -> None:
        """The run has been interrupted: what there is stays for the next one."""
        file, self._file = self._file, None
        if file is not None:
            os.close(file)

    def remove(self) -> None:
        """The run has come to its end: the answers stand in its log."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                self.path.unlink()
        self.close()

    def _append(self, content: bytes) -> None:
        if self._file is None:
            return
        line = b"%08x %s\n" % (zlib.crc32(content), content)
        try:
            # One call per line: others may have the file open, too, and a kill leaves a whole line or its
            # beginning.
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
    """Who asks models within one trial, the solver or a scorer by its key; made anew for each attempt at it.

    Args:
        journal: keeps the answers while the run is under way; `None`: nobody does.
        tape: what the calls go past; `None`: nothing.
        sample_id: of the trial.
        trial: its number, from 0.
        who: asks.
    """

    def __init__(
        self, journal: Journal | None, tape: TrialTape | None, sample_id: str | int, trial: int, who: str
    ):
        self._journal = journal
        self.sample_id = str(sample_id)
        self._trial = _trial(sample_id, trial)
        self._who = who
        self._times: Counter[str] = Counter()
        self.tape = tape

    def call(
        self, model_key: str, model: str, request: ModelRequest, continuations: Sequence[str] | None = None
    ) -> Call:
        """One call, which may take several attempts; the next one of the same request is another.

        Args:
            model_key: AI GO's key of the model.
            model: the engine's name of it.
            request: what it is asked.
            continuations: texts whose likelihoods are asked, which the journal does not keep; `None`: an
                answer is.
        """
        tape = None if self.tape is None else self.tape.call(model_key, model, request, continuations)
        if self._journal is None or continuations is not None:
            return Call(None, self._trial, "", tape)
        content = [self._trial, self._who, model, _asked(request)]
        digest = hashlib.sha256(json.dumps(content, sort_keys=True, default=str).encode()).hexdigest()
        self._times[digest] += 1
        return Call(self._journal, self._trial, f"{digest[:32]}.{self._times[digest]}", tape)


class Call:
    """One call of a model, the answer that was given to it before, and its tape."""

    def __init__(self, journal: Journal | None, trial: str, key: str, tape: TapedCall | None):
        self._journal = journal
        self._trial = trial
        self._key = key
        self.tape = tape

    def answer(self) -> Any:
        """The answer of the run that did not come to its end, as JSON; `None` when there is none."""
        return None if self._journal is None else self._journal.get(self._key)

    def keep(self, answer: bytes) -> None:
        """Keep an answer, JSON."""
        if self._journal is not None:
            self._journal.put(self._trial, self._key, answer)


ASKER: ContextVar[Asker | None] = ContextVar("asker", default=None)
"""Who asks at the moment; `None`: nobody whose answers are kept or recorded."""

CALL: ContextVar[Call | None] = ContextVar("call", default=None)
"""The call that is being made, for those who make it."""


def asked_for() -> str | None:
    """Return the id of the sample for which a model is asked; `None` outside of a run."""
    asker = ASKER.get()
    return None if asker is None else asker.sample_id


@contextlib.contextmanager
def asking(asker: Asker | None) -> Iterator[None]:
    """Whoever calls a model in this block is this asker."""
    token = ASKER.set(asker)
    try:
        yield
    finally:
        ASKER.reset(token)


def _opened(path: Path) -> int:
    """A descriptor of the journal's file: new, or a regular file; a link or a pipe may be anybody's.

    Raises:
        OSError: it cannot be had.
    """
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | CLOSED_IN_CHILDREN | NO_LINK, 0o600)
    kind = os.fstat(file)
    if not stat.S_ISREG(kind.st_mode) or kind.st_nlink > 1:
        os.close(file)
        raise OSError(errno.EINVAL, "is not a file of its own")
    return file


def _asked(request: ModelRequest) -> list[Any]:
    """What is asked; items of a trace without their own ids, which are new each time."""
    items = [item.model_dump(mode="json") for item in request.items or ()]
    without_ids = [{name: value for name, value in item.items() if name != "id"} for item in items]
    return [request.input.model_dump(mode="json"), dict(request.options), without_ids]


def _trial(sample_id: str | int, trial: int) -> str:
    return f"{trial}/{sample_id}"


def _entry(line: bytes) -> dict[str, Any] | None:
    """What a line says; `None` for one that was cut off or damaged."""
    checksum, _, content = line.rstrip(b"\n").partition(b" ")
    try:
        if int(checksum, 16) != zlib.crc32(content):
            return None
        entry = orjson.loads(content)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None
