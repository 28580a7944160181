# ruff: noqa: PTH101, PTH102, PTH103, PTH106, PTH112, PTH118, PTH120, PTH123, PTH208, PTH211
# It starts for every program, and `os` has the kernel's own calls.
"""Program in its own Linux namespaces. It runs as a script, with only the standard library.

The script enters new namespaces (user, mount, pid, network, ipc, uts) and starts the watcher, the first
process of the new pid namespace. The watcher builds the root folder, starts the program without privileges
and enforces the limits. When the watcher ends, the kernel kills all other processes in the namespace.

Argument: a descriptor with the settings as JSON (see `jailing`). The result is written as JSON to the
descriptor `report`.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import resource
import shutil
import signal
import sys
import time
from typing import Any

LIBC = ctypes.CDLL(None, use_errno=True)
NEW_ALL = 0x10000000 | 0x00020000 | 0x20000000 | 0x40000000 | 0x08000000 | 0x04000000
RDONLY, NOSUID, NODEV, NOEXEC, REMOUNT, BIND, REC, PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
PDEATHSIG, CAPBSET_DROP, NO_NEW_PRIVS, DUMPABLE, SET_SECCOMP = 1, 24, 38, 4, 22
GLANCE = 0.01
FOLDERS = ("/tmp", "/work")  # noqa: S108  # paths inside the jail
OUTER_USERS = 1 << 24
"""First user number, outside the jails of root, of their programs: the limit of processes counts by user."""
LIBRARIES = 32 << 20


def main() -> None:
    """Build the jail and run the program in it."""
    with open(int(sys.argv[1]), "rb") as file:
        settings = json.load(file)
    report: int = settings["report"]
    os.set_inheritable(report, False)
    runner = os.getppid()
    try:
        inner = enter_namespaces()
        watcher = os.fork()
    except OSError as error:
        tell(report, ended="refused", reason=f"{error.filename or 'namespaces'}: {error.strerror}")
        os._exit(125)
    if watcher == 0:
        watch(settings, report, inner)
    os.close(report)
    deadline = time.monotonic() + settings["seconds"] + 10
    while os.waitpid(watcher, os.WNOHANG)[0] == 0:
        if os.getppid() != runner or time.monotonic() > deadline:
            os.kill(watcher, signal.SIGKILL)
        time.sleep(GLANCE)
    os._exit(0)


def check(result: int, what: str) -> None:
    """Raise the error of the C library if a call failed."""
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def enter_namespaces() -> int:
    """Enter new namespaces, and return the user id of the program inside."""
    if os.geteuid() != 0:
        user, group = os.geteuid(), os.getegid()
        check(LIBC.unshare(NEW_ALL), "unshare")
        write("/proc/self/setgroups", "deny")
        write("/proc/self/uid_map", f"{user} {user} 1")
        write("/proc/self/gid_map", f"{group} {group} 1")
        return user
    # Another user can be mapped only from outside the new namespace.
    jailed, ready = os.getpid(), os.pipe()
    helper = os.fork()
    if helper == 0:
        os.close(ready[1])
        if os.read(ready[0], 1):
            for name in ("uid_map", "gid_map"):
                write(f"/proc/{jailed}/{name}", f"0 0 1\n1000 {OUTER_USERS + jailed} 1")
        os._exit(0)
    check(LIBC.unshare(NEW_ALL), "unshare")
    os.write(ready[1], b"!")
    os.close(ready[0])
    os.close(ready[1])
    if os.waitpid(helper, 0)[1] != 0:
        raise OSError(1, "users cannot be mapped", "uid_map")
    return 1000


def write(path: str, text: str) -> None:
    """Write a file in one call, as the kernel's files require."""
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, text.encode())
    except OSError as error:
        raise OSError(error.errno, error.strerror, path) from error
    finally:
        os.close(descriptor)


def tell(report: int, **content: Any) -> None:
    """Write a report of how the program ended."""
    os.write(report, json.dumps(content).encode() + b"\n")


