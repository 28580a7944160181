"""Filter of system calls for confined processes (seccomp). It uses only the standard library.

The kernel refuses newer calls than `NEWEST`, other kinds of machine code, and the calls in this module.
Refused calls fail with an error that programs know from other systems; foreign machine code is killed.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterable
from typing import NamedTuple

NEWEST = 450
"""Last known system call. Later ones fail with ENOSYS, as on an older kernel, and libraries use others."""

AF_UNIX, AF_INET, AF_INET6 = 1, 2, 10
SOCK_STREAM = 1


class Profile(NamedTuple):
    """System calls that are allowed in addition to computing, files, threads and processes."""

    families: tuple[int, ...] = ()
    """Families of sockets that can be created. Pairs of connected sockets are always allowed."""
    metadata: bool = False
    """Changing modes, owners, times and attributes of files by path, which Landlock does not restrict."""
    sessions: bool = False
    """Leaving the process group, and so outliving it."""


SNIPPETS = Profile()
"""Profile of task code: no sockets."""

CONNECTED_SNIPPETS = Profile(families=(AF_INET, AF_INET6))
"""Profile of task code with network access: it can connect, but not listen or use Unix sockets."""

PROGRAMS = Profile(families=(AF_UNIX,), metadata=True, sessions=True)
"""Profile of a program in its own namespaces, with its own files, sockets and processes."""

_CALLS: dict[str, tuple[int | None, int | None]] = {
    # name: number on x86_64, on aarch64
    "accept": (43, 202),
    "accept4": (288, 242),
    "acct": (163, 89),
    "add_key": (248, 217),
    "bind": (49, 200),
    "bpf": (321, 280),
    "chmod": (90, None),
    "chown": (92, None),
    "chroot": (161, 51),
    "clock_adjtime": (305, 266),
    "clock_settime": (227, 112),
    "clone": (56, 220),
    "clone3": (435, 435),
    "connect": (42, 203),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "fanotify_mark": (301, 263),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "finit_module": (313, 273),
    "fremovexattr": (199, 16),
    "fsconfig": (431, 431),
    "fsetxattr": (190, 7),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "futimesat": (261, None),
    "init_module": (175, 105),
    "inotify_add_watch": (254, 27),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "ioprio_set": (251, 30),
    "kcmp": (312, 272),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lchown": (94, None),
    "listen": (50, 201),
    "lookup_dcookie": (212, 18),
    "lremovexattr": (198, 15),
    "lsetxattr": (189, 6),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "migrate_pages": (256, 238),
    "modify_ldt": (154, None),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "move_pages": (279, 239),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "msgctl": (71, 187),
    "msgget": (68, 186),
    "msgrcv": (70, 188),
    "msgsnd": (69, 189),
    "nfsservctl": (180, 42),
    "open": (2, None),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "openat": (257, 56),
    "openat2": (437, 437),
    "perf_event_open": (298, 241),
    "personality": (135, 92),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "prlimit64": (302, 261),
    "process_madvise": (440, 440),
    "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "removexattr": (197, 14),
    "request_key": (249, 218),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "semctl": (66, 191),
    "semget": (64, 190),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "setpgid": (109, 154),
    "setpriority": (141, 140),
    "setsid": (112, 157),
    "settimeofday": (164, 170),
    "setxattr": (188, 5),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "shmdt": (67, 197),
    "shmget": (29, 194),
    "socket": (41, 198),
    "socketpair": (53, 199),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "truncate": (76, 45),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
    "utime": (132, None),
    "utimensat": (280, 88),
    "utimes": (235, None),
    "vhangup": (153, 58),
}

MACHINES = {"x86_64": (0xC000003E, 0, 317), "aarch64": (0xC00000B7, 1, 277)}
"""Machine → the kernel's number of its machine code, the column in `_CALLS`, the number of `seccomp`."""

_FOR_NOBODY = (
    # other processes: their memory, descriptors, pages, signals by name
    *("ptrace", "process_vm_readv", "process_vm_writev", "process_madvise", "process_mrelease"),
    *("pidfd_getfd", "kcmp"),
    *("migrate_pages", "move_pages"),
    # memory outside the limits, and objects that processes share by name
    *("memfd_create", "memfd_secret", "shmget", "shmat", "shmctl", "shmdt", "semget", "semop", "semctl"),
    *("semtimedop",),
    *("msgget", "msgsnd", "msgrcv", "msgctl", "mq_open", "mq_unlink", "add_key", "request_key", "keyctl"),
    # namespaces and mounts
    *("unshare", "setns", "mount", "umount2", "pivot_root", "chroot", "move_mount", "open_tree", "fsopen"),
    *("fsconfig",),
    *("fsmount", "fspick", "mount_setattr", "open_by_handle_at"),
    # the kernel itself: wide interfaces, and administration of the machine
    *("bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register"),
    *("modify_ldt",),
    *("kexec_load", "kexec_file_load", "init_module", "finit_module", "delete_module", "reboot", "swapon"),
    *("swapoff",),
    *("acct", "syslog", "quotactl", "quotactl_fd", "iopl", "ioperm", "nfsservctl", "lookup_dcookie"),
    *("vhangup",),
    *("settimeofday", "clock_settime", "clock_adjtime", "sethostname", "setdomainname", "personality"),
    *("fanotify_init", "fanotify_mark"),
)  # fmt: skip

