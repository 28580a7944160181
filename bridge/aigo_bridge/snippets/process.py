"""The worker process itself: how it is started, how it is ended, what its end means.

It has none of the runner's environment variables (no keys), inherits no file descriptor but its pipes, works in an empty temporary
folder, and leads a session of its own, so that whatever a snippet starts can be killed with it.
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

KEPT_ENVIRONMENT = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")
"""Variables that a worker gets; everything else, keys above all, stays with the runner."""


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
        arguments = ("-I", "-X", "utf8", "-m", module, str(memory_bytes))
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
            )
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self.end = weakref.finalize(self, _end, self.process, self.folder)
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


def _end(process: subprocess.Popen[bytes], folder: str) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except BrokenPipeError:
                continue
    shutil.rmtree(folder, ignore_errors=True)
