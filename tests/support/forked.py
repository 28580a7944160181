"""Installed commands as processes of their own, forked from one that has loaded their engine: `start` is `subprocess.Popen` without the wait.

Such a process is as real as one that a shell starts: its own pid, session, signals, exit code, files, folder and environment. Only its start is not:
what is read while modules are loaded was read before. Tests of a start keep `subprocess`.
"""

from __future__ import annotations

import array
import fcntl
import json
import os
import re
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from tests.support import fork_server
from tests.support.commands import ENVIRONMENT

from aigo_lighteval.versions import prepare_imports

BIN = Path(sys.executable).parent
_COMMANDS = (
    "aigo_bridge.cli.verbs.run",
    "aigo_bridge.cli.runs",
    "aigo_stats.comparison.estimates",
    "aigo_stats.terminal.intervals",
    "aigo_trust.provenance.record",
    "anyio._backends._asyncio",
)
ENGINES = {
    "inspect": (
        *_COMMANDS,
        "inspect_ai._cli.main",
        "inspect_ai._control.config_record",
        "inspect_ai._control.scoring",
        "inspect_ai.agent._acp.server",
        "inspect_ai.agent._acp.transport_live",
        "inspect_ai.hooks._startup",
        "inspect_ai.log._recorders.chunked",
        "inspect_ai.model._openai_responses",
        "inspect_ai.model._providers.none",
        "inspect_ai.solver._transcript",
        "aigo_inspect.mapping.samples",
        "IPython",
        "rich.markdown",
    ),
    "lighteval": (*_COMMANDS, "lighteval.pipeline", "aigo_lighteval.running.run"),
}
"""What a server has loaded before its first command. One that has loaded torch is slow to fork: it serves commands that need it, and no others."""

LATE = re.compile(
    r"XDG_(DATA|CACHE)_HOME|AWS_\w+|\w+_(KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL|BASE_URL)|DATABASE_URL|AIGO_\w+|INSPECT_DISPLAY|PYTEST_\w+|TMPDIR|RAY_\w+|KMP_\w+|TORCHINDUCTOR_\w+|_RJEM_\w+"
)
"""Variables that are read when they are needed, or that Ray, torch and polars set themselves; any other can have been read when a module was loaded."""


class Server:
    """Forking process whose commands share an environment, except variables that are read late."""

    def __init__(self, engine: str, environment: Mapping[str, str], address: str = "") -> None:
        """Connect to the process that serves at an abstract address, or start one there; without an address, start one for this object."""
        self._early = _early(environment)
        self.commands = 0.0
        """CPU seconds of commands that have ended."""
        self._process: subprocess.Popen[bytes] | None = None
        self._connection = socket.socket(socket.AF_UNIX)
        with Path(fork_server.__file__).open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not (address and self._connection.connect_ex(address) == 0):
                self._start(engine, {**environment, **self._early}, address)

    def _start(self, engine: str, environment: Mapping[str, str], address: str) -> None:
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen()
            self._process = subprocess.Popen(
                [sys.executable, fork_server.__file__, *ENGINES[engine]],
                stdin=listener.fileno(),
                env=environment,
            )
            self._connection.connect(listener.getsockname())

    def serves(self, environment: Mapping[str, str]) -> bool:
        """Whether a command in an environment would find nothing loaded that it would have loaded otherwise."""
        return _early(environment) == self._early

    def request(self, streams: Sequence[int], **words: Any) -> None:
        """Have a command forked."""
        text = json.dumps(words).encode()
        head = str(len(text)).zfill(fork_server.LENGTH).encode()
        files = array.array("i", streams)
        self._connection.sendmsg([head], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, files)])
        self._connection.sendall(text)

    def seconds(self) -> float:
        """CPU seconds of the process, if these tests started it, and of their commands that have ended: no parent of theirs hears of them."""
        own = 0.0
        if self._process is not None:
            fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
            own = sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")
        return own + self.commands

    def disconnect(self) -> None:
        """Let the process end when no connection is left."""
        self._connection.close()

    def wait(self) -> None:
        """Wait for the end of the process if these tests started it."""
        if self._process is not None:
            self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.disconnect()
        self.wait()


