"""The process of the tests: runs them against mirrors of what the answer's code defines, and gives the
verdict.

What comes from the other process is data, and whatever is wrong with it is the code's failure.
"""

from __future__ import annotations

import builtins
import ctypes
import inspect
import json
import linecache
import os
import re
import socket
import subprocess
import sys
import tempfile
import traceback
import types
from typing import Any, NoReturn

from aigo_bridge.sandbox.judging.dialogue import DEEPEST, ClosedError, End, Link, TooLargeError
from aigo_bridge.sandbox.judging.mirror import SPECIAL
from aigo_bridge.sandbox.judging.trust import JudgeMirrors, Scope

DUMPABLE = 4
MOST_PRINTED = 1 << 20
OPEN_MODULES = ("__main__", "unittest.mock", "_io", "io", "re", "random")
"""Modules of the classes whose objects, lent by a test, show their attributes to the code. `__main__`: the
tests' own classes."""

GAVE_UP = {
    "output": "wrote more than it may",
    "large": "gave the tests more data at once than it may",
    "deep": "gave the tests a value that is nested too deeply",
}


class OverError(BaseException):
    """The verdict is certain, whatever the rest of the tests would do."""


class JudgeEnd(End):
    """The tests' end of the talk."""

    def __init__(self, link: Link):
        super().__init__(link, JudgeMirrors())
        self.values.end = self
        self.verdict: tuple[str, str] | None = None
        self.kept: list[Any] = []
        self._printed = 0

    def over(self, verdict: str, reason: str) -> OverError:
        """The verdict is certain; the first one holds."""
        self.verdict = self.verdict or (verdict, reason)
        return OverError(reason)

    def ask(self, operation: str, *operands: Any) -> Any:
        if self.verdict is not None:
            raise OverError
        try:
            return super().ask(operation, *operands)
        except (StopIteration, StopAsyncIteration):
            if operation == "special" and operands[0] in ("__next__", "__anext__"):
                raise
            # `all(map(…))` would take it for the end of its items, and be true.
            raise self.over(
                "unjudged", "the code raises StopIteration, which ends loops of the tests"
            ) from None
        except ClosedError:
            raise self.over("failed", "ended before all tests had run") from None
        except TooLargeError:
            raise self.over("unjudged", "a test hands over more data at once than can be sent") from None

    def hear(self) -> tuple[str, Any]:
        try:
            return super().hear()
        except ClosedError:
            raise
        except TooLargeError:
            raise self.over("failed", GAVE_UP["large"]) from None
        except Exception as error:  # whatever reading a broken frame raises
            problem = f"wrote something else than its answers to the tests ({type(error).__name__})"
            raise self.over("failed", problem) from error

    def hear_of(self, kind: str, text: str) -> None:
        if kind == "gave up":
            raise self.over("failed", GAVE_UP[text])
        self._printed += len(text)
        if self._printed > MOST_PRINTED:
            raise self.over("failed", GAVE_UP["output"])
        sys.stdout.write(text)

    def releases(self) -> list[int]:
        return self.values.released()

    # What the code can ask for

    def perform(self, operation: str, operands: tuple[Any, ...]) -> Any:
        act = _ACTS.get(operation)
        if act is None:
            raise self.over("failed", "asked for something that the tests do not do")
        return act(self, *operands)

    def lent(self, value: Any) -> Any:
        """An object that the tests have handed to the code."""
        if not self.values.has_lent(value):
            raise self.over("failed", "asked for an object that it was not given")
        return value

    def call(self, function: Any, args: Any, kwargs: Any) -> Any:
        """Call a function that the code was given."""
        return self.lent(function)(*args, **kwargs)

    def special(self, name: str, target: Any, operands: Any) -> Any:
        """A special method of an object that the code was given."""
        self.lent(target)
        if name not in SPECIAL:
            raise self.over("failed", "asked for something that the tests do not do")
        method = getattr(type(target), name, None)
        return NotImplemented if method is None else method(target, *operands)

    def getattr(self, target: Any, name: str) -> Any:
        """An attribute of an object of the tests."""
        return getattr(self._open(target, name), name)

    def setattr(self, target: Any, name: str, value: Any) -> None:
        """Set an attribute of an object of the tests."""
        setattr(self._changed(target, name), name, value)

    def delattr(self, target: Any, name: str) -> None:
        """Delete an attribute of an object of the tests."""
        delattr(self._changed(target, name), name)

    def send(self, generator: Any, value: Any) -> list[Any]:
        """The next item of a generator of the tests."""
        if type(self.lent(generator)) is not types.GeneratorType:
            raise self.over("failed", "asked for something that the tests do not do")
        try:
            return [True, generator.send(value)]
        except StopIteration as end:
            return [False, end.value]

    def input(self, prompt: str) -> str:
        """What the tests let `input` give."""
        return builtins.input(prompt)

    def read(self, method: str, size: int) -> str:
        """What the tests have put into standard input."""
        text: str = sys.stdin.readline(size) if method == "readline" else sys.stdin.read(size)
        return text

    def _open(self, target: Any, name: Any) -> Any:
        kind = target if isinstance(self.lent(target), type) else type(target)
        if kind.__module__ not in OPEN_MODULES or type(name) is not str:
            raise self.over(
                "unjudged", f"the code uses the attribute {name!r:.80} of the tests' {kind.__name__}"
            )
        if name.startswith("_"):
            raise AttributeError(f"{kind.__name__!r} object has no attribute {name!r}")
        if kind.__module__ == "unittest.mock" and (issubclass(kind, list | tuple) or is_of_mocks(kind, name)):
            self.refuse_change(kind, name)
        return target

    def _changed(self, target: Any, name: Any) -> Any:
        """An object of the tests that the code changes: what it holds, not what it does, which may judge."""
        opened = self._open(target, name)
        kind = target if isinstance(target, type) else type(target)
        attribute = inspect.getattr_static(kind, name, None)
        if callable(attribute) or isinstance(attribute, staticmethod | classmethod):
            self.refuse_change(kind, name)
        return opened

    def refuse_change(self, kind: type, name: str) -> NoReturn:
        """End it: the code lays hands on what tests judge by."""
        raise self.over(
            "unjudged",
            f"the code uses or replaces {name!r:.80} of the tests' {kind.__name__}, by which tests judge",
        )