def watch(settings: dict[str, Any], report: int, inner: int) -> None:
    """Run as the first process of the new pid namespace. Never returns."""
    try:
        LIBC.prctl(PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        build(settings, inner)
        # In another user namespace the program would have new privileges.
        write("/proc/sys/user/max_user_namespaces", "0")
        LIBC.prctl(DUMPABLE, 0, 0, 0, 0)
    except OSError as error:
        tell(report, ended="refused", reason=f"{error.filename}: {error.strerror}")
        os._exit(125)
    program = os.fork()
    if program == 0:
        start(settings, report, inner)
    ended = "exit"
    code: int | None = None
    deadline = time.monotonic() + settings["seconds"]
    for descriptor in (0, 1, 2):
        os.close(descriptor)
    while True:
        done, status = os.waitpid(-1, os.WNOHANG)
        if done == program:
            code = os.waitstatus_to_exitcode(status)
            break
        if done == 0:
            if time.monotonic() > deadline:
                ended = "time"
                break
            if memory_used() > settings["memory_bytes"]:
                ended = "memory"
                break
            time.sleep(GLANCE)
    tell(report, ended=ended, code=code)
    os._exit(0)


def build(settings: dict[str, Any], inner: int) -> None:
    """Build the new root folder, and remove the old one."""
    root = settings["root"]
    check(LIBC.mount(b"none", b"/", None, REC | PRIVATE, None), "private mounts")
    tmpfs(root, 1 << 20, NOSUID | NODEV)
    for path in settings["visible"]:
        show(path, root + path)
    for path, target in settings["links"]:
        os.symlink(target, root + path)
    os.mkdir(f"{root}/dev")
    for name in ("null", "zero", "full", "random", "urandom"):
        bind(f"/dev/{name}", f"{root}/dev/{name}")
    for name in ("tmp", "work"):
        os.mkdir(f"{root}/{name}")
        tmpfs(f"{root}/{name}", settings["disk_bytes"], NOSUID | NODEV)
    shutil.copytree(settings["folder"], f"{root}/work", dirs_exist_ok=True)
    for folder, _, names in os.walk(f"{root}/work"):
        for path in (folder, *(os.path.join(folder, name) for name in names)):
            os.chown(path, inner, -1)
    for name in ("tmp", "work"):  # the copy has the mode of the original folder
        os.chmod(f"{root}/{name}", 0o1777)  # noqa: S103  # only the program uses them
    os.mkdir(f"{root}/proc")
    check(
        LIBC.mount(b"proc", f"{root}/proc".encode(), b"proc", NOSUID | NODEV | NOEXEC, b"hidepid=2"), "/proc"
    )
    os.mkdir(f"{root}/old")
    number = PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(38, "unknown kind of machine", platform.machine())
    os.chdir(root)
    check(LIBC.syscall(number, b".", b"old"), "pivot_root")
    os.chdir("/")
    check(LIBC.umount2(b"/old", 2), "old root")
    os.rmdir("/old")
    check(LIBC.mount(None, b"/", None, REMOUNT | BIND | RDONLY | NOSUID | NODEV, None), "read-only root")


def tmpfs(path: str, size: int, flags: int) -> None:
    """Mount a folder in memory with a limited size."""
    check(LIBC.mount(b"tmpfs", path.encode(), b"tmpfs", flags, f"size={size},mode=755".encode()), path)


def bind(path: str, target: str) -> None:
    """Mount a path of the old root in the new one."""
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        os.close(os.open(target, os.O_CREAT | os.O_WRONLY))
    check(LIBC.mount(path.encode(), target.encode(), None, BIND, None), path)


def show(path: str, target: str) -> None:
    """Mount a path of the old root in the new one, read-only."""
    bind(path, target)
    flags = os.statvfs(target).f_flag & (NOSUID | NODEV | NOEXEC | 1024 | 2048 | 4096)
    atime = {1024: 1024, 2048: 2048, 4096: 1 << 21}  # flag of statvfs → flag of mount
    kept_flags = flags & 15 | sum(flag for bit, flag in atime.items() if flags & bit)
    remounted = BIND | REMOUNT | RDONLY | NOSUID | NODEV | kept_flags
    check(LIBC.mount(None, target.encode(), None, remounted, None), path)


def start(settings: dict[str, Any], report: int, inner: int) -> None:
    """Drop all privileges and become the program."""
    try:
        os.setsid()
        check(LIBC.prctl(NO_NEW_PRIVS, 1, 0, 0, 0), "no new privileges")
        for capability in range(64):
            LIBC.prctl(CAPBSET_DROP, capability, 0, 0, 0)
        if os.geteuid() == 0 and inner != 0:
            os.setgroups([])
            os.setresgid(inner, inner, inner)
            os.setresuid(inner, inner, inner)
        header = (ctypes.c_uint32 * 2)(0x20080522, 0)
        check(LIBC.capset(header, (ctypes.c_uint32 * 6)()), "capabilities")
        os.chdir(os.path.join("/work", settings["cwd"]))
        for kind, limit in (
            (resource.RLIMIT_AS, settings["memory_bytes"]),
            (resource.RLIMIT_CPU, int(settings["seconds"]) + 1),
            (resource.RLIMIT_FSIZE, settings["disk_bytes"]),
            (resource.RLIMIT_NPROC, settings["processes"]),
            (resource.RLIMIT_NOFILE, 256),
            (resource.RLIMIT_CORE, 0),
        ):
            hard = resource.getrlimit(kind)[1]
            allowed = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            resource.setrlimit(kind, (allowed, allowed))
        for number in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        confine(settings["filter"])
    except OSError as error:
        tell(report, ended="refused", reason=f"{error.filename}: {error.strerror}")
        os._exit(125)
    try:
        os.execvpe(settings["command"][0], settings["command"], settings["environment"])  # noqa: S606
    except OSError as error:
        os.write(2, f"{settings['command'][0]}: {error.strerror}\n".encode())
    os._exit(127)


def confine(program: str | None) -> None:
    """Apply a filter of system calls, as hexadecimal text; `None`: this machine has no filter."""
    if program is None:
        return

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    content = bytes.fromhex(program)
    taken = Program(len(content) // 8, content)
    check(LIBC.prctl(SET_SECCOMP, 2, ctypes.byref(taken), 0, 0), "seccomp")


def memory_used() -> int:
    """Return the bytes of memory of all processes inside, without this one, and of files in memory."""
    pages = shared_bytes = 0
    for name in os.listdir("/proc"):
        if name.isdigit() and name != "1":
            with contextlib.suppress(OSError):
                with open(f"/proc/{name}/statm") as file:
                    resident, shared = map(int, file.read().split()[1:3])
                pages += resident - shared
                # Shared pages are mostly libraries. A larger part can be memory that processes share.
                if shared * resource.getpagesize() > LIBRARIES:
                    shared_bytes += shared_memory(name)
    files = sum((usage.f_blocks - usage.f_bfree) * usage.f_frsize for usage in map(os.statvfs, FOLDERS))
    return pages * resource.getpagesize() + shared_bytes + files


def shared_memory(process: str) -> int:
    """Return a process's bytes of shared memory without a file, divided by the processes that share it."""
    with open(f"/proc/{process}/smaps_rollup") as file:
        for line in file:
            if line.startswith("Pss_Shmem:"):
                return int(line.split()[1]) * 1024
    return 0


if __name__ == "__main__":
    main()
