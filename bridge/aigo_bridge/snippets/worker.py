"""Snippet side of the pipes: a process that handles one call at a time (see `protocol` for the messages).

Only `aigo_bridge.snippets.host` starts it. Snippets are compiled once and keep their module globals between
calls, as published snippets expect.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import inspect
import io
import itertools
import json
import linecache
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NoReturn

from aigo_bridge.sandbox.levels import REFUSAL, REFUSED, NotConfinedError, confine
from aigo_bridge.snippets.protocol import decode, plain
from aigo_bridge.snippets.snippet import install_aliases

_NETWORK = (
    "snippets cannot use the network: declare `needs: network` in the task, see docs/reference/snippets.md"
)
_FILES = (
    "snippets run in a jail and can only access the system, the installed packages "
    "and their own temporary folder"
)
_FOLDER = "snippets run in an empty folder and cannot read the files of the task; put data into the dataset"
_CALLS = "not available for snippets, because they run in a jail"
_MORE = "docs/reference/snippets.md lists what works, and what `--snippets worker` allows"

_NETWORK_FILES = ("socket.py", "selector_events.py", "base_events.py", "http/client.py", "ssl.py")
_DENIED = (errno.EACCES, errno.EPERM)


def hint(error: BaseException) -> str | None:
    """Return a hint if the sandbox caused an exception or one of its causes; otherwise `None`."""
    for link in _chain(error):
        if type(link).__name__ in ("gaierror", "herror"):
            return _NETWORK
        if isinstance(link, FileNotFoundError) and _is_name_here(link.filename):
            return f"{_FOLDER}; {_MORE}"
        if not isinstance(link, OSError) or link.errno not in _DENIED:
            continue
        if link.filename is None:
            return _NETWORK if _in_network(link) else f"{_CALLS}; {_MORE}"
        return f"{_FILES}; {_MORE}"
    return None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and its causes, outermost first; some libraries store causes in `reason`."""
    waiting, seen = [error], set[int]()
    while waiting:
        link = waiting.pop(0)
        if id(link) in seen or len(seen) > 100:
            continue
        seen.add(id(link))
        yield link
        origins = [link.__cause__, link.__context__, *link.args]
        with suppress(Exception):  # Attributes of an author's exception may raise errors.
            origins += [getattr(link, "reason", None), *getattr(link, "exceptions", ())]
        waiting += [origin for origin in origins if isinstance(origin, BaseException)]


def _is_name_here(name: object) -> bool:
    """Return whether a text is the name of a file in or below the current folder, such as one of the
    task's folder. Commands have no file extension.
    """
    return isinstance(name, str) and not name.startswith("/") and ("." in name or "/" in name)


def _in_network(error: BaseException) -> bool:
    trace = error.__traceback__
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename.replace(os.sep, "/")
        if file.endswith(_NETWORK_FILES):
            return True
        trace = trace.tb_next
    return False


def confine_worker(level: str, *, network: bool) -> None:
    """Sandbox this process as `sandbox.levels` describes, or end it before any author's code runs."""
    try:
        confine(level, os.getcwd(), network=network)  # noqa: PTH109  # pathlib is slow to import
    except NotConfinedError as error:
        refuse(str(error))


def refuse(reason: str) -> None:
    """End this process and write the reason to a file."""
    with suppress(OSError), open(REFUSAL, "w", encoding="utf-8") as file:  # noqa: PTH123  # as above
        file.write(reason)
    os._exit(REFUSED)


def die_with(lifeline: int) -> None:
    """Let the kernel kill this process's group when the other end of a pipe is closed."""
    if sys.platform == "linux":
        with suppress(OSError):
            import fcntl

            fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_RDONLY | os.O_ASYNC)


MAX_MESSAGE = 10_000
"""Maximum characters of an exception's message that are sent back."""

_JAILED: list[bool] = []
"""Whether this process is in the jail, after setup; empty in the runner."""


def main() -> None:
    """Handle calls until standard input ends."""
    requests, answers = settle(int(sys.argv[1]), int(sys.argv[2]))
    os.register_at_fork(after_in_child=lambda: _cut_off(requests, answers))
    with asyncio.Runner() as runner:
        _Worker(requests, answers, runner).serve()


def _cut_off(requests: int, answers: int) -> None:
    """Redirect the pipes of a forked copy to the null device; only the original process uses them."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, requests)
    os.dup2(nowhere, answers)


def settle(memory_bytes: int, lifeline: int) -> tuple[int, int]:
    """Prepare this process for snippets; return the descriptors of requests and answers.

    Further command-line arguments are the sandbox level, and whether the network is allowed.
    """
    die_with(lifeline)
    level, network = sys.argv[3:5]
    confine_worker(level, network=network == "1")
    _JAILED.append(level == "jailed")
    limit_resources(memory_bytes)
    # Output of a snippet or C library to descriptor 1 must not be mixed with the answers.
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    try:
        install_aliases()
    except (ImportError, OSError) as error:
        refuse(f"the installation cannot be read: {error}")
    return requests, answers


def limit_resources(memory_bytes: int) -> None:
    """Limit the address space and disable core files."""
    import resource

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # A container may allow less than requested.
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _exit_with_parent(parent: int) -> None:
    """End this process when its parent has ended: a killed runner cannot stop an endless loop."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(3)


