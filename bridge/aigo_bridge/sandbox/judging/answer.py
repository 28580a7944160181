"""The process of the answer's code: runs it as `__main__`, and does with it what the tests ask.

Whatever the code does to this process, it does to itself: no test, no verdict and nobody else's descriptor is
in it.
"""

from __future__ import annotations

import builtins
import copy
import ctypes
import io
import linecache
import operator
import os
import sys
import traceback
import types
import weakref
from typing import Any

from aigo_bridge.sandbox.judging.dialogue import DEEPEST, ClosedError, End, Link, TooLargeError
from aigo_bridge.sandbox.judging.mirrors import Mirrors
from aigo_bridge.sandbox.judging.values import SHARED

FILE = "generated.py"
MOST_PRINTED = 1 << 20
"""Bytes that the code may print."""

PRINT_AT = 1 << 16
OWN_FRAMES = 20
"""Frames of this module below those of the code."""

_NO_NEW_PRIVS = 38
_FUNCTIONS: dict[str, Any] = {
    "__iter__": iter,
    "__len__": len,
    "__getitem__": operator.getitem,
    "__contains__": operator.contains,
    "__reversed__": reversed,
}


class AnswerMirrors(Mirrors):
    """Values of this process; mirrors of what tests hand to the code."""

    def __init__(self) -> None:
        super().__init__(0)
        self._functions: weakref.WeakKeyDictionary[Any, int] = weakref.WeakKeyDictionary()

    def known(self, module: str, name: str) -> Any:
        if module in ("builtins", "operator", "math"):
            return getattr(__import__(module), name)
        return super().known(module, name)

    def new_function(self, number: int, names: list[Any]) -> Any:
        source = self._instance(self.root, number, None)

        def function(*args: Any, **kwargs: Any) -> Any:
            return self.ask("call", source, args, kwargs)

        for attribute, text in zip(("__name__", "__qualname__", "__module__", "__doc__"), names, strict=True):
            if text is not None:
                setattr(function, attribute, text)
        self._functions[function] = number
        return function

    def outward(self, value: Any, key: bool) -> Any:
        if type(value) is types.FunctionType and value in self._functions:
            return ["mine", self._functions[value]]
        return super().outward(value, key)

    def place(self, error: BaseException) -> str:
        shown = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == FILE]
        if isinstance(error, SyntaxError) and error.filename == FILE:
            return f"line {error.lineno}"
        return f"line {shown[-1].lineno}, in {shown[-1].name}: {shown[-1].line}" if shown else ""


class _Printed(io.RawIOBase):
    """Where the code's printed output goes: to the tests, before whatever is said next."""

    def __init__(self, end: AnswerEnd):
        self._end = end
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        content = bytes(data)
        self._size += len(content)
        if self._size > MOST_PRINTED:
            self._end.give_up("output")
        self._end.link.send(["print", content.decode("utf-8", "replace")])
        return len(content)


class _Input(io.TextIOBase):
    """Standard input: what the tests have put there."""

    def __init__(self, end: AnswerEnd):
        self._end = end

    def readable(self) -> bool:
        return True

    def readline(self, size: int | None = -1) -> str:  # type: ignore[override]
        return str(self._end.ask("read", "readline", -1 if size is None else size))

    def read(self, size: int | None = -1) -> str:
        return str(self._end.ask("read", "read", -1 if size is None else size))


