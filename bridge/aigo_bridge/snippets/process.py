"""The worker process itself: how it is started, how it is ended, what its end means.

It has none of the runner's environment variables (no keys), inherits no file descriptor but its pipes, works in an empty temporary
folder, and leads a session of its own, so that whatever a snippet starts can be killed with it. It holds one end of a pipe into
which nobody writes: the kernel kills the worker's group when the runner, and with it the other end, is gone.
"""

from __future__ import annotations

import math
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from pathlib import Path

from aigo_bridge.snippets.confining import keep_environment_private

KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")
"""Variables that a worker gets; everything else, keys above all, stays with the runner."""


MOST_PROCESSES = 128
"""Processes of a worker's session; with more it is taken for a fork bomb. The limit of the system does not bind root."""


class WorkerProcess:
    """A running worker process, its folder and its two pipes.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, module: str, memory_bytes: int):
        self.folder = tempfile.mkdtemp(prefix="aigo-snippet-")
        environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ}
        environment |= {"HOME": self.folder, "TMPDIR": self.folder, "PYTHONHASHSEED": "0"}
        # -I: neither the current folder nor PYTHON* variables nor the user's site-packages are looked at.
        lifeline, self._lifeline = os.pipe()
        arguments = ("-I", "-X", "utf8", "-m", module, str(memory_bytes), str(lifeline))
        keep_environment_private()
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
            shutil.rmtree(self.folder, ignore_errors=True)
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
        """Whether its session has more than `MOST_PROCESSES` processes (always false where there is no /proc)."""
        return _session_size(self.process.pid) > MOST_PROCESSES

    def cause_of_end(self) -> str:
        """Why a worker that gave up its pipe did so, for messages."""
        try:
            code = self.process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "it closed its pipe"
        if code >= 0:
            return f"exit code {code}"
        name = signal.strsignal(-code) if -code not in set(signal.Signals) else signal.Signals(-code).name
        hint = ", perhaps out of memory" if name == "SIGKILL" else ""
        return f"killed by {name}{hint}"


def ready(descriptor: int, event: int, seconds: float) -> bool:
    """Whether a descriptor can be read or written within a time (`poll`, as `select` ends at descriptor 1023)."""
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
    shutil.rmtree(folder, ignore_errors=True)
