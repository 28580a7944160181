"""Rendering of templates that are not plain, in processes that the kernel ends if a template runs too long.

The process has none of the runner's environment (no keys). The kernel counts processor time, so that a busy
machine does not fail samples. A process without an answer for much longer is ended by wall clock time. There
is one process at first, and more if several threads render at the same time. They live as long as the runner.
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
    """Pickle a job, or its values, for the process.

    Raises:
        TypeError: the type of a value is not supported.
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
    """Return a template's value as JSON.

    Raises:
        TypeError: it is not a value but, for example, a macro.
        RecursionError: the value is nested too deeply.
    """
    return json.dumps(_tagged(value), separators=(",", ":")).encode()


def read(data: bytes) -> Any:
    """Reverse `written`.

    Raises:
        ValueError: the data was not created by `written`.
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
    """Return a loaded type of aigo-bridge; an answer never triggers an import."""
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
"""Type → its name, function to write it, function to restore it."""
_MAKERS = {name: make for name, _, make in _SIMPLE.values()}


MOST_WORKERS = 4
"""Maximum number of processes that render at the same time; further jobs wait."""
CPU_SECONDS = 2.0
"""Maximum processor seconds of one job (compilation and rendering)."""
WALL_SECONDS = 30.0
"""Maximum wall clock seconds of a job, independent of its processor time."""
MEMORY_BYTES = 2 * 1024**3
"""Maximum address space of a process in bytes."""
LARGEST_ANSWER = 1 << 30
"""Maximum bytes of an answer; the budget of a rendering ends long before."""
FRAME = struct.Struct("!Q")
"""Length prefix of messages on both pipes."""
ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "LD_LIBRARY_PATH")
"""Environment variables that a process gets."""


_HERE = {"all": False}


def render_here() -> None:
    """Mark this process as one that can be killed; it renders everything itself."""
    _HERE["all"] = True


def renders_here() -> bool:
    """Return whether this process can be killed."""
    return _HERE["all"]


class RenderingStoppedError(Exception):
    """Job that was ended or could not be started; the message contains the reason."""

    def __init__(self, message: str, *, slow: bool = False):
        super().__init__(message)
        self.slow = slow
        """Whether it was ended for the time that it took."""


def exchange(request: bytes) -> bytes:
    """Run one job and return its answer. Thread-safe.

    Raises:
        RenderingStoppedError: there was no answer.
    """
    with _POOL.worker() as worker:
        return worker.exchange(request)


class _Worker:
    """Process that renders templates.

    Raises:
        RenderingStoppedError: the process cannot be started.
    """

    def __init__(self) -> None:
        if os.name != "posix":
            raise RenderingStoppedError(
                f"it is rendered in its own process, which needs a Unix system, found {sys.platform}"
            )
        # -I: ignore PYTHON* variables and the user's site-packages. The process imports from the same paths
        # as this one.
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
        """Function that kills the process; garbage collection also calls it."""

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
        """Return why the process has ended."""
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
    """Rendering processes of this process. Thread-safe."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Forget all processes, in a forked copy: they belong to the original process."""
        self._free: list[_Worker] = []
        self._turns = threading.BoundedSemaphore(MOST_WORKERS)

    @contextmanager
    def worker(self) -> Iterator[_Worker]:
        """Yield a process for one job; a process that did not finish its job is killed."""
        turns = self._turns
        with turns:
            worker = self._take()
            finished = False
            try:
                yield worker
                finished = True
            finally:
                # Also after an interrupt, because its answer would be read as the answer to the next job.
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
