"""A process that has loaded an engine and forks for each command: as from a shell, without loading the engine for each anew.

A program of its own, whose standard input is a listening socket: each process of the tests connects to it (`tests.support.forked`). It ends
after the last one has disconnected. What a command has loaded it loads itself, for the next.
Nothing of this project is imported but what installed commands name, so that it holds wherever modules stand.
"""

from __future__ import annotations

import array
import atexit
import fcntl
import gc
import json
import os
import select
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from types import FrameType, ModuleType
from typing import IO, Any, NoReturn

LENGTH = 8
"""Bytes of the number before each request."""

COMPLETED = ("aigo_", "inspect_ai.")
"""Modules whose models every command uses: others define thousands that none does."""

SILENT = ("aigo_inspect.logs", "aigo_inspect.mapping")
"""Packages of the Inspect adapter that register nothing with Inspect."""

STREAMS = 4
"""Files that come with a request: standard input, output and errors, and where a command's pid and exit status are written to."""


class Children:
    """Running commands."""

    def __init__(self) -> None:
        self._running: dict[int, tuple[int, IO[str]]] = {}
        self._ended: list[IO[str]] = []

    def begin(
        self, sockets: Sequence[socket.socket], request: Mapping[str, Any], streams: Sequence[int]
    ) -> None:
        """Fork for a command without passing the sockets."""
        names = tempfile.TemporaryFile("w+")  # noqa: SIM115  # closed when the command has ended
        # Register the command before its end can be reported.
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
        child = os.fork()
        if child == 0:
            for each in sockets:
                each.close()
            for news, others in self._running.values():
                os.close(news)
                others.close()
            _forked(request, streams, names)
        for stream in streams[:3]:
            os.close(stream)
        self._running[child] = (streams[3], names)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})

    def reap(self, _number: int = 0, _frame: FrameType | None = None) -> None:
        """Report finished commands."""
        while self._running:
            child, status, usage = os.wait4(-1, os.WNOHANG)
            if child == 0:
                return
            if child in self._running:
                news, names = self._running.pop(child)
                with suppress(BrokenPipeError):  # no process waits for it any more
                    seconds = usage.ru_utime + usage.ru_stime
                    os.write(news, b"%d %.3f\n" % (os.waitstatus_to_exitcode(status), seconds))
                os.close(news)
                self._ended.append(names)

    def learn(self) -> None:
        """Load the modules that finished commands had to load."""
        ended, self._ended = self._ended, []
        for names in ended:
            with names:
                names.seek(0)
                load(names.read().split())


def serve(listener: socket.socket, modules: Sequence[str]) -> None:
    """Fork for each command that is requested, until no process of the tests is connected."""
    children = Children()
    signal.signal(signal.SIGCHLD, children.reap)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C at the tests: they end it, after their commands
    load(modules)
    connections = [listener.accept()[0]]
    while connections or not closed(listener):
        for ready in select.select([listener, *connections], [], [])[0]:
            if ready is listener:
                connections.append(listener.accept()[0])
                continue
            request, streams = received(ready)
            if request is None:
                ready.close()
                connections.remove(ready)
                continue
            children.learn()
            children.begin([listener, *connections], request, streams)


def closed(listener: socket.socket) -> bool:
    """Close the socket unless a process has just connected to it; `tests.support.forked` connects with the same lock."""
    with Path(__file__).open() as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if select.select([listener], [], [], 0)[0]:
            return False
        listener.close()
        return True


def received(connection: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """Return a request and its files."""
    size = array.array("i").itemsize
    head, ancillary, _, _ = connection.recvmsg(LENGTH, socket.CMSG_SPACE(STREAMS * size))
    if not head:
        return None, []
    streams = array.array("i")
    for _, _, data in ancillary:
        streams.frombytes(data[: len(data) - len(data) % size])
    text = b""
    while len(text) < int(head):
        text += connection.recv(int(head) - len(text))
    return json.loads(text), list(streams)


def _forked(request: Mapping[str, Any], streams: Sequence[int], names: IO[str]) -> NoReturn:
    """Run the command in the forked process."""
    code = 1
    try:
        if request["session"]:
            os.setsid()
        for number, stream in enumerate(streams[:3]):
            os.dup2(stream, number)
            os.close(stream)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGCHLD})
        os.chdir(request["folder"])
        os.environ.clear()
        os.environ.update(request["environment"])
        tempfile.tempdir = None  # current environment
        os.write(streams[3], b"%d\n" % os.getpid())
        os.close(streams[3])
        loaded = set(sys.modules)
        code = _exit_code(request["words"])
        # What an interpreter does at its end, but for taking its modules apart: that takes seconds once torch is among them.
        threading._shutdown()  # type: ignore[attr-defined]  # has no public name
        atexit._run_exitfuncs()
        names.write("\n".join(name for name in sys.modules if name not in loaded))
        names.flush()
        sys.stdout.flush()
        sys.stderr.flush()
        if code == -signal.SIGINT:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)
    except BaseException:  # noqa: BLE001  # a forked process must never return to what its parent does
        traceback.print_exc()
    os._exit(code)


