"""Environments like those of containers, without one: fewer capabilities, another user, system calls that are not there.

python -m tests.support.containers NAME COMMAND…    runs a command in one of them
python -m tests.support.containers                  names those that can be had here, and says why others cannot
python -m tests.support.containers --tests          runs the tests that speak of confinement in some of them (`make containers`)
"""

from __future__ import annotations

import ctypes
import os
import shutil
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DOCKERS = (
    *("chown", "dac_override", "fowner", "fsetid", "kill", "setgid", "setuid", "setpcap", "net_bind_service"),
    *("net_raw", "sys_chroot", "mknod", "audit_write", "setfcap"),
)  # fmt: skip
"""Capabilities that a container of docker's has by default."""

NOBODY = 65534
INSIDE = "AIGO_CONTAINER"
"""Variable with the name of the environment that tests run in."""


@dataclass(frozen=True)
class Container:
    """Differences from the current machine."""

    capabilities: tuple[str, ...] | None = None
    """Of root; `None`: all."""
    user: int = 0
    landlock: bool = True
    namespaces: bool = True


CONTAINERS = {
    "root with docker's capabilities": Container(DOCKERS, namespaces=False),
    "root with docker's capabilities, no Landlock": Container(DOCKERS, namespaces=False, landlock=False),
    "root without capabilities": Container((), namespaces=False),
    "root without capabilities, no Landlock": Container((), namespaces=False, landlock=False),
    "a user without namespaces": Container(user=NOBODY, namespaces=False),
    "a user with namespaces, no Landlock": Container(user=NOBODY, landlock=False),
    "a user without namespaces, no Landlock": Container(user=NOBODY, namespaces=False, landlock=False),
    "no Landlock": Container(landlock=False),
}


SNIPPETS = ("tests/security/test_snippet_jail.py", "tests/security/test_code_in_containers.py")
STOPPING = ("tests/bridge/snippets/test_host_stopping.py", "tests/security/test_interrupted_snippets.py")
JAILED = ("tests/security/test_snippet_isolation.py",)
TESTED = {
    "root with docker's capabilities": (*SNIPPETS, *STOPPING, *JAILED),
    "a user without namespaces": (*SNIPPETS, *STOPPING, *JAILED),
    "no Landlock": (*SNIPPETS, *STOPPING),
    "a user without namespaces, no Landlock": SNIPPETS,
}
"""Environment → the tests that are run in it."""


@cache
def own_processes() -> tuple[str, ...]:
    """Return the prefix of a command that gives it its own process table, or an empty list."""
    words = ("unshare", "--pid", "--fork", "--kill-child", "--mount-proc")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return ()
    return words if subprocess.run([*words, "true"], capture_output=True).returncode == 0 else ()


def command(container: Container, *words: str, alone: bool = False) -> list[str]:
    """Run a command in such an environment; `alone`: only with its own processes, if possible."""
    here = str(Path(__file__).resolve())
    inner = list(words)
    if os.geteuid() == 0:
        options = ["--clear-groups", "--inh-caps=-all"]
        if container.user:
            options += [f"--reuid={container.user}", f"--regid={container.user}"]
        elif container.capabilities is not None:
            options.append(
                f"--bounding-set={','.join(['-all', *(f'+{each}' for each in container.capabilities)])}"
            )
        inner = ["setpriv", *options, *inner]
    lacking = [
        *([] if container.landlock else ["landlock"]),
        *([] if container.namespaces else ["namespaces"]),
    ]
    opened = "--open" if os.geteuid() == 0 and container.user else "--as-it-is"
    before = own_processes() if alone else ()
    return [*before, sys.executable, here, f"--without={','.join(lacking)}", opened, *inner]


def missing(container: Container) -> str | None:
    """Return why the environment is not available, or `None`."""
    if sys.platform != "linux":
        return "it needs Linux"
    if os.geteuid() != 0:
        return "it needs root" if container.capabilities is not None else None
    if shutil.which("setpriv") is None:
        return "there is no setpriv"
    started = subprocess.run(
        command(container, "sh", "-c", f"{sys.executable} -c 'import json'; true"),
        capture_output=True,
        text=True,
    )
    return started.stderr.strip() or None


def available() -> dict[str, Container]:
    """Return the available environments."""
    return {name: container for name, container in CONTAINERS.items() if missing(container) is None}


