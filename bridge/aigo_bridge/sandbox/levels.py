# ruff: noqa: PTH112, PTH118, PTH120, PTH123, PTH208
# Every worker starts with it, and importing pathlib is too slow.
"""Confinement of a worker process before it runs the code of a task, and tests that the confinement holds.

`jailed`: no network and no other processes; only files of the system, of the installation and of the worker's
folder.
`worker`: no access to the environment and memory of the runner, of its ancestors, or of the user's other
processes.

Every system call is checked: a right that cannot be dropped raises `OSError`. It uses only the standard
library.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress

from aigo_bridge.sandbox import landlock, seccomp

_PR_SET_DUMPABLE, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 4, 38, 47
_PR_CAPBSET_READ, _PR_CAPBSET_DROP = 23, 24
_AMBIENT_CLEAR_ALL = 4
_CLONE_NEWUSER = 0x10000000
_CAPABILITY_VERSION_3 = 0x20080522
_DAC_OVERRIDE, _DAC_READ_SEARCH, _SETPCAP = 1, 2, 8


def keep_memory_private() -> None:
    """Hide this process's environment and memory from other processes of its user.

    Debuggers and core files do not work afterwards. On other systems than Linux, nothing happens.

    Raises:
        OSError: the system refuses.
    """
    if sys.platform == "linux":
        _prctl(_PR_SET_DUMPABLE, 0)


def gain_nothing() -> None:
    """Prevent programs that this process starts from having more rights than the process."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def give_up_capabilities(readable: Iterable[str]) -> bool:
    """Drop root's capabilities in every set, and return whether all are gone.

    Root keeps one capability to read files of others if a path is unreadable without it, because an
    installation can belong to another user. This capability does not open another process's environment.

    Raises:
        OSError: capabilities cannot be dropped.
    """
    _, permitted, _ = _capabilities()
    power = 0
    if permitted:
        _set_capabilities(0, permitted)
        if not all(map(_is_readable, readable)):
            usable = [
                1 << capability_kept
                for capability_kept in (_DAC_READ_SEARCH, _DAC_OVERRIDE)
                if permitted & 1 << capability_kept
            ]
            power = usable[0] if usable else 0
    if permitted & 1 << _SETPCAP:
        # Without this capability the bounding set stays, but nothing in it can be gained again.
        _set_capabilities(1 << _SETPCAP, permitted)
        for capability in range(64):
            if _libc().prctl(_PR_CAPBSET_READ, capability, 0, 0, 0) < 0:
                break  # the kernel's last capability
            if not power & 1 << capability:
                _prctl(_PR_CAPBSET_DROP, capability)
    _prctl(_PR_CAP_AMBIENT, _AMBIENT_CLEAR_ALL)
    _set_capabilities(power, power)
    if _capabilities() != (power, power, 0):
        raise OSError(errno.EPERM, "are still present after they were dropped", "capabilities")
    return power == 0


def leave_the_users_processes() -> bool:
    """Leave the user's other processes by entering a user namespace, and return whether that worked."""
    user, group = os.geteuid(), os.getegid()
    if _libc().unshare(_CLONE_NEWUSER) != 0:
        return False
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)
    return True


def _is_readable(path: str) -> bool:
    try:
        if os.path.isdir(path):
            os.listdir(path)
        else:
            os.close(os.open(path, os.O_RDONLY))
    except PermissionError:
        return False
    except OSError:
        return True  # a missing path is not needed
    return True


def _capabilities() -> tuple[int, int, int]:
    """Return the effective, permitted and inheritable capabilities."""
    data = (ctypes.c_uint32 * 6)()
    _check(_libc().capget(_header(), data), "capabilities")
    low, high = data[:3], data[3:]
    effective, permitted, inheritable = (low[index] | high[index] << 32 for index in range(3))
    return effective, permitted, inheritable


def _set_capabilities(effective: int, permitted: int) -> None:
    low, high = 0xFFFFFFFF, 32
    data = (ctypes.c_uint32 * 6)(effective & low, permitted & low, 0, effective >> high, permitted >> high, 0)
    _check(_libc().capset(_header(), data), "capabilities")


def _header() -> ctypes.Array[ctypes.c_uint32]:
    return (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)


def _prctl(option: int, argument: int) -> None:
    _check(_libc().prctl(option, argument, 0, 0, 0), f"prctl {option}")


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