def _exit_code(words: Sequence[str]) -> int:
    """Run a Python program like its `#!` line, or the text after `-c`, and return its exit code."""
    program, *arguments = sys.argv = list(words)
    main = sys.modules["__main__"] = ModuleType("__main__")
    if program == "-c":
        text, *sys.argv[1:] = arguments
        sys.path[0], place = "", "<string>"
    else:
        text = Path(program).read_text("utf-8")
        sys.path[0], place = str(Path(program).parent), program
        main.__dict__["__file__"] = program
    try:
        exec(compile(text, place, "exec"), main.__dict__)
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return int(end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except KeyboardInterrupt as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return -signal.SIGINT
    except BaseException as error:  # noqa: BLE001  # as an interpreter does with what nobody catches
        sys.excepthook(type(error), error, error.__traceback__)
        return 1
    return 0


def load(names: Sequence[str]) -> None:
    """What one command has loaded is there for the next: modules that are installed, not those of a task.

    What Inspect finds of this project by its entry point stays out: it makes itself known to Inspect when it is loaded, and whether that was
    early or late shows in what a command prints. So does Ray, which reads its environment when it is loaded.
    """
    announced = {
        entry.value.partition(".")[0]
        for entry in entry_points(group="inspect_ai")
        if entry.dist is not None and entry.dist.name == "aigo-bridge"
    }
    for name in names:
        package = name.partition(".")[0]
        with suppress(Exception):
            if (
                name not in sys.modules
                and (package not in {*announced, "ray"} or name.startswith(SILENT))
                and find_spec(package) is not None
            ):
                import_module(name)
    if names:
        complete()
        gc.collect()
        # The forked processes copy no page because of a count of references that nobody asks for.
        gc.freeze()
        # Counting 680,000 objects would take each forked run of lighteval 0.07 seconds.
        gc.get_freeze_count = lambda: 1


def complete() -> None:
    """Create what each command would otherwise create from loaded modules at its first use: validators of models, Inspect's list of models,
    the versions of packages, and the installed engines.
    """
    if "pydantic" in sys.modules:
        waiting = [sys.modules["pydantic"].BaseModel]
        while waiting:
            model = waiting.pop()
            waiting += model.__subclasses__()
            if not model.__pydantic_complete__ and model.__module__.startswith(COMPLETED):
                with suppress(Exception):  # a command hears of it, if it needs that one
                    model.model_rebuild(raise_errors=False)
    if "inspect_ai.model" in sys.modules:
        sys.modules["inspect_ai.model"].get_model_info("openai/gpt-4o")
    if "aigo_trust.provenance.environment" in sys.modules:
        sys.modules["aigo_trust.provenance.environment"].environment()
    if "aigo_bridge.plugins" in sys.modules:
        sys.modules["aigo_bridge.plugins"].entry_points("aigo_bridge.engines")
    skip_hidden_results()


def skip_hidden_results() -> None:
    """Lay out no table of results if Inspect's display is `none`, which does not print it: it takes a fifth of a short run."""
    display: Any = sys.modules.get("inspect_ai._display.rich.display")
    if display is not None and not hasattr(display, "lay_out_results"):
        display.lay_out_results = display.tasks_results
        display.tasks_results = lambda tasks: (
            "" if display.display_type() == "none" else display.lay_out_results(tasks)
        )


def main() -> None:
    """Serve at the socket that is the standard input."""
    with socket.socket(fileno=os.dup(0)) as listener:
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, 0)
        # Loaded modules may print, which must not be in the output of a command.
        os.dup2(null, 1)
        # As an interpreter has it whose program stands in the folder of the commands.
        sys.path[0] = str(Path(sys.executable).parent)
        serve(listener, sys.argv[1:])


if __name__ == "__main__":
    main()
