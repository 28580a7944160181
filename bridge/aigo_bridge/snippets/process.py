"""The worker process itself: how it is started, how it is ended, what its end means.

It has none of the runner's environment variables (no keys), inherits no file descriptor but its pipes, works
in an empty temporary folder, confines itself before it takes a call, and leads a session of its own, so that
whatever a snippet starts can be killed with it. It holds one end of a pipe into which nobody writes: the
kernel kills the worker's group when the runner, and with it the other end, is gone.

How far it is confined is found out once, by a process that tries it. The levels, from the strictest
(`aigo_bridge.sandbox.levels` says what each promises): `jailed`, `worker`, `in-process`. Without a wish the
strictest that can be had is taken, and none below `worker`: where not even that holds, no snippet runs.
"""

from __future__ import annotations

import errno
import math
import os
import select
import signal
import stat
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from aigo_bridge.codes import Code
from aigo_bridge.errors import SnippetError, UsageError
from aigo_bridge.process.temporary import make_folder, remove_folder
from aigo_bridge.sandbox.levels import REFUSAL, REFUSED, keep_memory_private

Level = Literal["jailed", "worker", "in-process"]
LEVELS: tuple[Level, ...] = ("jailed", "worker", "in-process")

REMEDY = (
    "snippets need Linux 5.13 or later with Landlock, or user namespaces "
    "(docs/reference/snippets.md); for your own tasks, without keys in the "
    "environment, use --snippets in-process"
)

_TRY = "import sys; sys.path.insert(0, sys.argv.pop(1)); from aigo_bridge.sandbox.levels import main; main()"
_PATIENCE = 60.0


class SnippetsRefusedError(SnippetError):
    """Snippets cannot be confined here as they have to be, so none runs."""

    usual_code = Code.UNCONFINED_SNIPPETS


@dataclass(frozen=True)
class Confinement:
    """The level that snippets run at."""

    level: Level
    reason: str | None = None
    """Why it is not the strictest; `None` if it is, or was asked for."""


@dataclass
class _Choice:
    """What this process was asked for, and what came of it; guarded by `lock`."""

    lock: threading.Lock
    asked: Level | None = None
    tell: Callable[[str], None] | None = None
    found: Confinement | SnippetsRefusedError | None = None


_CHOICE = _Choice(threading.Lock())


def choose(level: str | None = None, tell: Callable[[str], None] | None = None) -> None:
    """Ask for a level, for all snippets from now on.

    Args:
        level: one of `LEVELS`, which is then had or refused; `None`: the strictest that can be had.
        tell: is told in one line when that is not the strictest of all.

    Raises:
        UsageError: there is no such level.
    """
    wish = next((known_level for known_level in LEVELS if known_level == level), None)
    if wish is None and level is not None:
        raise UsageError(
            f"--snippets: found {level!r}, expected {', '.join(LEVELS[:-1])} or {LEVELS[-1]}",
            code=Code.WRONG_OPTION,
        )
    with _CHOICE.lock:
        if wish != _CHOICE.asked:
            _CHOICE.found = None
        _CHOICE.asked, _CHOICE.tell = wish, tell


def chosen() -> Level | None:
    """What was asked for; `None`: the strictest that can be had."""
    return _CHOICE.asked


def reached() -> Confinement:
    """The level that snippets run at; tries it when it is asked for the first time.

    Raises:
        SnippetsRefusedError: they cannot be confined as was asked for, or not at all.
    """
    with _CHOICE.lock:
        if _CHOICE.found is None:
            try:
                _CHOICE.found = _find(_CHOICE.asked)
            except SnippetsRefusedError as error:
                _CHOICE.found = error
            else:
                if _CHOICE.found.reason is not None and _CHOICE.tell is not None:
                    _CHOICE.tell(
                        f"snippets run without a jail, in separate processes: {_CHOICE.found.reason}"
                    )
        result = _CHOICE.found
    if isinstance(result, SnippetsRefusedError):
        raise SnippetsRefusedError(str(result))
    return result


def _find(wish: Level | None) -> Confinement:
    if wish == "in-process":
        return Confinement("in-process")
    if wish == "worker":
        problem = problem_with("worker")
        if problem is not None:
            raise SnippetsRefusedError(f"--snippets worker: {problem}; {REMEDY}")
        return Confinement("worker")
    problem = problem_with("jailed")
    if problem is None:
        return Confinement("jailed")
    if wish == "jailed":
        raise SnippetsRefusedError(f"--snippets jailed: not available on this machine: {problem}")
    worse = problem_with("worker")
    if worse is not None:
        raise SnippetsRefusedError(
            f"snippets cannot be confined on this machine ({problem}): {worse}; {REMEDY}"
        )
    return Confinement("worker", problem)


