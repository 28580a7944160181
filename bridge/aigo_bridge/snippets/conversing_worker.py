"""The side of the snippets that call back: many calls at a time, on one event loop.

Started by `aigo_bridge.snippets.conversing` and by nothing else. Each line in either direction is a JSON list. The host must know whose
code holds the event loop (to count its time, and to blame the right call for an endless loop or a crash), so every step of every
task of a call is announced: `["run", call]` before it, `["rest"]` after it. The first line is `["ready"]`.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import itertools
import json
import os
import sys
from collections.abc import Coroutine, Generator
from typing import Any

from aigo_bridge.snippets.encoding import decode, plain
from aigo_bridge.snippets.worker import Place, describe, load, settle

LONGEST_LINE = 1 << 30
"""Bytes of a request; memory is limited otherwise."""

_call: contextvars.ContextVar[int | None] = contextvars.ContextVar("aigo_call", default=None)
"""The call that a task belongs to."""


class CallbackError(RuntimeError):
    """A function of the runner, such as `model.predict`, failed; the snippet may catch it and go on."""

    def __init__(self, message: str, number: int):
        super().__init__(message)
        self.number = number


def main() -> None:
    """Serve calls until standard input ends."""
    requests, answers = settle(int(sys.argv[1]), int(sys.argv[2]))
    os.register_at_fork(after_in_child=lambda: _cut_off(requests, answers))
    asyncio.run(_Worker(answers).serve(requests))
    # Not waiting for threads that a snippet left behind.
    os._exit(0)


def _cut_off(requests: int, answers: int) -> None:
    """A copy that a snippet forked reads no request and gives no answer; they are the original's."""
    nowhere = os.open(os.devnull, os.O_RDWR)
    os.dup2(nowhere, requests)
    os.dup2(nowhere, answers)