_METADATA = (
    *("chmod", "fchmod", "fchmodat", "chown", "lchown", "fchown", "fchownat", "utime", "utimes", "futimesat"),
    *("setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr", "truncate"),
    *("inotify_add_watch",),
)  # fmt: skip
"""`utimensat` and truncating by `open` have their own rules."""

_BY_PROCESS = ("prlimit64", "sched_setaffinity", "sched_setscheduler", "sched_setparam", "sched_setattr")
"""Calls whose first argument is a process number; 0 is the caller."""

_NEW_NAMESPACES = 0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
_CLONE_PARENT = 0x8000
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000
_SOCK_TYPE = 0xF

_LOAD, _EQUAL, _GREATER, _ANY_BIT, _AND, _RETURN = 0x20, 0x15, 0x25, 0x45, 0x54, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000

_Instruction = tuple[int, int, int, int]


def filter_program(profile: Profile, machine: str | None = None) -> bytes:
    """Return the filter in the kernel's format.

    Raises:
        OSError: the system calls of this machine are unknown.
    """
    machine = machine or os.uname().machine
    if machine not in MACHINES:
        raise OSError(errno.ENOSYS, "system calls of this kind of machine are not known", machine)
    code, column, _ = MACHINES[machine]
    program: list[_Instruction] = [
        (_LOAD, 0, 0, 4),
        (_EQUAL, 1, 0, code),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, 0),
        (_GREATER, 0, 1, NEWEST),
        _error(errno.ENOSYS),
    ]
    for name, rule in _rules(profile):
        number = _CALLS[name][column]
        if number is not None:
            # Every rule ends with a verdict, so the call number is still loaded for the next one.
            program += [(_EQUAL, 0, len(rule), number), *rule]
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *instruction) for instruction in program)


def install(program: bytes) -> None:
    """Apply a filter permanently to this thread and all processes that it starts later.

    Raises:
        OSError: the kernel refuses the filter. It requires `no_new_privs`.
    """

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))

    taken = Program(len(program) // 8, program)
    number = MACHINES[os.uname().machine][2]
    set_filter, without_slow_mitigations = 1, 4
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, set_filter, without_slow_mitigations, ctypes.byref(taken)) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error), "seccomp")


def _rules(profile: Profile) -> Iterable[tuple[str, list[_Instruction]]]:
    """Yield the rules by the name of the call; the first rule of a name applies."""
    refused = [_error(errno.EPERM)]
    for name in _FOR_NOBODY:
        yield name, refused
    # Their arguments are in memory, which a filter cannot read; callers fall back to the older calls.
    for name in ("clone3", "openat2"):
        yield name, [_error(errno.ENOSYS)]
    # A child with its creator's parent would belong to the runner, which waits only for its own children.
    yield "clone", _unless_bits(0, _NEW_NAMESPACES | _CLONE_PARENT)
    for name in _BY_PROCESS:
        yield name, _if_zero(0)
    for name in ("setpriority", "ioprio_set"):
        yield name, _if_zero(1)
    if not profile.sessions:
        yield "setsid", refused
        yield "setpgid", refused
    if not profile.metadata:
        for name in _METADATA:
            yield name, refused
        yield "utimensat", _if_no_pointer(1)
        yield "open", _unless_emptied(1)
        yield "openat", _unless_emptied(2)
    yield "socket", _if_one_of(0, profile.families, errno.EACCES)
    yield "socketpair", _if_pair()
    closed = ("listen", "accept", "accept4", "bind") if AF_UNIX not in profile.families else ()
    for name in (*closed, *(() if profile.families else ("connect",))):
        yield name, [_error(errno.EACCES)]


def _error(number: int) -> _Instruction:
    return (_RETURN, 0, 0, _ERROR | number)


def _argument(index: int, *, high: bool = False) -> _Instruction:
    """Return an instruction that loads half of an argument, on machines with little-endian byte order."""
    return (_LOAD, 0, 0, 16 + 8 * index + 4 * high)


def _if_zero(index: int) -> list[_Instruction]:
    return _if_one_of(index, (0,), errno.EPERM)


def _if_one_of(index: int, values: tuple[int, ...], otherwise: int) -> list[_Instruction]:
    rule = [_argument(index)]
    for value in values:
        rule += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*rule, _error(otherwise)]


def _if_no_pointer(index: int) -> list[_Instruction]:
    checks = [_argument(index), (_EQUAL, 0, 2, 0), _argument(index, high=True), (_EQUAL, 1, 0, 0)]
    return [*checks, _error(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _unless_bits(index: int, bits: int) -> list[_Instruction]:
    return [_argument(index), (_ANY_BIT, 0, 1, bits), _error(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _unless_emptied(index: int) -> list[_Instruction]:
    """Refuse to open a file for reading with truncation, which would empty it."""
    checks = [_argument(index), (_AND, 0, 0, _O_ACCMODE | _O_TRUNC), (_EQUAL, 0, 1, _O_TRUNC)]
    return [*checks, _error(errno.EPERM), (_RETURN, 0, 0, _ALLOW)]


def _if_pair() -> list[_Instruction]:
    """Allow pairs of streams only. Datagram sockets could send to any Unix socket of the machine."""
    family = [_argument(0), (_EQUAL, 1, 0, AF_UNIX), _error(errno.EACCES)]
    kind = [_argument(1), (_AND, 0, 0, _SOCK_TYPE), (_EQUAL, 1, 0, SOCK_STREAM), _error(errno.EACCES)]
    return [*family, *kind, (_RETURN, 0, 0, _ALLOW)]