def problem_with(level: Level) -> str | None:
    """Why a level cannot be had here; `None` if a process really had it."""
    if os.name != "posix":
        return f"it needs a Unix system (on Windows: its subsystem for Linux), found {sys.platform}"
    if sys.platform != "linux":
        return f"it needs Linux, found {sys.platform}" if level == "jailed" else None
    keep_memory_private()
    folder = make_folder("aigo-snippet-")
    root = str(Path(__file__).parents[2])
    try:
        done = subprocess.run(  # our own interpreter, with our own code
            [sys.executable, "-I", "-S", "-X", "utf8", "-c", _TRY, root, level, folder],
            check=False,
            env={},
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_PATIENCE,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"it did not start within {_PATIENCE:g} s"
    finally:
        remove_folder(folder)
    if done.returncode == 0:
        return None
    reason = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
    return done.stdout.strip() or reason


KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")
"""Variables that a worker gets; everything else, keys above all, stays with the runner."""


MOST_PROCESSES = 128
"""Processes of a worker's session; with more it is taken for a fork bomb. The limit of the system does not
bind root."""


_LONGEST_REFUSAL = 1000
"""Bytes of the reason why a worker was not confined."""


class WorkerProcess:
    """A running worker process, its folder and its two pipes.

    Raises:
        OSError: it cannot be started.
        SnippetsRefusedError: it could not be confined as it has to be.
    """

    def __init__(self, memory_bytes: int, *, network: bool = False):
        level = reached().level
        self.folder = make_folder("aigo-snippet-")
        environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
        environment |= {"HOME": self.folder, "TMPDIR": self.folder, "PYTHONHASHSEED": "0"}
        # -I: neither the current folder nor PYTHON* variables nor the user's site-packages are looked at.
        lifeline, self._lifeline = os.pipe()
        arguments = (
            "-I",
            "-X",
            "utf8",
            "-m",
            "aigo_bridge.snippets.worker",
            str(memory_bytes),
            str(lifeline),
            level,
            str(int(network)),
        )
        keep_memory_private()
        try:
            self.process = subprocess.Popen(
                [sys.executable, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self.folder,
                env=environment,
                close_fds=True,
                start_new_session=True,
                pass_fds=(lifeline,),
            )
        except OSError:
            os.close(self._lifeline)
            remove_folder(self.folder)
            raise
        finally:
            os.close(lifeline)
        self.end = weakref.finalize(self, _end, self.process, self.folder, self._lifeline)
        """Kills the worker's whole session and removes its folder; also when it is garbage collected."""

    @property
    def requests(self) -> int:
        """Descriptor that the worker reads from."""
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def answers(self) -> int:
        """Descriptor that the worker writes to."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def kill(self) -> None:
        """Kill the worker's session without waiting; `end` is still to be called."""
        _kill(self.process)

    def multiplies(self) -> bool:
        """Whether its session has more than `MOST_PROCESSES` processes (always false without /proc)."""
        return _session_size(self.process.pid) > MOST_PROCESSES

    def cause_of_end(self) -> str:
        """Why a worker that gave up its pipe did so, for messages."""
        try:
            code = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        if code == REFUSED:
            with suppress(OSError):
                return f"{_refusal(self.folder)}; {REMEDY}"
        if code >= 0:
            return f"exit code {code}"
        name = signal.strsignal(-code) if -code not in set(signal.Signals) else signal.Signals(-code).name
        hint = ", perhaps out of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"


def _refusal(folder: str) -> str:
    """Why a worker was not confined, as it says itself. A snippet can end with the same exit code, and put
    there a link or a pipe.

    Raises:
        OSError: it left no such file.
    """
    held = os.open(f"{folder}/{REFUSAL}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), REFUSAL)
        return os.read(held, _LONGEST_REFUSAL).decode("utf-8", "replace")
    finally:
        os.close(held)


def ready(descriptor: int, event: int, seconds: float) -> bool:
    """Whether a descriptor can be read or written in time (`poll`, as `select` ends at descriptor 1023)."""
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(math.ceil(seconds * 1000)))


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return  # it has been waited for, and its number may be somebody else's by now
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()


def _session_size(leader: int) -> int:
    size = 0
    try:
        numbers = [path.name for path in Path("/proc").iterdir() if path.name.isdigit()]
    except FileNotFoundError:
        return 0
    if len(numbers) <= MOST_PROCESSES:
        return 0
    for number in numbers:
        try:
            size += os.getsid(int(number)) == leader
        except (ProcessLookupError, PermissionError):
            continue
    return size


def _end(process: subprocess.Popen[bytes], folder: str, lifeline: int) -> None:
    try:
        # Also after its leader has ended: what it started lives in its group.
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
    os.close(lifeline)
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    remove_folder(folder)
