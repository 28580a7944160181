"""Commands in the local sandbox: settings, pipes and limits."""

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
"""Bytes for the sandbox's own processes."""


class MemoryGroup:
    """Control group: processes with one memory limit."""

    def __init__(self, folder: Path):
        self._folder = folder

    @classmethod
    def create(cls, memory_bytes: int) -> MemoryGroup | None:
        """Create a group below the group of this process; `None` if that is not allowed."""
        for parent, name in parents():
            _sweep(parent)
            folder = parent / f"aigo-{os.getpid()}-{os.urandom(6).hex()}"
            try:
                folder.mkdir()
            except OSError:
                continue
            try:
                # Without O_CREAT, because the file is missing if the controller is.
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
        """Add a process. Its later child processes are also in the group."""
        with suppress(OSError):
            _write(self._folder / "cgroup.procs", str(process))

    def overran(self) -> bool:
        """Return whether the kernel has killed a process of the group."""
        for name in ("memory.events", "memory.oom_control"):
            with suppress(OSError):
                for line in (self._folder / name).read_text().splitlines():
                    if line.startswith("oom_kill "):
                        return int(line.split()[1]) > 0
        return False

    async def remove(self) -> None:
        """Remove the group. Killed processes may take a while to free their memory; after a second, the
        removal is left to the next runner.
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
    """Remove groups of killed runners."""
    for folder in parent.glob("aigo-*-*"):
        if not Path(f"/proc/{folder.name.split('-')[1]}").exists():
            with suppress(OSError):
                folder.rmdir()


def parents() -> list[tuple[Path, str]]:
    """Return the folders of this process's groups, each with the name of its limit file."""
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
    """Limits of one command."""

    seconds: float = 30.0
    """Wall-clock time."""
    memory_bytes: int = 1 << 30
    """Memory of all processes and files together, and address space of each process."""
    processes: int = 32
    """Processes and threads at the same time."""
    disk_bytes: int = 64 << 20
    """Bytes of `/work`, and the same of `/tmp`. Both are in memory until the command ends."""
    output_bytes: int = 1 << 20
    """Bytes of standard output and of standard error; the command is killed if it writes more."""


@dataclass(frozen=True)
class JailResult:
    """Result of a command."""

    ended: str
    """`exit`, or the limit that ended the command: `time`, `memory` or `output`."""
    code: int | None
    """Exit code; negative for the signal that killed the command; `None` if a limit ended it."""
    stdout: bytes
    stderr: bytes


class JailRefusedError(UnsupportedPlanError):
    """Error if the system does not allow the namespaces of the sandbox."""

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
    """Run a command without a network, with a read-only root and without the runner's files except Python.

    Args:
        command: program and arguments. Programs are found in the usual folders and next to Python.
        stdin: standard input.
        folder: folder to copy to `/work`.
        cwd: folder below `/work` in which the command starts.
        environment: variables in addition to `PATH`, `HOME` and `LANG`.
        limits: limits of the command.
        descriptors: further open files, with the same numbers inside.

    Raises:
        JailRefusedError: the sandbox does not work on this system.
    """
    limits = limits or JailLimits()
    if sys.platform != "linux":
        raise JailRefusedError(f"the local sandbox needs Linux, found {sys.platform}")
    reading, writing = os.pipe()
    settings_pipe, giving = os.pipe()
    memory = MemoryGroup.create(limits.memory_bytes)
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
                "HOME": "/tmp",  # noqa: S108  # path inside the jail
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
        # It waits for its settings, so all its child processes are in the group.
        if memory is not None:
            memory.add(process.pid)
        with suppress(BrokenPipeError), os.fdopen(giving, "wb") as file:  # it may already have ended
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
                return  # the command does not read its input, or has ended

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
            # After a cancellation the jail is killed, with its watcher and all processes inside.
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
    """Return the settings of the system and of the limits."""
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
    """Return the result: a limit that was exceeded outside the jail, or the report of the jail."""
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
    """Return the filter of system calls; `None` if the system calls of this machine are unknown."""
    try:
        return filter_program(PROGRAMS).hex()
    except OSError:
        return None


@cache
def _system_folders() -> tuple[list[str], list[tuple[str, str]]]:
    """Return the system folders that a program sees, and symbolic links with their targets."""
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