class _Worker:
    """Calls in progress, and the answers they wait for."""

    def __init__(self, answers: int):
        self._answers = answers
        self._functions: dict[tuple[Place, str], Any] = {}
        self._tasks: dict[int, set[asyncio.Task[Any]]] = {}
        """Call → its unfinished tasks, the one that answers it among them."""
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()
        self._said: list[str] | None = None
        """What the running step has said; `None` between steps."""

    async def serve(self, requests: int) -> None:
        """Take requests until there are no more."""
        self._loop = asyncio.get_running_loop()
        self._loop.set_task_factory(self._task)
        reader = asyncio.StreamReader(limit=LONGEST_LINE)
        pipe = os.fdopen(requests, "rb", buffering=0)
        await self._loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), pipe)
        self._write('["ready"]\n')
        while line := await reader.readline():
            kind, number, *rest = json.loads(line)
            if kind == "start":
                self._tasks[number] = set()
                context = contextvars.copy_context()
                context.run(_call.set, number)
                context.run(self._loop.create_task, self._answer(number, *rest))
            elif kind == "cancel":
                self._cancel(number)
            elif number in self._waiting and not self._waiting[number].done():
                self._waiting[number].set_result((kind, *rest))

    def _task(self, loop: asyncio.AbstractEventLoop, work: Any, **options: Any) -> asyncio.Task[Any]:
        call = _call.get()
        if call is not None and asyncio.iscoroutine(work):
            work = self._announced(call, work)
        task = asyncio.Task(work, loop=loop, **options)
        if call in self._tasks:
            self._tasks[call].add(task)
            task.add_done_callback(self._tasks[call].discard)
        return task

    def _cancel(self, call: int) -> None:
        for task in [*self._tasks.get(call, ())]:
            task.cancel()

    async def _announced(self, call: int, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return await _Steps(self, call, work)
        except (SystemExit, KeyboardInterrupt) as error:
            # Those would end the loop, and with it everybody's calls.
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

    def enter(self, call: int) -> None:
        """A step of a call begins."""
        self._write(f'["run", {call:d}]\n')
        self._said = []

    def leave(self) -> None:
        """The step has ended."""
        said, self._said = self._said or [], None
        self._write("".join([*said, '["rest"]\n']))

    def _say(self, message: str) -> None:
        if self._said is None:
            self._write(message + "\n")
        else:
            self._said.append(message + "\n")

    def _write(self, text: str) -> None:
        view = memoryview(text.encode())
        while view:
            view = view[os.write(self._answers, view) :]

    async def _answer(self, number: int, request: dict[str, Any]) -> None:
        try:
            value = await self._run(number, request)
            reply = json.dumps(["value", number, value], default=plain)
        except MemoryError:
            reply = json.dumps(["error", number, "ran out of memory", None])
        except RecursionError:
            problem = "recursed too deeply, or returned something nested too deeply"
            reply = json.dumps(["error", number, problem, None])
        # The one boundary of this process: whatever an author's code raises, SystemExit included, is its answer.
        except BaseException as error:  # noqa: BLE001
            cause = error.number if isinstance(error, CallbackError) else None
            reply = json.dumps(["error", number, describe(error, Place.of(request)), cause])
        self._say(reply)
        # What a call leaves behind ends with it; nobody could count its time.
        for task in self._tasks.pop(number) - {asyncio.current_task()}:
            task.cancel()

    async def _run(self, number: int, request: dict[str, Any]) -> Any:
        key = (Place.of(request), request["function"])
        if key not in self._functions:
            self._functions[key] = load(*key)
        kept: list[Any] = []
        names = request["callbacks"]
        args = [self._argument(number, names, value, kept) for value in request["args"]]
        kwargs = {
            name: self._argument(number, names, value, kept) for name, value in request["kwargs"].items()
        }
        value = self._functions[key](*args, **kwargs)
        if inspect.isawaitable(value):
            value = await value
        return kept[0] if value is None and kept else value

    def _argument(self, number: int, names: list[str], value: dict[str, Any], kept: list[Any]) -> Any:
        if "__aigo_remote__" in value:
            return _remote(self, number, names, value["__aigo_remote__"])
        if "__aigo_inout__" in value:
            kept.append(decode(value["__aigo_inout__"]))
            return kept[-1]
        return decode(value)

    async def call_back(self, call: int, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call a function of the runner and wait for its result."""
        if asyncio.get_running_loop() is not self._loop:
            raise RuntimeError(
                f"{name} must be awaited on the event loop that runs the snippet, not on another"
            )
        number = next(self._numbers)
        message = json.dumps(["call", call, number, name, args, kwargs], default=plain)
        future = self._waiting[number] = self._loop.create_future()
        self._say(message)
        try:
            kind, result = await future
        except asyncio.CancelledError:
            self._say(json.dumps(["drop", call, number]))
            raise
        finally:
            del self._waiting[number]
        if kind == "fail":
            raise CallbackError(result, number)
        return decode(result)


class _Steps:
    """Awaits a coroutine and announces each of its steps."""

    def __init__(self, worker: _Worker, call: int, work: Coroutine[Any, Any, Any]):
        self._worker = worker
        self._call = call
        self._work = work

    def __await__(self) -> Generator[Any, Any, Any]:
        error: BaseException | None = None
        while True:
            self._worker.enter(self._call)
            try:
                waits_for = self._work.send(None) if error is None else self._work.throw(error)
            except StopIteration as end:
                return end.value
            finally:
                self._worker.leave()
            error = None
            try:
                yield waits_for
            except GeneratorExit:
                self._work.close()
                raise
            except BaseException as raised:  # noqa: BLE001  # cancellation is the coroutine's to handle
                error = raised


def _remote(worker: _Worker, call: int, names: list[str], attributes: dict[str, Any]) -> Any:
    """An object with the runner's functions as async methods."""

    class Remote:
        """What the runner lends to the snippet."""

    def method(name: str) -> Any:
        async def remote(*args: Any, **kwargs: Any) -> Any:
            return await worker.call_back(call, name, args, kwargs)

        remote.__name__ = name
        return remote

    found = Remote()
    found.__dict__.update(attributes)
    found.__dict__.update({name: method(name) for name in names})
    return found


if __name__ == "__main__":
    main()
