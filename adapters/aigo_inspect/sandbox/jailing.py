"""Running a command in the local sandbox: its settings, its pipes, its limits; and whether that works here."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import anyio
from anyio.abc import ByteReceiveStream

from aigo_bridge.errors import UnsupportedPlanError


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


async def run_jailed(
    command: Sequence[str],
    *,
    stdin: bytes = b"",
    folder: Path | None = None,
    cwd: str = ".",
    environment: Mapping[str, str] | None = None,
    limits: JailLimits | None = None,
) -> JailResult:
    """Run a command without network, with a read-only root and nothing of the runner's but Python itself.

    Args:
        command: found in the usual folders and in those of the Python that runs this.
        stdin: its standard input.
        folder: what it finds in `/work`, as a copy.
        cwd: where it starts, below `/work`.
        environment: its variables, beside `PATH`, `HOME` and `LANG`.
        limits: what it may use.

    Raises:
        JailRefusedError: there can be no sandbox here.
    """
    limits = limits or JailLimits()
    if sys.platform != "linux":
        raise JailRefusedError(f"the local sandbox needs Linux, found {sys.platform}")
    reading, writing = os.pipe()
    base = tempfile.mkdtemp(prefix="aigo-jail-")
    try:
        for name in ("root", "empty"):
            (Path(base) / name).mkdir()
        visible, links = _system_folders()
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
            "visible": visible,
            "links": links,
            "seconds": limits.seconds,
            "memory_bytes": limits.memory_bytes,
            "processes": limits.processes,
            "disk_bytes": limits.disk_bytes,
        }
        jail = Path(__file__).with_name("jail.py")
        process = await anyio.open_process(
            [sys.executable, "-I", "-S", str(jail), json.dumps(settings)],
            env={},
            cwd="/",
            pass_fds=(writing,),
            start_new_session=True,
        )
        os.close(writing)
        writing = -1
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
        said = os.read(reading, 65536)
    finally:
        os.close(reading)
        if writing >= 0:
            os.close(writing)
        shutil.rmtree(base, ignore_errors=True)
    stdout, stderr = bytes(outputs[1]), bytes(outputs[2])
    if flooded:
        return JailResult("output", None, stdout, stderr)
    if not said:
        reason = stderr.decode(errors="replace").strip()[-300:] or "it ended without a word"
        raise JailRefusedError(f"the local sandbox does not work here: {reason}")
    report = json.loads(said)
    if report["ended"] == "refused":
        raise JailRefusedError(f"the local sandbox is not allowed here: {report['reason']}")
    return JailResult(report["ended"], report["code"], stdout, stderr)


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
    if not any(prefix.is_relative_to(each) for each in visible):
        visible.append(str(prefix))
    if str(prefix) != sys.base_prefix and not any(sys.base_prefix.startswith(each) for each in visible):
        visible.append(sys.base_prefix)
    if Path("/etc/ld.so.cache").exists():
        visible.append("/etc/ld.so.cache")
    return visible, links
