"""Installed commands as processes of their own, forked from one that has loaded their engine: `start` is `subprocess.Popen` without the wait.

Such a process is as real as one that a shell starts: its own pid, session, signals, exit code, files, folder and environment. Only its start is not:
what is read while modules are loaded was read before. Tests of a start keep `subprocess`.
"""

from __future__ import annotations

import array
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
ENGINES = {
    "inspect": ("aigo_bridge.cli", "inspect_ai._cli.main"),
    "lighteval": ("aigo_bridge.cli", "lighteval.pipeline", "aigo_lighteval.running.run"),
}
"""What a server has loaded before its first command. One that has loaded torch is slow to fork: it serves commands that need it, and no others."""

LATE = re.compile(
    r"AWS_\w+|\w+_(KEY|TOKEN|SECRET|PASSWORD|BASE_URL)|AIGO_\w+|INSPECT_DISPLAY|PYTEST_\w+|TMPDIR|RAY_\w+|KMP_\w+|TORCHINDUCTOR_\w+|_RJEM_\w+"
)
"""Variables that are read when they are needed, or that Ray, torch and polars set themselves; any other can have been read when a module was loaded."""


class Server:
    """A process that forks, in an environment that its commands share but for what is read late."""

    def __init__(self, engine: str, environment: Mapping[str, str]) -> None:
        self._early = _early(environment)
        self._connection, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, fork_server.__file__, *ENGINES[engine]],
                stdin=theirs.fileno(),
                env={**environment, **self._early},
            )

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
        """CPU seconds that the process and the commands that have ended took, of which no parent of theirs hears before it ends."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def stop(self) -> None:
        """End the process."""
        self._connection.close()
        self._process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


class Forked(subprocess.Popen[str]):
    """A command that a server has forked. It is not this process's child: the server tells how it ended."""

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
        self.pid = self._number()
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
            self.returncode = self._number()
            self._news.close()
        return self.returncode

    def _number(self) -> int:
        line = self._news.readline()
        assert line, "the server of commands has ended"
        return int(line)


_SERVERS: dict[str, Server] = {}


def start(
    words: Sequence[object],
    *,
    env: Mapping[str, str] | None = None,
    server: Server | None = None,
    **options: Any,
) -> subprocess.Popen[str]:
    """A process of an installed command, `aigo-bridge` or `inspect`, with `Popen`'s options.

    It is started as by a shell where its environment has a variable that is read while modules are loaded, where coverage is measured, and for
    `inspect list`, which looks in the folder in which Inspect was loaded.
    """
    name, *arguments = map(str, words)
    line = [str(BIN / name), *arguments]
    environment = dict(os.environ if env is None else env)
    known = name == "aigo-bridge" or (name == "inspect" and arguments[:1] != ["list"])
    if known and "COVERAGE_PROCESS_CONFIG" not in environment:
        server = server or _server(_engine(arguments))
        if server.serves(environment):
            return Forked(line, server, env=environment, text=True, **options)
    return subprocess.Popen(line, env=environment, text=True, **options)


def finished(
    words: Sequence[object], *, timeout: float = 120, **options: Any
) -> subprocess.CompletedProcess[str]:
    """A command that has ended, with what it printed."""
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
    """End the servers of these tests."""
    while _SERVERS:
        _SERVERS.popitem()[1].stop()


def _engine(arguments: Sequence[str]) -> str:
    """The engine whose server serves a command; `parity` runs on both."""
    return "lighteval" if arguments[:1] == ["parity"] or "lighteval" in " ".join(arguments) else "inspect"


def _server(engine: str) -> Server:
    if engine not in _SERVERS:
        _SERVERS[engine] = Server(engine, ENVIRONMENT)
    return _SERVERS[engine]


def _early(environment: Mapping[str, str]) -> dict[str, str]:
    environment = dict(environment)
    prepare_imports(environment.setdefault)
    return {name: value for name, value in environment.items() if not LATE.fullmatch(name)}
