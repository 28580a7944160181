"""Abilities and restrictions of a program in the local sandbox."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from pathlib import Path
from textwrap import dedent

import anyio
import pytest

from aigo_bridge.codes import Code
from aigo_bridge.sandbox import jailing
from aigo_bridge.sandbox.jailing import JailLimits, JailRefusedError, JailResult, run_jailed
from aigo_inspect.sandbox import available

QUICK = JailLimits(seconds=5, memory_bytes=256 << 20, disk_bytes=8 << 20, output_bytes=100_000)


def jailed(
    source: str, *, limits: JailLimits = QUICK, stdin: bytes = b"", folder: Path | None = None
) -> JailResult:
    command = ["python3", "-I", "-c", dedent(source)]
    return asyncio.run(run_jailed(command, stdin=stdin, folder=folder, limits=limits))


def said(source: str) -> str:
    result = jailed(source)
    assert (result.ended, result.code, result.stderr) == ("exit", 0, b"")
    return result.stdout.decode().strip()


def test_program_gets_its_input_and_returns_its_exit_code() -> None:
    result = jailed("import sys; print(sys.stdin.read().upper()); sys.exit(3)", stdin="grüße".encode())
    assert (result.ended, result.code, result.stdout.decode()) == ("exit", 3, "GRÜSSE\n")


def test_available_sandbox_is_found_with_a_reason() -> None:
    name, reason = available()
    assert name in ("aigo_local", "docker")
    assert reason


def test_program_works_on_copies_and_its_files_are_discarded(tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("given")
    source = "print(open('data.txt').read()); open('data.txt', 'w').write('x'); open('new', 'w').write('y')"
    assert jailed(source, folder=tmp_path).stdout == b"given\n"
    assert jailed(source, folder=tmp_path).stdout == b"given\n"
    assert [path.name for path in tmp_path.iterdir()] == ["data.txt"]


def test_network_is_unavailable() -> None:
    source = """
        import socket
        for address in (("127.0.0.1", 22), ("192.0.2.1", 80), ("8.8.8.8", 53)):
            try:
                socket.create_connection(address, 2)
            except OSError as error:
                print(type(error).__name__, error.errno)
    """
    assert len(said(source).splitlines()) == 3


def test_program_cannot_write_outside_its_folders() -> None:
    source = """
        import os
        for path in ("/x", "/usr/x", "/etc/x", "/dev/x", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"):
            try:
                open(path, "w").write("x")
            except OSError:
                continue
            print(path)
    """
    assert said(source) == ""


def test_files_of_the_runner_are_not_visible(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("sk-secret")
    source = f"""
        import os
        paths = ["/etc/shadow", "/etc/passwd", "/root/.ssh", "/home", "/var", "/old", {str(secret)!r}]
        paths += ["/proc/1/root" + path for path in paths] + ["/proc/1/cwd" + path for path in paths]
        os.symlink({str(secret)!r}, "link")
        print([path for path in [*paths, "link", "/work/../../../etc/shadow"] if os.path.exists(path)])
    """
    assert said(source) == "[]"


def test_environment_of_the_runner_is_not_visible(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    source = """
        import os
        found = dict(os.environ)
        for name in os.listdir("/proc"):
            try:
                found[name] = open(f"/proc/{name}/environ").read()
            except OSError:
                pass
        print(found)
    """
    assert "sk-secret" not in said(source)


def test_program_sees_only_its_processes_and_cannot_signal_others() -> None:
    source = """
        import ctypes, os, signal
        numbers = [int(name) for name in os.listdir("/proc") if name.isdigit()]
        assert set(numbers) == {os.getpid()}, numbers
        for sent in (signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP):
            for target in (1, -1, os.getppid()):
                try:
                    os.kill(target, sent)
                except (PermissionError, ProcessLookupError):
                    pass
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace.restype = ctypes.c_long
        print(libc.ptrace(16, 1, None, None), os.path.exists("/proc/1/mem") and os.access("/proc/1/mem", os.R_OK))
    """
    # A program may only kill processes of its own user, and has no other (-1 excludes the sender).
    assert said(source).startswith("-1")


def test_folders_of_the_machine_are_not_visible() -> None:
    source = """
        import os
        for name in ("cmdline", "environ", "cwd", "exe"):
            print(os.path.exists(f"/proc/1/{name}"))
        print("aigo" in open("/proc/self/environ").read())
    """
    assert said(source).split() == ["False"] * 5


def test_uncounted_memory_and_unusual_sockets_are_unavailable() -> None:
    source = """
        import ctypes, socket
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.memfd_create(b"x", 0), libc.shmget(1, 1 << 20, 0o1600))
        for family in (socket.AF_VSOCK, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_INET, socket.AF_INET6):
            try:
                socket.socket(family, socket.SOCK_DGRAM)
                print("a socket of family", family)
            except OSError:
                continue
        socket.socket(socket.AF_UNIX)
        socket.socketpair()
    """
    assert said(source) == "-1 -1"


def test_program_has_no_privileges_and_cannot_gain_any() -> None:
    source = """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        status = open("/proc/self/status").read()
        caps = {line.split()[0]: int(line.split()[1], 16) for line in status.splitlines() if line.startswith("Cap")}
        assert not any(caps.values()), caps
        assert libc.unshare(0x10000000) == -1
        assert libc.unshare(0x00020000) == -1
        assert libc.mount(b"none", b"/tmp", b"tmpfs", 0, None) == -1
        assert libc.umount2(b"/work", 2) == -1
        assert libc.chroot(b"/tmp") == -1
        assert libc.sethostname(b"x", 1) == -1
        print("nothing")
    """
    assert said(source) == "nothing"


@pytest.mark.parametrize(
    ("source", "ended"),
    [
        ("while True: pass", "time"),
        ("import time; time.sleep(1000)", "time"),
        ("while True: print('x' * 10000)", "output"),
        ("import sys\nwhile True: sys.stderr.write('x' * 10000)", "output"),
    ],
)
def test_program_over_a_limit_is_stopped(source: str, ended: str) -> None:
    start = time.monotonic()
    result = jailed(source, limits=JailLimits(seconds=1.5, output_bytes=100_000))
    assert (result.ended, result.code) == (ended, None)
    assert len(result.stdout) <= 100_000
    assert time.monotonic() - start < 10


def test_memory_bomb_only_stops_the_program() -> None:
    result = jailed("x = []\nwhile True: x.append(bytearray(1 << 22))")
    assert result.ended == "memory" or b"MemoryError" in result.stderr


def test_memory_of_all_processes_counts_together() -> None:
    source = """
        import os, time
        for _ in range(8):
            if os.fork() == 0:
                x = b"x" * (100 << 20)
                time.sleep(100)
        time.sleep(100)
    """
    assert jailed(source).ended == "memory"


@pytest.mark.parametrize("by_kernel", [True, False])
def test_shared_memory_counts(by_kernel: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not by_kernel:  # as if no process group could be created
        monkeypatch.setattr(jailing.MemoryGroup, "create", lambda memory_bytes: None)
    source = """
        import mmap, os, time
        for _ in range(8):
            if os.fork() == 0:
                x = mmap.mmap(-1, 100 << 20)
                x.write(b"x" * (100 << 20))
                time.sleep(100)
        time.sleep(100)
    """
    assert jailed(source).ended == "memory"
    assert [group for parent, _ in jailing.parents() for group in parent.glob(f"aigo-{os.getpid()}-*")] == []


def test_fork_bomb_is_stopped_at_the_process_limit() -> None:
    source = """
        import os
        made = 0
        try:
            while True:
                if os.fork() == 0:
                    import time
                    time.sleep(100)
                made += 1
        except BlockingIOError:
            print(made)
    """
    assert 0 < int(said(source)) <= QUICK.processes


def test_daemons_end_with_the_program() -> None:
    source = """
        import os, time
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                os.execvp("sleep", ["sleep", "9876543"])
            os._exit(0)
        time.sleep(0.3)
    """
    start = time.monotonic()
    assert jailed(source).ended == "exit"
    assert time.monotonic() - start < 5
    assert not running("9876543")


def test_disk_space_is_limited() -> None:
    source = """
        written = 0
        try:
            for number in range(100):
                with open(f"/tmp/{number}", "wb") as file:
                    written += file.write(bytes(1 << 20))
        except OSError:
            print(written >> 20)
    """
    assert int(said(source)) <= QUICK.disk_bytes >> 20


def test_cancelled_run_leaves_no_process() -> None:
    async def main() -> None:
        with anyio.move_on_after(1):
            await run_jailed(["sleep", "8765432"], limits=JailLimits(seconds=60))

    asyncio.run(main())
    deadline = time.monotonic() + 5
    while running("8765432") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running("8765432")


def test_killed_runner_leaves_no_process() -> None:
    source = (
        "import asyncio\nfrom aigo_bridge.sandbox.jailing import *\n"
        "asyncio.run(run_jailed(['sleep', '7654321'], limits=JailLimits(seconds=60)))"
    )
    process = subprocess.Popen([sys.executable, "-c", source])
    deadline = time.monotonic() + 30
    while not running("7654321") and time.monotonic() < deadline:
        time.sleep(0.05)
    process.kill()
    process.wait()
    deadline = time.monotonic() + 5
    while running("7654321") and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not running("7654321")


def test_concurrent_programs_do_not_see_each_other() -> None:
    async def main() -> list[JailResult]:
        async def one(number: int) -> None:
            source = (
                f"import os\nopen('mine', 'w').write('{number}')\nprint(os.listdir('.'), open('mine').read())"
            )
            found.append(await run_jailed(["python3", "-I", "-c", source]))

        found: list[JailResult] = []
        async with anyio.create_task_group() as group:
            for number in range(4):
                group.start_soon(one, number)
        return found

    lines = sorted(result.stdout.decode() for result in asyncio.run(main()))
    assert lines == sorted(f"['mine'] {number}\n" for number in range(4))


def test_missing_namespace_permission_is_an_error_with_the_reason(tmp_path: Path) -> None:
    # A missing root folder fails like a kernel that forbids namespaces: before the program starts.
    with pytest.raises(JailRefusedError, match=r"not allowed here: .*No such file") as caught:
        asyncio.run(run_jailed(["python3"], folder=tmp_path / "missing"))
    assert caught.value.code == Code.NO_SANDBOX


def running(argument: str) -> bool:
    for process in Path("/proc").iterdir():
        if process.name.isdigit():
            try:
                if (process / "cmdline").read_bytes() == f"sleep\0{argument}\0".encode():
                    return True
            except (FileNotFoundError, ProcessLookupError):
                continue
    return False
