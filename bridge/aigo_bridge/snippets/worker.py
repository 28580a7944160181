"""The side of the snippet: a process that reads calls as JSON lines and answers with JSON lines.

Started by `aigo_bridge.snippets.host` and by nothing else. Snippets are compiled once and keep their module globals between
calls, as published snippets expect.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import io
import json
import linecache
import os
import resource
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from typing import Any, TextIO

from aigo_bridge.snippets.aliases import install_aliases
from aigo_bridge.snippets.confining import die_with, give_up_privileges
from aigo_bridge.snippets.encoding import decode, plain

MAX_MESSAGE = 10_000
"""Characters of an exception's message that are sent back."""

MAX_STDOUT = 64 * 1024
"""Characters of printed output that are sent back."""


def main() -> None:
    """Serve calls until standard input ends."""
    requests, answers = settle(int(sys.argv[1]), int(sys.argv[2]))
    serve(
        os.fdopen(requests, "r", encoding="utf-8", newline="\n"),
        os.fdopen(answers, "w", encoding="utf-8", newline="\n"),
    )


def settle(memory_bytes: int, lifeline: int) -> tuple[int, int]:
    """Make this process fit for snippets; returns the descriptors of requests and answers."""
    die_with(lifeline)
    give_up_privileges()
    limit_resources(memory_bytes)
    # Whatever a snippet or a C library prints to descriptor 1 must not end up among the answers.
    answers = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    requests = os.dup(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    threading.Thread(target=_exit_with_parent, args=(os.getppid(),), daemon=True).start()
    install_aliases()
    return requests, answers


def limit_resources(memory_bytes: int) -> None:
    """Cap the address space and forbid core files."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(ValueError, OSError):  # a container may allow less than we ask for
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))


def _exit_with_parent(parent: int) -> None:
    """A runner that was killed cannot end an endless loop; its worker notices by itself."""
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(3)


def serve(requests: TextIO, answers: TextIO) -> None:
    """Answer every request line with one reply line."""
    functions: dict[tuple[Place, str], Any] = {}
    process = os.getpid()
    with asyncio.Runner() as runner:
        for line in requests:
            request = json.loads(line)
            reply = _answer(request, functions, runner)
            if os.getpid() != process:
                # A copy that the snippet forked came back here; the answer is the original's to give.
                os._exit(0)
            answers.write(f'{{"id": {request["id"]:d}, {reply[1:]}\n')
            answers.flush()


def _answer(request: dict[str, Any], functions: dict[tuple[Place, str], Any], runner: asyncio.Runner) -> str:
    place = Place.of(request)
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            key = (place, request["function"])
            if key not in functions:
                functions[key] = load(*key)
            args = [decode(value) for value in request["args"]]
            kwargs = {name: decode(value) for name, value in request["kwargs"].items()}
            value = functions[key](*args, **kwargs)
            if inspect.isawaitable(value):
                value = runner.run(_await(value))
        return json.dumps({"value": value, "stdout": printed.getvalue()[:MAX_STDOUT]}, default=plain)
    except MemoryError:
        return json.dumps({"error": "ran out of memory"})
    except RecursionError:
        return json.dumps({"error": "recursed too deeply, or returned something nested too deeply"})
    # The one boundary of this process: whatever an author's code raises, SystemExit included, is its answer.
    except BaseException as error:  # noqa: BLE001
        return json.dumps({"error": describe(error, place)})


async def _await(value: Any) -> Any:
    return await value


@dataclass(frozen=True)
class Place:
    """A snippet's code, and where it stands."""

    source: str
    file: str
    """Its file, or the label of a snippet whose file is not known."""
    first_line: int
    known: bool
    """Whether `file` is a file."""

    @classmethod
    def of(cls, request: dict[str, Any]) -> Place:
        """As a request tells it."""
        origin = request.get("origin")
        first_line = request.get("first_line", 1)
        return cls(request["source"], origin or request["label"], first_line, origin is not None)

    def line(self, number: int | None) -> str:
        """A line of its code for a message: `line 3`, or `scorer.py, line 3`."""
        return f"{self.file}, line {number}" if self.known else f"line {number}"

    def code(self, number: int | None) -> str:
        """Text of that line."""
        lines = self.source.split("\n")
        index = (number or 0) - self.first_line
        return lines[index].strip() if 0 <= index < len(lines) else ""


def load(place: Place, function: str) -> Any:
    """Compile a snippet and return the function it must define."""
    # Blank lines in front make the lines of the code those of its file.
    source = "\n" * (place.first_line - 1) + place.source
    _show(place)
    scope: dict[str, Any] = {
        "__name__": "aigo_snippet",
        "__file__": place.file,
        "__builtins__": __builtins__,
    }
    exec(compile(source, place.file, "exec", dont_inherit=True), scope)  # noqa: S102  # made for it
    found = scope.get(function)
    if not callable(found):
        defined = sorted(name for name, value in scope.items() if inspect.isfunction(value))
        raise NameError(  # noqa: TRY004  # the name is missing, or it is not the function
            f"must define a function `{function}`; it defines {', '.join(defined) or 'none'}"
        )
    return found


def _show(place: Place) -> None:
    """Let tracebacks and debuggers show the code; that of other snippets of the same file stays."""
    known = linecache.cache.get(place.file) if place.known else None
    lines = list(known[2]) if known is not None and len(known) == 4 else []
    code = [f"{line}\n" for line in place.source.split("\n")]
    start = place.first_line - 1
    lines += ["\n"] * (start - len(lines))
    lines[start : start + len(code)] = code
    linecache.cache[place.file] = (sum(map(len, lines)), None, lines, place.file)


def describe(error: BaseException, place: Place) -> str:
    """`ValueError: message (line 3, in compute_scores)`, with the innermost line of the snippet itself."""
    try:
        message = str(error)[:MAX_MESSAGE]
    # An author's exception may have a `__str__` that fails itself.
    except Exception as another:  # noqa: BLE001
        message = f"its message cannot be had ({type(another).__name__})"
    text = f"{type(error).__name__}: {message}" if message else type(error).__name__
    if isinstance(error, SyntaxError) and error.filename == place.file:
        return f"SyntaxError: {error.msg} ({place.line(error.lineno)})"
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == place.file]
    if not frames:
        return text
    frame = frames[-1]
    line = place.code(frame.lineno)
    code = f": `{line}`" if line else ""
    return f"{text} ({place.line(frame.lineno)}, in {frame.name}{code})"


if __name__ == "__main__":
    main()