class CallbackError(RuntimeError):
    """Error of a runner function such as `model.predict`; the snippet may catch it and continue."""

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.number = number


class _Worker:
    """Pipes to the runner, and the current call."""

    def __init__(self, requests: int, answers: int, runner: asyncio.Runner):
        self._requests = requests
        self._answers = answers
        self._runner = runner
        self._loop = runner.get_loop()
        self._functions: dict[tuple[SnippetCode, str], Any] = {}
        self._call: int | None = None
        """Number of the current call."""
        self._questions: dict[int, asyncio.Future[Any]] = {}
        """Unanswered questions."""
        self._numbers = itertools.count()
        self._lines: deque[bytes] = deque()
        self._parts: list[bytes] = []
        """Parts of an incomplete line."""

    def serve(self) -> NoReturn:
        """Handle calls until there are no more."""
        self._say('["ready"]')
        while True:
            while not self._lines:
                self._read()
            kind, number, content = json.loads(self._lines.popleft())
            if kind == "start":  # Answers to questions of ended calls are ignored.
                self._call = number
                answer = self._answer(number, content)
                self._call = None
                self._say(answer)

    def _read(self) -> None:
        part = os.read(self._requests, 1 << 16)
        if not part:
            # Do not wait for threads that a snippet left running.
            os._exit(0)
        *lines, remainder = part.split(b"\n")
        if lines:
            lines[0] = b"".join([*self._parts, lines[0]])
            self._parts = []
            self._lines.extend(lines)
        if remainder:
            self._parts.append(remainder)

    def _hear(self) -> None:
        """Handle arriving answers to questions."""
        self._read()
        while self._lines:
            kind, number, content = json.loads(self._lines.popleft())
            future = self._questions.get(number)
            if future is not None and not future.done():
                future.set_result((kind, content))

    def _say(self, message: str) -> None:
        view = memoryview(message.encode() + b"\n")
        while view:
            view = view[os.write(self._answers, view) :]

    def _answer(self, number: int, request: dict[str, Any]) -> str:
        place = SnippetCode.of(request)
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                if request["callbacks"] is None:
                    value = self._start(request, place)
                    if inspect.isawaitable(value):
                        value = self._run(_await(value))
                else:
                    value = self._run(self._with_callbacks(request, place), self._requests)
            return json.dumps(["value", number, value], default=plain)
        except MemoryError:
            problem, question = "ran out of memory", None
        except RecursionError:
            problem, question = "recursed too deeply, or returned something nested too deeply", None
        # Single error boundary of this process: every exception, including SystemExit, becomes an answer.
        except BaseException as error:  # noqa: BLE001
            problem = describe(error, place)
            question = error.number if isinstance(error, CallbackError) else None
        return json.dumps(["error", number, problem, question])

    def _run(self, work: Coroutine[Any, Any, Any], listening: int | None = None) -> Any:
        """Run a coroutine while handling input from a descriptor."""
        if listening is not None:
            self._loop.add_reader(listening, self._hear)
        try:
            return self._runner.run(work)
        finally:
            if listening is not None:
                self._loop.remove_reader(listening)
            # Tasks that a call leaves running end with it.
            for task in asyncio.all_tasks(self._loop):
                task.cancel()

    def _start(self, request: dict[str, Any], place: SnippetCode, inout: list[Any] | None = None) -> Any:
        key = (place, request["function"])
        if key not in self._functions:
            self._functions[key] = load(*key)
        inout = [] if inout is None else inout
        args = [self._argument(value, request, inout) for value in request["args"]]
        kwargs = {name: self._argument(value, request, inout) for name, value in request["kwargs"].items()}
        return self._functions[key](*args, **kwargs)

    async def _with_callbacks(self, request: dict[str, Any], place: SnippetCode) -> Any:
        inout: list[Any] = []
        value = self._start(request, place, inout)
        if inspect.isawaitable(value):
            value = await value
        return inout[0] if value is None and inout else value

    def _argument(self, value: dict[str, Any], request: dict[str, Any], inout: list[Any]) -> Any:
        if "__aigo_remote__" in value:
            methods = {name: self._question(name) for name in request["callbacks"]}
            return lend(value["__aigo_remote__"], methods)
        if "__aigo_inout__" in value:
            inout.append(decode(value["__aigo_inout__"]))
            return inout[-1]
        return decode(value)

    def _question(self, name: str) -> Any:
        call = self._call

        async def remote(*args: Any, **kwargs: Any) -> Any:
            return await self._ask(call, name, args, kwargs)

        return remote

    async def _ask(self, call: int | None, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the runner and wait for its result."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                f"{name} must be awaited on the event loop that runs the snippet, not on another"
            )
        if call != self._call:
            raise RuntimeError(f"{name} was called after the call that it belongs to")
        number = next(self._numbers)
        message = json.dumps(["call", call, number, name, args, kwargs], default=plain)
        future = self._questions[number] = self._loop.create_future()
        self._say(message)
        try:
            kind, result = await future
        except asyncio.CancelledError:
            if call == self._call:
                self._say(json.dumps(["drop", call, number]))
            raise
        finally:
            del self._questions[number]
        if kind == "fail":
            raise CallbackError(result, number)
        return decode(result)


