"""Rendering what is not plain: in a process of ours, which the kernel ends when a template computes for too
long.

The process has none of the runner's environment (no keys). Processor time is counted by the kernel, so that a
busy machine fails no sample; only a process that gives nothing for much longer than that is ended by the
clock. One process to begin with, more where several threads render at the same time; they live as long as the
runner.
"""

from __future__ import annotations

import copyreg
import datetime as dt
import io
import json
import os
import pickle
import select
import signal
import struct
import subprocess
import sys
import threading
import time
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import Any

_OUR_PACKAGE = "aigo_bridge."
_LARGEST_DECIMAL = 10_000
_PLAIN = (str, int, float, bool, types.NoneType)


def pickled(job: Any) -> bytes:
    """A job for the process, or the values for one.

    Raises:
        TypeError: one of the values is of no kind that can be sent.
    """
    buffer = io.BytesIO()
    try:
        _Pickler(buffer, protocol=5).dump(job)
    except (pickle.PicklingError, AttributeError, TypeError, RecursionError) as error:
        raise TypeError(
            f"a value cannot be sent to the process that renders the template: {error}"
        ) from error
    return buffer.getvalue()


def _view(mapping: Mapping[Any, Any]) -> types.MappingProxyType[Any, Any]:
    return types.MappingProxyType(mapping)


def _reduced_view(value: types.MappingProxyType[Any, Any]) -> tuple[Any, ...]:
    return _view, (dict(value),)


class _Pickler(pickle.Pickler):
    dispatch_table = {**copyreg.dispatch_table, types.MappingProxyType: _reduced_view}  # noqa: RUF012  # pickle's own protocol


def written(value: Any) -> bytes:
    """A value that a template gave, as JSON.

    Raises:
        TypeError: it is no value, but for instance a macro.
        RecursionError: it is nested too deeply.
    """
    return json.dumps(_tagged(value), separators=(",", ":")).encode()


def read(data: bytes) -> Any:
    """Back from `written`.

    Raises:
        ValueError: it was not written by `written`.
    """
    try:
        return _untagged(json.loads(data))
    except (TypeError, KeyError, AttributeError, RecursionError) as error:
        raise ValueError(f"no value: {error}") from error


def _tagged(value: Any) -> Any:
    kind = type(value)
    if kind is int and value.bit_length() > _LARGEST_DECIMAL:
        return {"int": hex(value)}
    if kind in _PLAIN:
        return value
    if kind is list:
        return [_tagged(item) for item in value]
    if kind in _SEQUENCES:
        return {_SEQUENCES[kind]: [_tagged(item) for item in value]}
    if kind is dict:
        return {"dict": [[_tagged(key), _tagged(item)] for key, item in value.items()]}
    if kind in _SIMPLE:
        name, parts, _ = _SIMPLE[kind]
        return {name: parts(value)}
    if kind.__module__.startswith(_OUR_PACKAGE):
        if isinstance(value, Enum):
            return {"member": [kind.__module__, kind.__name__, value.name]}
        if hasattr(value, "model_dump"):
            return {"model": [kind.__module__, kind.__name__, _tagged(value.__getstate__())]}
    raise TypeError(f"the template returns a value of type {kind.__name__!r}, which a field cannot contain")


def _untagged(value: Any) -> Any:
    if type(value) is list:
        return [_untagged(item) for item in value]
    if type(value) is not dict:
        return value
    ((name, parts),) = value.items()
    match name:
        case "int":
            return int(parts, 16)
        case "dict":
            return {_untagged(key): _untagged(item) for key, item in parts}
        case "member":
            return _ours(parts[0], parts[1], Enum)[parts[2]]
        case "model":
            from pydantic import BaseModel

            kind = _ours(parts[0], parts[1], BaseModel)
            model = kind.__new__(kind)
            model.__setstate__(_untagged(parts[2]))
            return model
    if name in _MAKERS:
        return _MAKERS[name](parts)
    return _CONTAINERS[name](_untagged(parts))


def _ours(module: str, name: str, base: type) -> Any:
    """A type of ours that is known already: nothing is imported for an answer."""
    kind = getattr(sys.modules.get(module), name, None) if module.startswith(_OUR_PACKAGE) else None
    if not (isinstance(kind, type) and issubclass(kind, base)):
        raise TypeError(f"no type of a value: {module}.{name}")
    return kind


_CONTAINERS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple,
    "set": set,
    "frozenset": frozenset,
}
_SEQUENCES: dict[type, str] = {tuple: "tuple", set: "set", frozenset: "frozenset"}
_SIMPLE: dict[type, tuple[str, Callable[[Any], Any], Callable[[Any], Any]]] = {
    bytes: ("bytes", lambda value: value.decode("latin-1"), lambda text: text.encode("latin-1")),
    range: ("range", lambda value: [value.start, value.stop, value.step], lambda parts: range(*parts)),
    dt.date: ("date", dt.date.isoformat, dt.date.fromisoformat),
    dt.time: ("time", dt.time.isoformat, dt.time.fromisoformat),
    dt.datetime: ("datetime", dt.datetime.isoformat, dt.datetime.fromisoformat),
    dt.timedelta: (
        "timedelta",
        lambda value: [value.days, value.seconds, value.microseconds],
        lambda parts: dt.timedelta(*parts),
    ),
}
"""Type → its name, what is written of it, what is made of that."""
_MAKERS = {name: make for name, _, make in _SIMPLE.values()}