def is_of_mocks(kind: type, name: str) -> bool:
    """Whether a name is one of every mock's own: what was called, and what says whether that was right."""
    return name.startswith(("assert", "method_calls")) or inspect.getattr_static(kind, name, None) is not None


_ACTS: dict[str, Any] = {
    each.__name__: each
    for each in (
        JudgeEnd.call,
        JudgeEnd.special,
        JudgeEnd.getattr,
        JudgeEnd.setattr,
        JudgeEnd.delattr,
        JudgeEnd.send,
        JudgeEnd.input,
        JudgeEnd.read,
    )
}


def run(code: str, tests: list[str], end: JudgeEnd) -> tuple[str, str]:
    """The verdict and its reason."""
    compiled = []
    for number, test in enumerate(tests, 1):
        file = f"test_{number}.py"
        linecache.cache[file] = (len(test), None, [f"{line}\n" for line in test.split("\n")], file)
        try:
            compiled.append(compile(test, file, "exec", dont_inherit=True))
        except (SyntaxError, ValueError) as error:
            return "unjudged", f"test {number} is not Python: {error}"
    try:
        end.ask("load", code)
        scope = Scope(end, compiled)
        for test_code in compiled:
            exec(test_code, scope)  # noqa: S102  # made for it
    except BaseException as error:  # noqa: BLE001  # whatever a test lets pass is its failure
        if end.verdict is None and isinstance(error, SystemExit):
            return "failed", "ended before all tests had run"
        return end.verdict or ("failed", _described(error))
    return end.verdict or ("passed", "")


def main(settings: dict[str, Any], start: Any) -> None:
    """Judge, and write the verdict to standard output as it was when this process began."""
    out = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1):
        os.dup2(nowhere, descriptor)
    # Nobody looks into this process, not even its own user's.
    ctypes.CDLL(None).prctl(DUMPABLE, 0, 0, 0, 0)
    sys.setrecursionlimit(DEEPEST)
    sys.argv = ["tests.py"]
    try:
        end = start()
        verdict, reason = run(settings["code"], settings["tests"], end)
    except OSError as error:
        verdict, reason = "broken", f"the process of the answer's code cannot be started: {error}"
    content = json.dumps({"token": settings["token"], "verdict": verdict, "reason": reason[-4000:]})
    os.write(out, b"\n" + content.encode() + b"\n")
    os._exit(0)


def greet(descriptor: int, modules: Any) -> JudgeEnd:
    """Send the other process its program, and see that it is there.

    Raises:
        OSError: it is not.
    """
    link = Link(descriptor)
    end = JudgeEnd(link)
    try:
        link.send([modules])
        End.ask(end, "hello")
    except ClosedError as error:
        raise OSError("it ended before it began") from error
    return end


def _described(error: BaseException) -> str:
    """A traceback of the tests, without what stands between them and the code."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if re.fullmatch(r"test_\d+\.py", frame.filename)
    ]
    try:
        message = "".join(traceback.format_exception_only(type(error), error)).strip()
    except BaseException as another:  # noqa: BLE001  # what it says may be for the answer to say
        message = f"{type(error).__name__} (its message cannot be had: {type(another).__name__})"
    place = getattr(error, "aigo_place", "")
    return "".join(traceback.format_list(frames)) + message + (f"\n(generated.py, {place})" if place else "")


OTHER_USER = 64_017
"""Nobody's number. Root's judge gives it to the other process, which can then neither signal nor read it."""


def start(settings: dict[str, Any]) -> JudgeEnd:
    """Raises:
    OSError: there is no other process.
    """
    if settings["peer"] is not None:
        return greet(settings["peer"], settings["answer"])
    folder = tempfile.mkdtemp()
    os.chmod(folder, 0o777)  # noqa: PTH101, S103  # both users' files; nobody else is in the sandbox
    os.chdir(folder)
    if os.geteuid() == 0:
        try:
            return _spawn(settings, OTHER_USER)
        except OSError:
            pass  # it may not change its user, or another one cannot read Python
    return _spawn(settings, None)


def _spawn(settings: dict[str, Any], user: int | None) -> JudgeEnd:
    ours, theirs = socket.socketpair()
    groups: list[int] = []
    options: dict[str, Any] = {} if user is None else {"user": user, "group": user, "extra_groups": groups}
    with theirs:
        subprocess.Popen(  # made for it
            [sys.executable, "-I", "-c", settings["boot"], str(theirs.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={"PATH": os.environ.get("PATH", ""), "LANG": "C.UTF-8"},
            start_new_session=True,
            **options,
        )
    return greet(ours.detach(), settings["answer"])


def begin(settings: dict[str, Any]) -> None:
    """Judge what is given."""
    main(settings, lambda: start(settings))