def open_installation() -> None:
    """Let others than root run this Python, for what is started from now on: it may stand in a folder of root's.

    The first folder on the way that is closed to others is replaced by one that has nothing but the installation.
    """
    prefix = Path(sys.base_prefix).resolve()
    ways = [*reversed(prefix.parents), prefix]
    closed = next((each for each in ways if not each.stat().st_mode & 0o001), None)
    if closed is None:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    new_mounts, private, bind = 0x00020000, 0x44000, 0x1000
    assert libc.unshare(new_mounts) == 0
    assert libc.mount(b"none", b"/", None, private, None) == 0
    kept = os.open(prefix, os.O_PATH)
    assert libc.mount(b"tmpfs", bytes(closed), b"tmpfs", 0, b"mode=755") == 0
    prefix.mkdir(parents=True, exist_ok=True)
    assert libc.mount(f"/proc/self/fd/{kept}".encode(), bytes(prefix), None, bind, None) == 0
    os.close(kept)


def take_away(names: set[str]) -> None:
    """Make system calls fail for this process and its children, like on older kernels and in containers."""
    clone, unshare, setns = (56, 272, 308) if os.uname().machine == "x86_64" else (220, 97, 268)
    not_there, not_permitted, allowed = 0x00050000 | 38, 0x00050000 | 1, 0x7FFF0000
    program = [(0x20, 0, 0, 0)]
    if "landlock" in names:
        for number in (444, 445, 446):
            program += [(0x15, 0, 1, number), (0x06, 0, 0, not_there)]
    if "namespaces" in names:
        for number in (unshare, setns):
            program += [(0x15, 0, 1, number), (0x06, 0, 0, not_permitted)]
        program += [(0x15, 0, 1, 435), (0x06, 0, 0, not_there)]  # clone3
        flags = 0x7E020000
        program += [(0x15, 0, 4, clone), (0x20, 0, 0, 16), (0x45, 0, 1, flags)]
        program += [(0x06, 0, 0, not_permitted), (0x06, 0, 0, allowed)]
    program.append((0x06, 0, 0, allowed))
    packed = b"".join(struct.pack("HBBI", *each) for each in program)
    libc = ctypes.CDLL(None, use_errno=True)

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    if libc.prctl(22, 2, ctypes.byref(Program(len(program), packed)), 0, 0) != 0:
        # Without root only a process that cannot gain anything may do that.
        assert libc.prctl(38, 1, 0, 0, 0) == 0
        assert libc.prctl(22, 2, ctypes.byref(Program(len(program), packed)), 0, 0) == 0


def run_tests() -> int:
    """Run tests in each available environment of `TESTED`, one on each core; return 1 if one fails."""
    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        return 0 if all(list(pool.map(_right, TESTED))) else 1


def _right(name: str) -> bool:
    """Return whether the tests of an environment pass or it is not available; print their output together."""
    if (reason := missing(CONTAINERS[name])) is not None:
        print(f"== {name}\nNOT TESTED: {reason}", flush=True)
        return True
    with tempfile.TemporaryDirectory(prefix="aigo-container-", dir="/tmp") as folder:
        Path(folder).chmod(0o777)
        words = [sys.executable, "-m", "pytest", "-n", "0", "-q", "-p", "no:cacheprovider"]
        words += [f"--basetemp={folder}/tests", *TESTED[name]]
        environment = {
            **os.environ,
            INSIDE: name,
            "HOME": folder,
            "TMPDIR": folder,
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        done = subprocess.run(
            command(CONTAINERS[name], *words),
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    print(f"== {name}\n{done.stdout}", end="", flush=True)
    return done.returncode == 0


def main() -> None:
    """As the first lines say."""
    words = sys.argv[1:]
    if words and words[0].startswith("--without="):
        if words[1] == "--open":
            open_installation()
        take_away(set(words[0].removeprefix("--without=").split(",")) - {""})
        os.execvp(words[2], words[2:])
    if words and words[0] in CONTAINERS:
        line = command(CONTAINERS[words[0]], *words[1:])
        os.execvp(line[0], line)
    if words == ["--tests"]:
        sys.exit(run_tests())
    for name, container in CONTAINERS.items():
        print(f"{name}: {missing(container) or 'can be had here'}")


if __name__ == "__main__":
    main()