MOST_WORKERS = 4
"""Processes that render at the same time; who comes later waits."""
CPU_SECONDS = 2.0
"""Processor time of one job, in which a template is compiled and rendered."""
WALL_SECONDS = 30.0
"""Time after which a job is given up, however little of a processor it got."""
MEMORY_BYTES = 2 * 1024**3
"""Address space of a process."""
LARGEST_ANSWER = 1 << 30
"""Bytes of an answer; the budget of a rendering ends long before."""
FRAME = struct.Struct("!Q")
"""Length of what follows, on both pipes."""
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Variables that a process gets."""


_HERE = {"all": False}


def render_here() -> None:
    """From now on this process is one that can be killed, and renders everything itself."""
    _HERE["all"] = True


def renders_here() -> bool:
    """Whether this process is one that can be killed."""
    return _HERE["all"]


class RenderingStoppedError(Exception):
    """A job was ended, or could not be begun; the message says why."""

    def __init__(self, message: str, *, slow: bool = False):
        super().__init__(message)
        self.slow = slow
        """Whether it was ended for the time that it took."""


def exchange(request: bytes) -> bytes:
    """Have one job done and return its answer. Thread-safe.

    Raises:
        RenderingStoppedError: there is no answer.
    """
    with _POOL.worker() as worker:
        return worker.exchange(request)


class _Worker:
    """A process that renders.

    Raises:
        RenderingStoppedError: it cannot be started.
    """

    def __init__(self) -> None:
        if os.name != "posix":
            raise RenderingStoppedError(
                f"it is rendered in its own process, which needs a Unix system, found {sys.platform}"
            )
        # -I: neither PYTHON* variables nor the user's site-packages; it imports from where this process does.
        paths = [str(Path(path).absolute()) for path in sys.path]
        start = f"from {__package__}.worker import main; main({CPU_SECONDS!r})"
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-I", "-X", "utf8", "-c", f"import sys; sys.path[:] = {paths!r}; {start}"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={name: os.environ[name] for name in ENVIRONMENT if name in os.environ},
                start_new_session=True,
            )
        except OSError as error:
            raise RenderingStoppedError(f"cannot start a process for the template: {error}") from error
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._answers = self.process.stdin.fileno(), self.process.stdout.fileno()
        for descriptor in (self._requests, self._answers):
            os.set_blocking(descriptor, False)
        self.end = weakref.finalize(self, _end, self.process, os.getpid())
        """Kills the process; also when it is garbage collected."""

    def exchange(self, request: bytes) -> bytes:
        deadline = time.monotonic() + WALL_SECONDS
        try:
            self._send(FRAME.pack(len(request)), deadline)
            self._send(request, deadline)
            (length,) = FRAME.unpack(self._receive(FRAME.size, deadline))
            if length > LARGEST_ANSWER:
                raise RenderingStoppedError(f"the template returns more than {LARGEST_ANSWER:,} bytes")
            return self._receive(length, deadline)
        except TimeoutError as error:
            message = f"the template computes for more than {WALL_SECONDS:g} s"
            raise RenderingStoppedError(message, slow=True) from error
        except (OSError, EOFError) as error:
            raise self._cause() from error

    def _send(self, data: bytes, deadline: float) -> None:
        view = memoryview(data)
        while view:
            self._wait(self._requests, select.POLLOUT, deadline)
            view = view[os.write(self._requests, view) :]

    def _receive(self, size: int, deadline: float) -> bytes:
        parts = []
        while size:
            self._wait(self._answers, select.POLLIN, deadline)
            part = os.read(self._answers, min(size, 1 << 20))
            if not part:
                raise EOFError
            parts.append(part)
            size -= len(part)
        return b"".join(parts)

    def _wait(self, descriptor: int, event: int, deadline: float) -> None:
        poll = select.poll()
        poll.register(descriptor, event)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            raise TimeoutError

    def _cause(self) -> RenderingStoppedError:
        """Why the process has ended."""
        try:
            code = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            code = 0
        if -code == signal.SIGPROF:
            message = f"the template computes for more than {CPU_SECONDS:g} s"
            return RenderingStoppedError(message, slow=True)
        how = signal.strsignal(-code) if code < 0 else f"exit code {code}"
        return RenderingStoppedError(f"the process that renders the template ended ({how})")


class _Pool:
    """The processes of this one. Thread-safe."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew, in a copy of the process: what the other started is the other's."""
        self._free: list[_Worker] = []
        self._turns = threading.BoundedSemaphore(MOST_WORKERS)

    @contextmanager
    def worker(self) -> Iterator[_Worker]:
        """A process for one job; one that did not finish it is ended."""
        turns = self._turns
        with turns:
            worker = self._take()
            finished = False
            try:
                yield worker
                finished = True
            finally:
                # Also after an interrupt: its answer would be taken for that to the next job.
                if finished:
                    self._free.append(worker)
                else:
                    worker.end()

    def _take(self) -> _Worker:
        while True:
            try:
                worker = self._free.pop()
            except IndexError:
                return _Worker()
            if worker.process.poll() is None:
                return worker
            worker.end()


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    if os.getpid() != owner:
        return
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue


_POOL = _Pool()
os.register_at_fork(after_in_child=_POOL.forget)