class Forked(subprocess.Popen[str]):
    """Command forked by a server, which reports its exit code because the command is not a child of this process."""

    def __init__(self, words: Sequence[str], server: Server, **options: Any) -> None:
        self._server = server
        super().__init__(words, **options)

    # What of `Popen` starts a process and waits for it; all else holds for any process.

    def _execute_child(self, words: Sequence[str], *options: Any) -> None:
        folder, environment, pipes, session = options[4], options[5], options[9:15], options[20]
        news, written = os.pipe()
        self._news = os.fdopen(news, "rb", buffering=0)
        streams = [number if end == -1 else end for number, end in enumerate((pipes[0], pipes[3], pipes[5]))]
        self._server.request(
            [*streams, written],
            words=list(words),
            folder=str(folder or Path.cwd()),
            environment=environment,
            session=bool(session),
        )
        os.close(written)
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]  # has no public name
        self.pid = int(self._words()[0])
        self._child_created = True

    def _internal_poll(self, *_: object, **__: object) -> int | None:
        return self._ended(0)

    def _wait(self, timeout: float | None) -> int:
        if self._ended(timeout) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self.args, timeout)
        assert self.returncode is not None
        return self.returncode

    def _ended(self, patience: float | None) -> int | None:
        if self.returncode is None and select.select([self._news], [], [], patience)[0]:
            code, seconds = self._words()
            self.returncode = int(code)
            self._server.commands += float(seconds)
            self._news.close()
        return self.returncode

    def _words(self) -> list[bytes]:
        line = self._news.readline()
        assert line, "the server of commands has ended"
        return line.split()


RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
"""Name of this run of the tests, in each of its processes."""

_SERVERS: dict[str, Server] = {}


def start(
    words: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    server: Server | None = None,
    **options: Any,
) -> subprocess.Popen[str]:
    """A process of an installed command, `aigo-bridge` or `inspect`, or of a program after `-c`, with `Popen`'s options.

    It is started as by a shell where its environment has a variable that is read while modules are loaded, where coverage is measured, and for
    `inspect list`, which looks in the folder in which Inspect was loaded.
    """
    name, *arguments = map(str, words)
    line = [name if name == "-c" else str(BIN / name), *arguments]
    environment = dict(os.environ if env is None else env)
    known = name in ("aigo-bridge", "-c") or (name == "inspect" and arguments[:1] != ["list"])
    if known and "COVERAGE_PROCESS_CONFIG" not in environment:
        server = server or _server(_engine(arguments))
        if server.serves(environment):
            return Forked(line, server, env=environment, text=True, **options)
    return subprocess.Popen(
        [sys.executable, *line] if name == "-c" else line, env=environment, text=True, **options
    )


def finished(
    words: Sequence[object], *, timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """Return a finished command with its output."""
    with start(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options) as process:
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, err)


def seconds() -> float:
    """CPU seconds of the servers of these tests and of their commands."""
    return sum(server.seconds() for server in _SERVERS.values())


def stop() -> None:
    """Disconnect from the servers of these tests and wait for those started here."""
    for server in _SERVERS.values():
        server.disconnect()
    for server in _SERVERS.values():
        server.wait()


def _engine(arguments: Sequence[str]) -> str:
    """Return the engine whose server runs a command; `parity` uses both."""
    return "lighteval" if arguments[:1] == ["parity"] or "lighteval" in " ".join(arguments) else "inspect"


def _server(engine: str) -> Server:
    if engine not in _SERVERS:
        _SERVERS[engine] = Server(engine, ENVIRONMENT, f"\0aigo-tests-{RUN}-{engine}")
    return _SERVERS[engine]


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    environment = dict(environment)
    prepare_imports(environment.setdefault)
    return {name: value for name, value in environment.items() if not LATE.fullmatch(name)}