async def _await(value: Any) -> Any:
    return await value


def lend(attributes: Mapping[str, Any], methods: Mapping[str, Any]) -> Any:
    """Return an object with the runner's functions as async methods."""

    class Remote:
        """Object that the runner lends to the snippet."""

    remote = Remote()
    remote.__dict__.update(attributes)
    for name, method in methods.items():
        method.__name__ = name
        remote.__dict__[name] = method
    return remote


@dataclass(frozen=True)
class SnippetCode:
    """Code of a snippet and its position."""

    source: str
    file: str
    """File of the code, or the label of a snippet with an unknown file."""
    first_line: int
    known: bool
    """Whether `file` is a file."""

    @classmethod
    def of(cls, request: dict[str, Any]) -> SnippetCode:
        """Return the position in a request."""
        origin = request.get("origin")
        first_line = request.get("first_line", 1)
        return cls(request["source"], origin or request["label"], first_line, origin is not None)

    def line(self, number: int | None) -> str:
        """Return a line for a message: `line 3`, or `scorer.py, line 3`."""
        return f"{self.file}, line {number}" if self.known else f"line {number}"

    def code(self, number: int | None) -> str:
        """Return the text of a line."""
        lines = self.source.split("\n")
        index = (number or 0) - self.first_line
        return lines[index].strip() if 0 <= index < len(lines) else ""


def load(place: SnippetCode, function: str) -> Any:
    """Compile a snippet and return the function that it must define."""
    # Leading blank lines make line numbers match those of the file.
    source = "\n" * (place.first_line - 1) + place.source
    _show(place)
    scope: dict[str, Any] = {
        "__name__": "aigo_snippet",
        "__file__": place.file,
        "__builtins__": __builtins__,
    }
    exec(compile(source, place.file, "exec", dont_inherit=True), scope)  # noqa: S102  # this worker runs snippets
    defined_function = scope.get(function)
    if not callable(defined_function):
        defined = sorted(name for name, value in scope.items() if inspect.isfunction(value))
        raise NameError(  # noqa: TRY004  # the name is missing, or it is not the function
            f"must define a function `{function}`; it defines {', '.join(defined) or 'none'}"
        )
    return defined_function


def _show(place: SnippetCode) -> None:
    """Let tracebacks and debuggers show the code; code of other snippets in the same file is kept."""
    cached = linecache.cache.get(place.file) if place.known else None
    lines = list(cached[2]) if cached is not None and len(cached) == 4 else []
    code = [f"{line}\n" for line in place.source.split("\n")]
    start = place.first_line - 1
    lines += ["\n"] * (start - len(lines))
    lines[start : start + len(code)] = code
    linecache.cache[place.file] = (sum(map(len, lines)), None, lines, place.file)


def describe(error: BaseException, place: SnippetCode) -> str:
    """Return the text of `_described` with a hint if the sandbox caused the error."""
    wall = hint(error) if any(_JAILED) else None
    # Leave out the code line: long messages are truncated on display, and the helpful part is at the end.
    text = _described(error, place, with_code=wall is None)
    return text if wall is None else f"{text}; {wall}"


def _described(error: BaseException, place: SnippetCode, *, with_code: bool) -> str:
    """Return `ValueError: message (line 3, in compute_scores)`, with the innermost line of the snippet."""
    try:
        message = str(error)[:MAX_MESSAGE]
    # The `__str__` method of an author's exception may raise an error.
    except Exception as another:  # noqa: BLE001
        message = f"its message is not available ({type(another).__name__})"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == place.file:
        return f"SyntaxError: {error.msg} ({place.line(error.lineno)})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place.file]
    if not frames:
        return text
    frame = frames[-1]
    line = place.code(frame.lineno) if with_code else None
    code = f": `{line}`" if line else ""
    return f"{text} ({place.line(frame.lineno)}, in {frame.name}{code})"


if __name__ == "__main__":
    main()
