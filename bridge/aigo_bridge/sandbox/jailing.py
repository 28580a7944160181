"""Running a command in the local sandbox: its settings, its pipes, its limits; and whether that works
here.
"""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream

from aigo_bridge.codes import Code
from aigo_bridge.errors import UnsupportedPlanError
from aigo_bridge.process.temporary import make_folder, remove_folder
from aigo_bridge.sandbox.seccomp import PROGRAMS, filter_program

CGROUPS = Path("/sys/fs/cgroup")
OWN = 96 << 20
"""Bytes for the processes of the sandbox itself."""


class MemoryGroup:
    """A group of processes with one limit."""

    def __init__(self, folder: Path):
        self._folder = folder

    @classmethod
    def made(cls, memory_bytes: int) -> MemoryGroup | None:
        """A new group, below that of this process; `None`: it may make none."""
        for parent, name in parents():
            _sweep(parent)
            folder = parent / f"aigo-{os.getpid()}-{os.urandom(6).hex()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                # No O_CREAT: without the controller there is no such file.
                _write(folder / name, str(memory_bytes + OWN))
            except OSError:
                with suppress(OSError):
                    folder.rmdir()
                continue
            with suppress(OSError):
                _write(folder / "memory.swap.max", "0")
            return cls(folder)
        return None

    def add(self, process: int) -> None:
        """Put a process into it; what that starts from then on is in it, too."""
        with suppress(OSError):
            _write(self._folder / "cgroup.procs", str(process))

    def overran(self) -> bool:
        """Whether the kernel has killed one of its processes."""
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError):
                for line in (self._folder / name).read_text().splitlines():
                    if line.startswith("oom_kill "):
                        return int(line.split()[1]) > 0
        return False

    async def remove(self) -> None:
        """Remove it; its processes were killed, but may give their memory back for a while. Where one still
        does after a second, the next runner removes it.
        """
        for _ in range(50):
            try:
                self._folder.rmdir()
            except OSError as error:
                if error.errno != errno.EBUSY:
                    return
            else:
                return
            with anyio.CancelScope(shield=True):
                await anyio.sleep(0.02)


def _sweep(parent: Path) -> None:
    """Remove groups of runners that were killed."""
    for folder in parent.glob("aigo-*-*"):
        if not Path(f"/proc/{folder.name.split('-')[1]}").exists():
            with suppress(OSError):
                folder.rmdir()


