"""Verdicts of the system call filter on both architectures and in the running kernel."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from aigo_bridge.sandbox.seccomp import (
    CONNECTED_SNIPPETS,
    MACHINES,
    NEWEST,
    PROGRAMS,
    SNIPPETS,
    Profile,
    filter_program,
)

ALLOW, EPERM, EACCES, ENOSYS, KILL = "allow", 1, 13, 38, "kill"
PROFILES = {"snippets": SNIPPETS, "connected": CONNECTED_SNIPPETS, "programs": PROGRAMS}
NEW_USER, THREAD = 0x10000000, 0x3D0F00
TRUNCATE = 0o1000


def verdict(
    profile: Profile, machine: str, number: int, *arguments: int, code: int | None = None
) -> int | str:
    """Return the verdict of the filter for one call, computed as in the kernel."""
    program = filter_program(profile, machine)
    steps = [struct.unpack_from("HBBI", program, 8 * index) for index in range(len(program) // 8)]
    padded = [*arguments, *[0] * (6 - len(arguments))]
    data = struct.pack("=IIQ6Q", number, MACHINES[machine][0] if code is None else code, 0, *padded)
    value, at = 0, 0
    while True:
        operation, if_so, if_not, operand = steps[at]
        at += 1
        if operation == 0x20:
            value = struct.unpack_from("=I", data, operand)[0]
        elif operation == 0x54:
            value &= operand
        elif operation == 0x06:
            kind = operand & 0xFFFF0000
            return {0x7FFF0000: ALLOW, 0x80000000: KILL}.get(kind) or operand & 0xFFFF
        else:
            holds = {0x15: value == operand, 0x25: value > operand, 0x45: value & operand != 0}[operation]
            at += if_so if holds else if_not


@pytest.mark.parametrize("profile", PROFILES.values(), ids=PROFILES)
@pytest.mark.parametrize("machine", MACHINES)
def test_other_architectures_and_unknown_calls_are_rejected(machine: str, profile: Profile) -> None:
    i386 = 0x40000003
    assert verdict(profile, machine, 1, code=i386) == KILL
    x32 = 0x40000000
    assert verdict(profile, machine, x32 | 41) == ENOSYS
    assert verdict(profile, machine, NEWEST + 1) == ENOSYS
    assert verdict(profile, machine, 1_000_000) == ENOSYS
    with pytest.raises(OSError, match="not known"):
        filter_program(profile, "riscv64")


# name: (number on x86_64, on aarch64), arguments, verdicts for snippets, connected snippets and programs
VERDICTS = {
    "read": ((0, 63), (), (ALLOW, ALLOW, ALLOW)),
    "execve": ((59, 221), (), (ALLOW, ALLOW, ALLOW)),
    "mmap": ((9, 222), (), (ALLOW, ALLOW, ALLOW)),
    "futex": ((202, 98), (), (ALLOW, ALLOW, ALLOW)),
    "thread": ((56, 220), (THREAD,), (ALLOW, ALLOW, ALLOW)),
    "fork": ((56, 220), (0x1200011,), (ALLOW, ALLOW, ALLOW)),
    "clone with a namespace": ((56, 220), (NEW_USER | 17,), (EPERM, EPERM, EPERM)),
    "clone of a sibling": ((56, 220), (0x8000 | 17,), (EPERM, EPERM, EPERM)),
    "clone3": ((435, 435), (), (ENOSYS, ENOSYS, ENOSYS)),
    "unshare": ((272, 97), (NEW_USER,), (EPERM, EPERM, EPERM)),
    "ptrace": ((101, 117), (), (EPERM, EPERM, EPERM)),
    "process_vm_readv": ((310, 270), (), (EPERM, EPERM, EPERM)),
    "pidfd_getfd": ((438, 438), (), (EPERM, EPERM, EPERM)),
    "memfd_create": ((319, 279), (), (EPERM, EPERM, EPERM)),
    "shmget": ((29, 194), (), (EPERM, EPERM, EPERM)),
    "mq_open": ((240, 180), (), (EPERM, EPERM, EPERM)),
    "keyctl": ((250, 219), (), (EPERM, EPERM, EPERM)),
    "io_uring_setup": ((425, 425), (), (EPERM, EPERM, EPERM)),
    "bpf": ((321, 280), (), (EPERM, EPERM, EPERM)),
    "open_by_handle_at": ((304, 265), (), (EPERM, EPERM, EPERM)),
    "mount": ((165, 40), (), (EPERM, EPERM, EPERM)),
    "own limits": ((302, 261), (0, 7), (ALLOW, ALLOW, ALLOW)),
    "limits of another process": ((302, 261), (77, 7), (EPERM, EPERM, EPERM)),
    "own priority": ((141, 140), (0, 0), (ALLOW, ALLOW, ALLOW)),
    "priority of another process": ((141, 140), (0, 77), (EPERM, EPERM, EPERM)),
    "socket of the network": ((41, 198), (2, 1), (EACCES, ALLOW, EACCES)),
    "socket of the network, version 6": ((41, 198), (10, 1), (EACCES, ALLOW, EACCES)),
    "socket in the file system": ((41, 198), (1, 1), (EACCES, EACCES, ALLOW)),
    "socket of packets": ((41, 198), (17, 3), (EACCES, EACCES, EACCES)),
    "socket of the kernel's": ((41, 198), (16, 3), (EACCES, EACCES, EACCES)),
    "socket of the host of a virtual machine": ((41, 198), (40, 1), (EACCES, EACCES, EACCES)),
    "pair of streams": ((53, 199), (1, 1 | 0o2000000), (ALLOW, ALLOW, ALLOW)),
    "pair that could be pointed elsewhere": ((53, 199), (1, 2 | 0o2000000), (EACCES, EACCES, EACCES)),
    "connect": ((42, 203), (), (EACCES, ALLOW, ALLOW)),
    "listen": ((50, 201), (), (EACCES, EACCES, ALLOW)),
    "fchmodat": ((268, 53), (), (EPERM, EPERM, ALLOW)),
    "truncate": ((76, 45), (), (EPERM, EPERM, ALLOW)),
    "setxattr": ((188, 5), (), (EPERM, EPERM, ALLOW)),
    "times of a path": ((280, 88), (-100 & 2**64 - 1, 0x7F00_0000_0000), (EPERM, EPERM, ALLOW)),
    "times of what is open": ((280, 88), (3, 0), (ALLOW, ALLOW, ALLOW)),
    "open for reading": ((257, 56), (3, 0x7F00, 0), (ALLOW, ALLOW, ALLOW)),
    "open for reading, and empty it": ((257, 56), (3, 0x7F00, TRUNCATE), (EPERM, EPERM, ALLOW)),
    "open for writing": ((257, 56), (3, 0x7F00, 0o101 | TRUNCATE), (ALLOW, ALLOW, ALLOW)),
    "setsid": ((112, 157), (), (EPERM, EPERM, ALLOW)),
}


@pytest.mark.parametrize("name", VERDICTS)
def test_every_profile_has_the_expected_verdict_for_a_call(name: str) -> None:
    numbers, arguments, expected = VERDICTS[name]
    for machine, number in zip(MACHINES, numbers, strict=True):
        given = tuple(verdict(profile, machine, number, *arguments) for profile in PROFILES.values())
        assert given == expected, machine


TRIES = """
    import asyncio, concurrent.futures, ctypes, json, os, resource, socket, subprocess, sys, threading
    from aigo_bridge.sandbox import seccomp

    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0
    seccomp.install(seccomp.filter_program(seccomp.{profile}))

    def tried(work):
        try:
            return work() or "works"
        except OSError as error:
            return error.errno

    def called(name, *arguments):
        number = dict(seccomp._CALLS)[name][seccomp.MACHINES[os.uname().machine][1]]
        return lambda: -1 if libc.syscall(number, *arguments) != -1 else ctypes.get_errno()

    def threads():
        with concurrent.futures.ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(str, range(50))) == sorted(map(str, range(50)))

    async def child():
        process = await asyncio.create_subprocess_exec("/bin/true")
        return await process.wait()

    def written():
        with open("mine", "w") as file:
            file.write("x")
        os.replace("mine", "ours")

    own = resource.getrlimit(resource.RLIMIT_NOFILE)
    print(json.dumps({{
        "thread": tried(threads),
        "process": tried(lambda: subprocess.run(["/bin/true"], check=True) and None),
        "event loop": tried(lambda: asyncio.run(child())),
        "fork": tried(lambda: os.waitpid(os.fork() or os._exit(0), 0) and None),
        "file": tried(written),
        "limit": tried(lambda: resource.setrlimit(resource.RLIMIT_NOFILE, own)),
        "internet": tried(lambda: socket.socket().close()),
        "unix": tried(lambda: socket.socket(socket.AF_UNIX).close()),
        "vsock": tried(lambda: socket.socket(40, socket.SOCK_STREAM).close()),
        "memfd": tried(lambda: os.close(os.memfd_create("x"))),
        "shm": called("shmget", 0, 4096, 0o1600)(),
        "unshare": called("unshare", 0x10000000)(),
        "ptrace": called("ptrace", 0)(),
        "chmod": tried(lambda: os.chmod("ours", 0o777)),
        "session": tried(lambda: os.setpgid(0, 0)),
        "again": tried(lambda: subprocess.run(
            [sys.executable, "-I", "-c", "import socket; a, b = socket.socketpair(); a.send(b'x'); assert b.recv(1) == b'x'"], check=True) and None),
    }}))
"""

WORKS = ("thread", "process", "event loop", "fork", "file", "limit", "again")


@pytest.mark.parametrize("profile", ["SNIPPETS", "CONNECTED_SNIPPETS", "PROGRAMS"])
def test_kernel_enforces_the_filter(profile: str, tmp_path: Path) -> None:
    source = dedent(TRIES.format(profile=profile))
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=60, cwd=tmp_path
    )
    assert done.stderr == ""
    found = json.loads(done.stdout)
    assert {name: found.pop(name) for name in WORKS} == dict.fromkeys(WORKS, "works")
    refused = {"internet": 13, "unix": 13, "vsock": 13, "memfd": 1, "shm": 1, "unshare": 1, "ptrace": 1}
    assert found == {
        **refused,
        **dict.fromkeys(("chmod", "session"), 1),
        **({"internet": "works"} if profile == "CONNECTED_SNIPPETS" else {}),
        **({"unix": "works", "chmod": "works", "session": "works"} if profile == "PROGRAMS" else {}),
    }
