"""Snippets in simulated containers: they access nothing of the runner, or they do not run."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from tests.support import containers
from tests.support.containers import CONTAINERS, Container, available, command, own_processes

from aigo_bridge.codes import Code

# One after the other: a process without capabilities can see into others of the same user, so one environment's processes
# are a reason for the next one's to run no snippets.
pytestmark = pytest.mark.xdist_group("containers")

KEY = "sk-this-must-not-be-seen"
INSIDE = os.environ.get(containers.INSIDE)
"""Name of the simulated environment that these tests run in; `None`: in none."""
HERE = {INSIDE or "as it is": Container()} if INSIDE else {"as it is": Container()} | available()
REFUSED = {"root without capabilities, no Landlock", "a user without namespaces, no Landlock"}
"""Where the parent of the runner cannot be hidden from a snippet."""

SPY = """
import ctypes, json, os, signal, socket

def f(processes, runner, sockets, secrets, folder):
    found = []

    def tried(name, work):
        try:
            if work():
                found.append(name)
        except OSError:
            pass

    def reads(path):
        with open(path, "rb") as file:
            return KEY in file.read()

    def memory(number):
        with open(f"/proc/{number}/maps") as maps, open(f"/proc/{number}/mem", "rb") as file:
            for line in maps:
                if "[stack]" in line or "[heap]" in line:
                    start, end = (int(each, 16) for each in line.split()[0].split("-"))
                    file.seek(start)
                    if KEY in file.read(end - start):
                        return True
        return True  # the map alone is too much

    def attaches(number):
        return libc.ptrace(16, number, None, None) == 0

    def copies(number):
        class Part(ctypes.Structure):
            _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))
        buffer = ctypes.create_string_buffer(8)
        local, remote = Part(ctypes.addressof(buffer), 8), Part(0, 8)
        result = libc.process_vm_readv(number, ctypes.byref(local), 1, ctypes.byref(remote), 1, 0)
        return result >= 0 or ctypes.get_errno() == 14  # a bad address, but the right to ask

    def connects(address):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(address)
        return True

    def packets(address):
        pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        pair[0].sendto(b"x", address)
        return True

    def writes(path):
        with open(path, "w") as file:
            file.write("x")
        os.unlink(path)
        return True

    libc = ctypes.CDLL(None, use_errno=True)
    for number in processes:
        tried(f"environment of {number}", lambda: reads(f"/proc/{number}/environ"))
        tried(f"command of {number}", lambda: open(f"/proc/{number}/cmdline").read() and LEVEL == "jailed")
        tried(f"memory of {number}", lambda: memory(number))
        tried(f"files of {number}", lambda: [os.readlink(each.path) for each in os.scandir(f"/proc/{number}/fd")])
        tried(f"root of {number}", lambda: os.listdir(f"/proc/{number}/root/"))
        tried(f"a copy of {number}", lambda: copies(number))
        tried(f"control of {number}", lambda: attaches(number))
    if LEVEL == "jailed":
        tried("a signal", lambda: os.kill(runner, 0) is None)
        tried("limits of the runner", lambda: __import__("resource").prlimit(runner, 7))
        for address in sockets:
            tried(f"socket {address!r}", lambda: connects(address))
            tried(f"packets to {address!r}", lambda: packets(address))
        for path in secrets:
            tried(f"file {path}", lambda: reads(path))
            tried(f"mode of {path}", lambda: os.chmod(path, 0o777) is None)
            tried(f"times of {path}", lambda: os.utime(path, (0, 0)) is None)
            tried(f"folder of {path}", lambda: os.listdir(os.path.dirname(path)))
        tried("a file elsewhere", lambda: writes(folder + "/written"))
        tried("a socket", lambda: socket.socket())
        tried("a name", lambda: socket.getaddrinfo("localhost", 80))
        tried("a session", lambda: os.setpgid(0, 0) is None)
        tried("a namespace", lambda: libc.unshare(0x10000000) == 0)
    return found
"""

RUNNER = """
    import json, os, sys
    from aigo_bridge.errors import SnippetError
    from aigo_bridge.snippets import Snippet, SnippetHost
    from aigo_bridge.snippets.process import choose, reached

    given = json.loads(sys.argv[1])
    choose(given["level"])
    host = SnippetHost()
    try:
        level = reached().level
        source = f"KEY = {given['key']!r}.encode()\\nLEVEL = {level!r}\\n" + given["spy"]
        # All that belongs to this run. Whatever else runs on the machine is left in peace: who is attached to, stands still.
        numbers = [os.getpid()]
        while numbers[-1] > 1:
            numbers.append(int(open(f"/proc/{numbers[-1]}/stat").read().rpartition(")")[2].split()[1]))
        arguments = (numbers, os.getpid(), given["sockets"], given["secrets"], given["folder"])
        own = [host.call_blocking(Snippet("import os\\ndef f(): return os.getpid()", "f", "own"), (), {})]
        found = host.call_blocking(Snippet(source, "f", "spy"), arguments, {})
        print(json.dumps({"level": level, "reason": reached().reason, "found": found}))
    except SnippetError as error:
        print(json.dumps({"refused": str(error), "code": error.code}))
    host.close()