class AnswerEnd(End):
    """Does what the tests ask."""

    def __init__(self, link: Link):
        super().__init__(link, AnswerMirrors())
        self.values.end = self
        self._scope: dict[str, Any] = {}
        self._loop: Any = None
        self.out = io.TextIOWrapper(
            io.BufferedWriter(_Printed(self), PRINT_AT), encoding="utf-8", errors="replace", newline=""
        )

    def serve(self) -> None:
        """Answer until the tests are done."""
        while True:
            kind, value = self.hear()
            if kind == "ask":
                self.answer(*value)

    def ask(self, operation: str, *operands: Any) -> Any:
        self._flush()
        return super().ask(operation, *operands)

    def answer(self, operation: str, operands: tuple[Any, ...]) -> None:
        kind, value = "value", None
        try:
            value = self.perform(operation, operands)
        except BaseException as error:  # noqa: BLE001  # whatever it is, it is for the one who asked
            kind, value = "error", error
        self._flush()
        limit = sys.getrecursionlimit()
        try:
            sys.setrecursionlimit(max(limit, DEEPEST))
            with self._lock:
                self.link.send([kind, self._news(), self.values.encode(value)])
        except TooLargeError:
            self.give_up("large")
        except RecursionError:
            self.give_up("deep")
        finally:
            sys.setrecursionlimit(limit)

    def give_up(self, reason: str) -> None:
        """End this process, and say why."""
        self.link.send(["gave up", reason])
        os._exit(1)

    def perform(self, operation: str, operands: tuple[Any, ...]) -> Any:
        return getattr(self, f"do_{operation}")(*operands)

    # What tests can ask for

    def do_hello(self) -> None:
        """This process is there."""

    def do_load(self, code: str) -> None:
        """Run the code, once, before all tests."""
        linecache.cache[FILE] = (len(code), None, [f"{line}\n" for line in code.split("\n")], FILE)
        main = types.ModuleType("__main__")
        sys.modules["__main__"] = main
        self._scope = main.__dict__
        exec(compile(code, FILE, "exec", dont_inherit=True), self._scope)  # noqa: S102  # made for it

    def do_global(self, name: str) -> list[Any]:
        """Whether there is a global name, and what it stands for."""
        return [True, self._scope[name]] if name in self._scope else [False, None]

    def do_lend(self, name: str, value: Any) -> None:
        """A class that tests define and the code may name."""
        self._scope.setdefault(name, value)

    def do_call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call something."""
        return function(*args, **kwargs)

    def do_getattr(self, target: Any, name: str) -> Any:
        """An attribute."""
        return getattr(target, name)

    def do_setattr(self, target: Any, name: str, value: Any) -> None:
        """Set an attribute."""
        setattr(target, name, value)

    def do_delattr(self, target: Any, name: str) -> None:
        """Delete an attribute."""
        delattr(target, name)

    def do_special(self, name: str, target: Any, operands: Any) -> Any:
        """A special method."""
        if name in _FUNCTIONS and isinstance(target, type):
            return _FUNCTIONS[name](target, *operands)
        return getattr(type(target), name)(target, *operands)

    def do_plain(self, target: Any) -> Any:
        """The content of an object whose class is derived from a container."""
        for base in SHARED:
            if base in type(target).__mro__ and base is not bytearray:
                if issubclass(base, dict):
                    return dict(base.items(target))
                return base(base.__iter__(target))
        return NotImplemented

    def do_send(self, generator: Any, value: Any) -> list[Any]:
        """The next item of a generator; whether there is one, and it or what was returned."""
        try:
            return [True, next(generator) if value is None else generator.send(value)]
        except StopIteration as end:
            return [False, end.value]

    def do_copy(self, target: Any, deep: bool) -> Any:
        """A copy."""
        return copy.deepcopy(target) if deep else copy.copy(target)

    def do_await(self, awaitable: Any) -> Any:
        """Run a coroutine to its end."""
        if self._loop is None:
            import asyncio  # slow to import, and rarely needed

            self._loop = asyncio.new_event_loop()
        return self._loop.run_until_complete(awaitable)

    def _flush(self) -> None:
        try:
            self.out.flush()
        except ValueError:
            return  # the code has closed it


def main(descriptor: int) -> None:
    """Serve the tests at the other end of a socket."""
    ctypes.CDLL(None).prctl(_NO_NEW_PRIVS, 1, 0, 0, 0)
    end = AnswerEnd(Link(descriptor))
    os.register_at_fork(after_in_child=lambda: os.close(descriptor))
    sys.stdout = end.out
    streams: Any = sys
    streams.stdin = streams.__stdin__ = _Input(end)
    streams.__stdout__ = end.out
    builtins.input = lambda prompt="", /: str(end.ask("input", str(prompt)))
    sys.argv = [FILE]
    sys.setrecursionlimit(sys.getrecursionlimit() + OWN_FRAMES)
    try:
        end.serve()
    except ClosedError:
        os._exit(0)
