"""Worker process: start, end, and explanation of its end.

The process has none of the runner's environment variables (no keys), and inherits only its pipes. It works in
an empty temporary folder and sandboxes itself before its first call. It leads its own session, so that
processes of a snippet can be killed with it. It also holds one end of an unused pipe: when the runner ends
and closes the other end, the kernel kills the worker's group.

A test process determines the available sandbox level once. The levels, strictest first, are `jailed`,
`worker`, `in-process` (`aigo_bridge.sandbox.levels` describes their guarantees). By default, the strictest
available level is used, and never a level below `worker`. If not even that is available, no snippet runs.
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
    """Missing sandbox: snippets cannot be isolated as required, so none runs."""

    usual_code = Code.UNCONFINED_SNIPPETS


@dataclass(frozen=True)
class Confinement:
    """Sandbox level of snippets."""

    level: Level
    reason: str | None = None
    """Reason why the level is not the strictest; `None` if it is, or if the user chose it."""


@dataclass
class _Choice:
    """Requested level of this process and its outcome; guarded by `lock`."""

    lock: threading.Lock
    asked: Level | None = None
    tell: Callable[[str], None] | None = None
    found: Confinement | SnippetsRefusedError | None = None


_CHOICE = _Choice(threading.Lock())


def choose(level: str | None = None, tell: Callable[[str], None] | None = None) -> None:
    """Set the level for all snippets from now on.

    Args:
        level: one of `LEVELS`, which is then required; `None`: the strictest available level.
        tell: function that gets a one-line note if the level is not the strictest.

    Raises:
        UsageError: the level is unknown.
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
    """Return the requested level; `None`: the strictest available level."""
    return _CHOICE.asked


def reached() -> Confinement:
    """Return the level of snippets; the first call tests it.

    Raises:
        SnippetsRefusedError: the requested level, or any sandbox, is not available.
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
    """Return why a level is not available; `None` if a test process reached it."""
    if os.name != "posix":
        return f"it needs a Unix system (on Windows: its subsystem for Linux), found {sys.platform}"
    if sys.platform != "linux":
        return f"it needs Linux, found {sys.platform}" if level == "jailed" else None
    keep_memory_private()
    folder = make_folder("aigo-snippet-")
    root = str(Path(__file__).parents[2])
    try:
        done = subprocess.run(  # This runs only aigo-bridge's own code.
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
"""Variables that a worker gets; all others, especially keys, stay with the runner."""


MOST_PROCESSES = 128
"""Maximum processes in a worker's session; more count as a fork bomb. System limits do not apply to root."""


_LONGEST_REFUSAL = 1000
"""Maximum bytes of a worker's message about a missing sandbox."""


class WorkerProcess:
    """Running worker process with its folder and two pipes.

    Raises:
        OSError: it cannot be started.
        SnippetsRefusedError: it could not be sandboxed as required.
    """

    def __init__(self, memory_bytes: int, *, network: bool = False):
        level = reached().level
        self.folder = make_folder("aigo-snippet-")
        environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
        environment |= {"HOME": self.folder, "TMPDIR": self.folder, "PYTHONHASHSEED": "0"}
        # -I: ignore the current folder, PYTHON* variables and the user's site-packages.
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
        """Function that kills the worker's session and removes its folder, also on collection."""

    @property
    def requests(self) -> int:
        """Descriptor from which the worker reads."""
        assert self.process.stdin is not None
        return self.process.stdin.fileno()

    @property
    def answers(self) -> int:
        """Descriptor to which the worker writes."""
        assert self.process.stdout is not None
        return self.process.stdout.fileno()

    def kill(self) -> None:
        """Kill the worker's session without waiting; call `end` afterwards."""
        _kill(self.process)

    def multiplies(self) -> bool:
        """Return whether the session has more than `MOST_PROCESSES` processes (false without /proc)."""
        return _session_size(self.process.pid) > MOST_PROCESSES

    def cause_of_end(self) -> str:
        """Return why a worker closed its pipe, for messages."""
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
    """Return a worker's message about a missing sandbox. A snippet can imitate the exit code, and put a link
    or pipe there.
    """
    held = os.open(f"{folder}/{REFUSAL}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(held).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL), REFUSAL)
        return os.read(held, _LONGEST_REFUSAL).decode("utf-8", "replace")
    finally:
        os.close(held)


def ready(descriptor: int, event: int, seconds: float) -> bool:
    """Return whether a descriptor becomes readable or writable in time (with `poll`, because `select` only
    supports descriptors up to 1023).
    """
    poll = select.poll()
    poll.register(descriptor, event)
    return bool(poll.poll(math.ceil(seconds * 1000)))


def _kill(process: subprocess.Popen[bytes]) -> None:
    if process.returncode is not None:
        return  # The process has been waited for, and the system may have reused its ID.
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
        # Also after the leader has ended, because its children are in its group.
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