def parents() -> list[tuple[Path, str]]:
    """Folders of this process's own groups, and the file of the limit there."""
    folders = []
    with suppress(OSError):
        for line in Path("/proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if controllers == "":
                folders.append((CGROUPS / path.lstrip("/"), "memory.max"))
            elif "memory" in controllers.split(","):
                folders.append((CGROUPS / "memory" / path.lstrip("/"), "memory.limit_in_bytes"))
    return folders


def _write(path: Path, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


@dataclass(frozen=True)
class JailLimits:
    """What one command may use."""

    seconds: float = 30.0
    """Wall-clock time."""
    memory_bytes: int = 1 << 30
    """Of all its processes and files together, and address space of each process."""
    processes: int = 32
    """Processes and threads at once."""
    disk_bytes: int = 64 << 20
    """In `/work`, and as much in `/tmp`; both are in memory, and gone when the command ends."""
    output_bytes: int = 1 << 20
    """Of each of standard output and standard error; with more the command is killed."""


@dataclass(frozen=True)
class JailResult:
    """How a command ended."""

    ended: str
    """`exit`, `time`, `memory` or `output`: which limit ended it."""
    code: int | None
    """Exit code; minus the signal that killed it; `None` when a limit ended it."""
    stdout: bytes
    stderr: bytes


class JailRefusedError(UnsupportedPlanError):
    """The system does not allow the namespaces that the sandbox is made of."""

    usual_code = Code.NO_SANDBOX


async def run_jailed(
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    folder: Path | None = None,
    cwd: str = ".",
    environment: Mapping[str, str] | None = None,
    limits: JailLimits | None = None,
    descriptors: Sequence[int] = (),
) -> JailResult:
    """Run a command without network, with a read-only root and nothing of the runner's but Python itself.

    Args:
        command: found in the usual folders and in those of the Python that runs this.
        stdin: its standard input.
        folder: what it finds in `/work`, as a copy.
        cwd: where it starts, below `/work`.
        environment: its variables, beside `PATH`, `HOME` and `LANG`.
        limits: what it may use.
        descriptors: open files that it has besides, under the same numbers.

    Raises:
        JailRefusedError: there can be no sandbox here.
    """
    limits = limits or JailLimits()
    if sys.platform != "linux":
        raise JailRefusedError(f"the local sandbox needs Linux, found {sys.platform}")
    reading, writing = os.pipe()
    settings_pipe, giving = os.pipe()
    memory = MemoryGroup.made(limits.memory_bytes)
    killed = False
    base = make_folder("aigo-jail-")
    try:
        for name in ("root", "empty"):
            (Path(base) / name).mkdir()
        settings = {
            "report": writing,
            "root": f"{base}/root",
            "folder": str(folder or Path(base) / "empty"),
            "cwd": cwd,
            "command": list(command),
            "environment": {
                "PATH": f"{sys.base_prefix}/bin:/usr/local/bin:/usr/bin:/bin",
                "HOME": "/tmp",  # noqa: S108  # its own
                "LANG": "C.UTF-8",
                **(environment or {}),
            },
        }
        content = json.dumps(settings | _limits(limits)).encode()
        jail = Path(__file__).with_name("jail.py")
        process = await anyio.open_process(
            [sys.executable, "-I", "-S", str(jail), str(settings_pipe)],
            env={},
            cwd="/",
            pass_fds=(writing, settings_pipe, *descriptors),
            start_new_session=True,
        )
        os.close(writing)
        os.close(settings_pipe)
        writing = settings_pipe = -1
        # It waits for its settings, so that all that it starts will be in the group.
        if memory is not None:
            memory.add(process.pid)
        with suppress(BrokenPipeError), os.fdopen(giving, "wb") as file:  # it may have ended already
            giving = -1
            file.write(content)
        outputs = {1: bytearray(), 2: bytearray()}
        flooded = False

        async def feed() -> None:
            assert process.stdin is not None
            try:
                await process.stdin.send(stdin)
                await process.stdin.aclose()
            except (anyio.BrokenResourceError, anyio.ClosedResourceError):
                return  # it does not read its input, or has ended

        async def collect(stream: ByteReceiveStream, into: bytearray) -> None:
            nonlocal flooded
            async for part in stream:
                into += part
                if len(into) > limits.output_bytes:
                    flooded = True
                    del into[limits.output_bytes :]
                    process.kill()
                    return

        try:
            assert process.stdout is not None
            assert process.stderr is not None
            async with anyio.create_task_group() as group:
                group.start_soon(feed)
                group.start_soon(collect, process.stdout, outputs[1])
                group.start_soon(collect, process.stderr, outputs[2])
                await process.wait()
        finally:
            # Killed, if this is a cancellation; its watcher dies with it, and all that is inside with that.
            with anyio.CancelScope(shield=True):
                if process.returncode is None:
                    process.kill()
                await process.aclose()
            killed = memory is not None and memory.overran()
        report = os.read(reading, 65536)
    finally:
        for descriptor in (reading, writing, settings_pipe, giving):
            if descriptor >= 0:
                os.close(descriptor)
        remove_folder(base)
        if memory is not None:
            await memory.remove()
    return _result(
        report, (bytes(outputs[1]), bytes(outputs[2])), "output" if flooded else "memory" if killed else None
    )


def _limits(limits: JailLimits) -> dict[str, Any]:
    """Settings that are those of the system, and of the limits."""
    visible, links = _system_folders()
    return {
        "visible": visible,
        "links": links,
        "filter": _filter(),
        "seconds": limits.seconds,
        "memory_bytes": limits.memory_bytes,
        "processes": limits.processes,
        "disk_bytes": limits.disk_bytes,
    }


def _result(report: bytes, outputs: tuple[bytes, bytes], limit: str | None) -> JailResult:
    """How it ended: by a limit that was seen from outside, or as the jail reports it.

    Raises:
        JailRefusedError: it never began.
    """
    if limit is not None:
        return JailResult(limit, None, *outputs)
    if not report:
        reason = outputs[1].decode(errors="replace").strip()[-300:] or "it ended without a message"
        raise JailRefusedError(f"the local sandbox does not work here: {reason}")
    reports = [json.loads(line) for line in report.splitlines()]
    for refused in (entry for entry in reports if entry["ended"] == "refused"):
        raise JailRefusedError(f"the local sandbox is not allowed here: {refused['reason']}")
    return JailResult(reports[0]["ended"], reports[0]["code"], *outputs)


@cache
def _filter() -> str | None:
    """The filter of system calls; `None` where the calls of the machine are not known."""
    try:
        return filter_program(PROGRAMS).hex()
    except OSError:
        return None


@cache
def _system_folders() -> tuple[list[str], list[tuple[str, str]]]:
    """What a program sees of the system, read-only, and the symbolic links beside it."""
    visible: list[str] = []
    links: list[tuple[str, str]] = []
    for name in ("/usr", "/bin", "/sbin", "/lib", "/lib64"):
        path = Path(name)
        if path.is_symlink():
            links.append((name, str(path.readlink())))
        elif path.is_dir():
            visible.append(name)
    prefix = Path(sys.base_prefix).resolve()
    if not any(prefix.is_relative_to(folder) for folder in visible):
        visible.append(str(prefix))
    if str(prefix) != sys.base_prefix and not any(sys.base_prefix.startswith(folder) for folder in visible):
        visible.append(sys.base_prefix)
    if Path("/etc/ld.so.cache").exists():
        visible.append("/etc/ld.so.cache")
    return visible, links
