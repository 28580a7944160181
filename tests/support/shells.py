"""Commands of this project in shells: one by the name of `aigo-bridge` has it forked, with the words, files, folder and variables that the
shell gives it, and ends as it ends. What a shell does with it is real; only that modules are loaded for each command anew is not.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.support.commands import ENVIRONMENT
from tests.support.forked import Server, start

COMMAND = """#!{python} -IS
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as line:
    line.connect({address!r})
    content = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(line, [len(content).to_bytes(4, "big")], [0, 1, 2])
    line.sendall(content)
    with line.makefile() as answer:
        code = int(answer.read() or 1)
sys.exit(code if code >= 0 else 128 - code)
"""
OF_SHELLS = ("PATH", "PWD", "OLDPWD", "SHLVL", "_")
"""Variables that a shell, or how it is started, sets: they mean nothing to the command, which has those of the tests."""


class Exchange:
    """Listener for commands of shells, with a thread for each because a pipe may contain several."""

    def __init__(
        self, folder: Path, environment: Mapping[str, str], dropped: Collection[str], stack: ExitStack
    ) -> None:
        self._stack = stack
        self._dropped = {*OF_SHELLS, *dropped}
        self._environment = environment
        self._own: dict[str, Server] = {}
        self._lock = threading.Lock()
        self._listening = stack.enter_context(socket.socket(socket.AF_UNIX))
        self._listening.bind(str(folder / "socket"))
        self._listening.listen()
        (folder / "bin").mkdir()
        command = folder / "bin" / "aigo-bridge"
        command.write_text(COMMAND.format(python=sys.executable, address=str(folder / "socket")))
        command.chmod(0o755)
        threading.Thread(target=self._hear, daemon=True).start()

    def _hear(self) -> None:
        while True:
            try:
                line, _ = self._listening.accept()
            except OSError:  # it is closed
                return
            threading.Thread(target=self._carry_out, args=(line,), daemon=True).start()

    def _carry_out(self, line: socket.socket) -> None:
        with line:
            head, files, _, _ = socket.recv_fds(line, 4, 3)
            content = b""
            while len(content) < int.from_bytes(head, "big"):
                content += line.recv(1 << 16)
            words, folder, variables = json.loads(content)
            for name in self._dropped:
                variables.pop(name, None)
            variables |= {name: ENVIRONMENT[name] for name in OF_SHELLS if name in ENVIRONMENT}
            with self._lock:
                server = self._server(words, variables)
                stdin, stdout, stderr = files
                process = start(
                    ["aigo-bridge", *words],
                    server=server,
                    cwd=folder,
                    env=variables,
                    stdin=stdin,
                    stdout=stdout,
                    stderr=stderr,
                )
            for file in files:
                os.close(file)
            line.sendall(str(process.wait()).encode())

    def _server(self, words: list[str], variables: Mapping[str, str]) -> Server | None:
        """Return a server of this exchange if modules read its variables, otherwise the shared server."""
        if not self._environment:
            return None
        engine = "lighteval" if "lighteval" in words else "inspect"
        if engine not in self._own:
            self._own[engine] = self._stack.enter_context(
                Server(engine, {**ENVIRONMENT, **self._environment})
            )
        return self._own[engine]


@contextmanager
def exchange(*dropped: str, **environment: str) -> Iterator[str]:
    """A folder for the front of a shell's `PATH`, for as long as the block runs.

    Args:
        dropped: variables that only the shell reads.
        environment: variables that all its commands have, if modules read some when they are loaded.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        Exchange(Path(folder), environment, dropped, stack)
        yield str(Path(folder) / "bin")