HARMLESS = frozenset(
    {"PATH", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT", "HOME", "TMPDIR", "PYTHONHASHSEED"}
    | {"PWD", "OLDPWD", "SHLVL", "_"}
)
"""Variables of workers, and variables that a shell of a snippet adds. They contain nothing private."""

REFUSED = 97
"""Exit code of a process that could not be confined."""

REFUSAL = "refusal"
"""File in the folder of such a worker with the reason."""


class NotConfinedError(Exception):
    """Error if this process cannot be confined; the message contains the reason."""


def confine(level: str, folder: str, *, network: bool = False) -> None:
    """Confine this process, which has one thread, permanently, and test the confinement.

    Args:
        level: `jailed` or `worker`.
        folder: the process's own folder, the only one that a jailed process may write to.
        network: whether a jailed process may connect.

    Raises:
        NotConfinedError: the process is not confined as the level requires.
    """
    if sys.platform != "linux":
        if level == "jailed":
            raise NotConfinedError(f"the jail needs Linux, found {sys.platform}")
        return
    processes = _other_processes()
    jailed = level == "jailed"
    try:
        rules = landlock.rules(folder, network=network) if jailed else []
        profile = seccomp.CONNECTED_SNIPPETS if network else seccomp.SNIPPETS
        program = seccomp.filter_program(profile) if jailed else b""
        gain_nothing()
        bare = give_up_capabilities(landlock.installation())
        if not jailed and bare:
            with suppress(OSError):  # the tests below show whether it is needed
                leave_the_users_processes()
        keep_memory_private()
        if jailed:
            landlock.confine(rules, network=network)
            seccomp.install(program)
    except OSError as error:
        raise NotConfinedError(f"{error.filename}: {error.strerror}") from error
    if jailed:
        _look_around(folder, rules, network=network)
    _look_into(processes)


def _other_processes() -> list[tuple[int, bool]]:
    """Return the numbers of all other processes, and whether each is an ancestor of this one."""
    ancestors = set(_ancestors())
    try:
        numbers = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    except OSError:
        numbers = set()
    return [(number, number in ancestors) for number in sorted(numbers | ancestors) if number != os.getpid()]


def _ancestors() -> Iterator[int]:
    number = os.getppid()
    while number > 0:
        yield number
        try:
            with open(f"/proc/{number}/stat", "rb") as file:
                number = int(file.read().rpartition(b")")[2].split()[1])
        except OSError:
            return


def _look_into(processes: list[tuple[int, bool]]) -> None:
    """Try to read the environment of each process, and the memory of ancestors."""
    for number, is_ancestor in processes:
        try:
            with open(f"/proc/{number}/environ", "rb") as file:
                names = {os.fsdecode(entry.partition(b"=")[0]) for entry in file.read().split(b"\0") if entry}
            if names - HARMLESS:
                raise NotConfinedError(f"the environment of process {number} can be read from a snippet")
        except OSError:
            pass
        if is_ancestor:
            try:
                os.close(os.open(f"/proc/{number}/mem", os.O_RDONLY))
            except OSError:
                continue
            raise NotConfinedError(f"the memory of process {number} can be read from a snippet")


def _look_around(folder: str, rules: list[tuple[str, int]], *, network: bool) -> None:
    """Try operations that a jailed process must not be able to do."""
    import _socket  # the module `socket` is slower to import

    families = (seccomp.AF_UNIX,) if network else (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6)
    for family in families:
        try:
            _socket.socket(family, _socket.SOCK_STREAM).close()
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAFNOSUPPORT):
                continue
        raise NotConfinedError(f"sockets of family {family} can be created")
    outside = os.path.join(os.path.dirname(folder), f"aigo-outside-{os.getpid()}")
    with suppress(OSError):
        os.close(os.open(outside, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))
        os.unlink(outside)  # noqa: PTH108
        raise NotConfinedError(f"files can be written in {os.path.dirname(folder)}")
    for home in _homes():
        if any(f"{home}/".startswith(f"{path.rstrip('/')}/") for path, _ in rules):
            continue
        with suppress(OSError):
            os.listdir(home)
            raise NotConfinedError(f"the folder {home} can be read")


def _homes() -> Iterator[str]:
    import pwd

    yield from ("/root", "/home", "/proc", "/var", "/")
    with suppress(KeyError):
        yield pwd.getpwuid(os.geteuid()).pw_dir


def main() -> None:
    """Test a level with the arguments `LEVEL FOLDER`. Prints the problem to standard output, or nothing."""
    try:
        confine(sys.argv[1], sys.argv[2])
    except NotConfinedError as error:
        sys.stdout.write(str(error))
        sys.exit(REFUSED)