"""


@pytest.fixture
def surroundings(tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Files and sockets that a snippet must not reach."""
    tmp_path.chmod(0o777)
    for folder in tmp_path.parents:
        if folder.owner() == tmp_path.owner() and folder != Path("/"):
            folder.chmod(folder.stat().st_mode | 0o055)
    home = tmp_path / "home"
    home.mkdir(mode=0o777)
    (home / "credentials").write_text(KEY)
    (home / "credentials").chmod(0o666)
    addresses = [str(tmp_path / "docker.sock"), f"\0{tmp_path}"]
    with ExitStack() as stack:
        for address in addresses:
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
                server = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
                name = address if kind == socket.SOCK_STREAM else f"{address}.packets"
                server.bind(name)
                if kind == socket.SOCK_STREAM:
                    server.listen()
                if not name.startswith("\0"):
                    Path(name).chmod(0o777)
        yield {
            "key": KEY,
            "spy": SPY,
            "sockets": [*addresses, *(f"{each}.packets" for each in addresses)],
            "secrets": [str(home / "credentials")],
            "folder": str(home),
        }


def spied(
    container: Container, surroundings: dict[str, Any], level: str | None = None, *, beside: str | None = None
) -> dict[str, Any]:
    """Return the data found by a snippet whose runner and shell have a key; `beside` was started earlier."""
    runner = [sys.executable, "-c", dedent(RUNNER), json.dumps({**surroundings, "level": level})]
    # The shell has to stay: it does something after the runner.
    started = "" if beside is None else f"{beside} & sleep 1;"
    shell = ["sh", "-c", f'{started} "$@"; true', "sh", *runner]
    if container != Container():
        shell = command(container, *shell, alone=True)
    environment = {**os.environ, "OPENAI_API_KEY": KEY, "TMPDIR": tempfile.gettempdir()}
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, timeout=120, cwd="/")
    assert done.stderr == ""
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


@pytest.mark.skipif(
    INSIDE is not None or not own_processes(), reason="starts a process as another container does"
)
@pytest.mark.parametrize(("variable", "is_refused"), [("", False), (f"TOKEN={KEY}", True)])
def test_variables_added_by_a_shell_are_not_secrets(
    variable: str, is_refused: bool, surroundings: dict[str, Any]
) -> None:
    """A process without privileges is visible, for example to a snippet of another run that started a shell."""
    bare = f'env -i PATH="$PATH" {variable} setpriv --inh-caps=-all --bounding-set=-all'
    beside = f'{bare} sh -c "cd /; env -u _ sleep 60; true"'
    container = CONTAINERS["root with docker's capabilities, no Landlock"]

    answer = spied(container, surroundings, beside=beside)

    assert ("can be read from a snippet" in answer.get("refused", "")) is is_refused, answer
    assert (answer.get("code") == Code.UNCONFINED_SNIPPETS) is is_refused


@pytest.mark.parametrize("name", HERE)
def test_snippet_cannot_read_the_runner_or_is_refused(name: str, surroundings: dict[str, Any]) -> None:
    answer = spied(HERE[name], surroundings)
    if name in REFUSED:
        assert "can be read from a snippet" in answer["refused"]
        assert "--snippets in-process" in answer["refused"]
        return
    has_jail = CONTAINERS.get(name, Container()).landlock
    assert answer.get("found") == [], answer
    assert answer["level"] == ("jailed" if has_jail else "worker")
    assert answer["reason"] == (
        None if has_jail else "Landlock: not offered by this kernel, or forbidden in this container"
    )


@pytest.mark.parametrize("name", HERE)
def test_worker_level_protects_the_runner_or_is_refused(name: str, surroundings: dict[str, Any]) -> None:
    answer = spied(HERE[name], surroundings, "worker")
    if name in REFUSED or name in ("root without capabilities", "a user without namespaces"):
        assert answer["refused"].startswith("--snippets worker: ")
    else:
        assert (answer.get("found", answer), answer.get("level"), answer.get("reason")) == (
            [],
            "worker",
            None,
        )


@pytest.mark.parametrize("name", HERE)
def test_requested_jail_is_not_replaced_by_a_weaker_level(name: str, surroundings: dict[str, Any]) -> None:
    answer = spied(HERE[name], surroundings, "jailed")
    if CONTAINERS.get(name, Container()).landlock:
        assert (answer.get("found", answer), answer.get("level")) == ([], "jailed")
    else:
        assert answer["refused"].startswith("--snippets jailed: not available on this machine: Landlock")


def test_every_available_environment_is_tested() -> None:
    if os.geteuid() == 0 and INSIDE is None:
        assert set(HERE) == {"as it is", *CONTAINERS}
