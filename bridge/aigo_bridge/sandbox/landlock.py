# ruff: noqa: PTH110, PTH112, PTH118, PTH119, PTH120, PTH208
# Every worker starts with it, and importing pathlib is too slow.
"""Confinement of a process to a few folders, without privileges (Landlock). It uses only the standard
library.

The kernel permanently denies all other access to the process and its child processes. It also denies access
to the memory and the environment of processes outside.
"""

from __future__ import annotations

import ctypes
import errno
import importlib.machinery
import os
import struct
import sys
from collections.abc import Iterable, Iterator

_CREATE, _ADD, _RESTRICT = 444, 445, 446
"""System calls, with the same numbers on all machines."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_BIND, _CONNECT = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_NUM_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Release of the interface → number of file rights that it supports; 16 since the fifth."""

SIGNALS_SINCE = 6
"""First release of the interface that also denies signals to processes outside (Linux 6.12)."""

READ = _EXECUTE | _READ_FILE | _READ_DIR
LIST = _READ_DIR
USE = _READ_FILE | _WRITE_FILE | _TRUNCATE
"""Rights to a device."""
OWN = 0xFFFF & ~(_MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK)
"""All rights to a folder except new devices and sockets."""

_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL


def release() -> int:
    """Return the release of the kernel's interface; 0 if it is missing or forbidden."""
    libc = ctypes.CDLL(None, use_errno=True)
    release: int = libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    return max(release, 0)


def confine(allowed: Iterable[tuple[str, int]], *, network: bool) -> None:
    """Deny this thread, and all processes that it starts later, every access that is not allowed.

    Args:
        allowed: paths with the rights to them and everything below. Missing paths are ignored.
        network: whether connections are allowed, if the kernel can deny them.

    Raises:
        OSError: the kernel refuses.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    interface = release()
    if interface == 0:
        raise OSError(errno.ENOSYS, "not offered by this kernel, or forbidden in this container", "Landlock")
    files = (1 << _NUM_RIGHTS.get(interface, 16)) - 1
    attributes = struct.pack(
        "=QQQ", files, _BIND | (0 if network else _CONNECT), _ABSTRACT_SOCKETS | _SIGNALS
    )
    size = 8 if interface < 4 else 16 if interface < SIGNALS_SINCE else 24
    rules = _checked(libc.syscall(_CREATE, attributes[:size], ctypes.c_size_t(size), 0), "Landlock's rules")
    try:
        for path, rights in allowed:
            try:
                place = os.open(path, os.O_PATH | os.O_CLOEXEC)
            except OSError:
                continue
            try:
                known_rights = rights & files & (0xFFFF if os.path.isdir(path) else _OF_FILES)
                rule = struct.pack("=Qi", known_rights, place)
                _checked(libc.syscall(_ADD, rules, 1, rule, 0), path)
            finally:
                os.close(place)
        _checked(libc.syscall(_RESTRICT, rules, 0), "Landlock")
    finally:
        os.close(rules)


def _checked(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)
    return result


SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
SETTINGS = (
    *("ld.so.cache", "ld.so.conf", "ld.so.conf.d", "ld.so.preload", "localtime", "timezone", "os-release"),
    *("mime.types",),
    *("ssl", "pki", "ca-certificates", "passwd", "group", "nsswitch.conf", "locale.alias", "locale.conf"),
    *("fonts",),
)  # fmt: skip
"""Names below `/etc`."""
FOR_THE_NETWORK = ("resolv.conf", "hosts", "host.conf", "gai.conf", "services", "protocols")
FACTS = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/version", "/proc/filesystems"),
    *("/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/osrelease", "/sys/devices/system"),
    *(f"/sys/fs/cgroup/{name}" for name in ("cpu.max", "memory.max", "cpuset.cpus.effective")),
    *(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us" for name in ("quota", "period")),
)  # fmt: skip
"""Files that libraries read before they choose a number of threads."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OF_PREFIX = ("bin", "lib", "lib64", "libexec", "include", "share", "nltk_data", "pyvenv.cfg", "Frameworks")
"""Parts of an installation. Its folder can also be a project or a home, which stay hidden."""


def rules(folder: str, *, network: bool) -> list[tuple[str, int]]:
    """Return the paths and rights for `confine`; `folder` is the process's own."""
    paths = [(path, READ) for path in (*SYSTEM, *FACTS)]
    paths += [(f"/etc/{name}", READ) for name in (*SETTINGS, *(FOR_THE_NETWORK if network else ()))]
    paths += [(path, READ) for path in _installation()]
    paths += _import_folders()
    paths += [(path, USE) for path in DEVICES]
    return [*paths, (folder, OWN)]


def installation() -> list[str]:
    """Return the paths that the interpreter needs."""
    return [path for path in (*_installation(), *sys.path) if path and os.path.exists(path)]


def _installation() -> Iterator[str]:
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    for prefix in dict.fromkeys(
        (*prefixes, os.path.dirname(os.path.dirname(os.path.realpath(sys.executable))))
    ):
        yield from (os.path.join(prefix, name) for name in OF_PREFIX)
    yield os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # this package


def _import_folders() -> Iterator[tuple[str, int]]:
    """Yield folders of imports outside the installation, for packages that are installed in place.

    Such a folder can be a project with other files: the process can list it, but read only modules and
    packages.
    """
    for entry in dict.fromkeys(sys.path):
        if not os.path.isdir(entry):
            yield entry, READ  # an archive
        elif os.path.basename(entry) in ("site-packages", "dist-packages", "lib-dynload"):
            yield entry, READ
        else:
            yield entry, LIST
            yield from ((path, READ) for path in _modules(entry))
    for finder in sys.meta_path:
        # Finder of setuptools for packages that are installed in place with another layout.
        mapping = getattr(sys.modules.get(getattr(finder, "__module__", "")), "MAPPING", None)
        if isinstance(mapping, dict):
            yield from ((path, READ) for path in mapping.values() if isinstance(path, str))


def _modules(folder: str) -> Iterator[str]:
    endings = tuple(importlib.machinery.all_suffixes())
    try:
        names = os.listdir(folder)
    except OSError:
        return
    for name in names:
        path = os.path.join(folder, name)
        if name.endswith((*endings, ".dist-info", ".egg-info")) or (
            name.isidentifier() and any(os.path.exists(f"{path}/__init__{ending}") for ending in endings)
        ):
            yield path
