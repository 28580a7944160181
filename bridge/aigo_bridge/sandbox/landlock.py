# ruff: noqa: PTH110, PTH112, PTH118, PTH119, PTH120, PTH208
# It starts in every worker before anything else, and pathlib is not worth its import there.
"""A process confined to a few folders by itself, without any privilege (Landlock). Nothing but the standard
library.

The kernel denies what is not allowed here, for good, to the process and to all that it starts. It also denies
each look into the memory and the environment of processes outside.
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
"""System calls; they have the same numbers on all kinds of machines."""

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_MAKE_CHAR, _MAKE_SOCK, _MAKE_BLOCK = 1 << 6, 1 << 9, 1 << 11
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_BIND, _CONNECT = 1, 2
_ABSTRACT_SOCKETS, _SIGNALS = 1, 2
_NUM_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Release of the interface → rights about files that it knows; 16 from the fifth on."""

SIGNALS_SINCE = 6
"""Release of the interface from which signals to processes outside are denied, too (Linux 6.12)."""

READ = _EXECUTE | _READ_FILE | _READ_DIR
LIST = _READ_DIR
USE = _READ_FILE | _WRITE_FILE | _TRUNCATE
"""Of a device."""
OWN = 0xFFFF & ~(_MAKE_CHAR | _MAKE_SOCK | _MAKE_BLOCK)
"""Everything in a folder but new devices and sockets."""

_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL


def release() -> int:
    """Release of the interface that this kernel has; 0 where there is none, or it may not be used."""
    libc = ctypes.CDLL(None, use_errno=True)
    release: int = libc.syscall(_CREATE, None, ctypes.c_size_t(0), 1)
    return max(release, 0)


def confine(allowed: Iterable[tuple[str, int]], *, network: bool) -> None:
    """Deny this thread, and all that it starts from now on, everything but what is allowed.

    Args:
        allowed: paths and the rights to them and what stands below; a path that does not exist is left out.
        network: whether it may connect, where the kernel can deny that at all.

    Raises:
        OSError: the kernel does not do it.
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
                known_rights = (
                    rights & files & (0xFFFF if os.path.isdir(path) else _OF_FILES)
                )  # as everywhere here
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
"""Below `/etc`."""
FOR_THE_NETWORK = ("resolv.conf", "hosts", "host.conf", "gai.conf", "services", "protocols")
FACTS = (
    *("/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/loadavg", "/proc/version", "/proc/filesystems"),
    *("/proc/sys/vm/overcommit_memory", "/proc/sys/kernel/osrelease", "/sys/devices/system"),
    *(f"/sys/fs/cgroup/{name}" for name in ("cpu.max", "memory.max", "cpuset.cpus.effective")),
    *(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us" for name in ("quota", "period")),
)  # fmt: skip
"""What libraries ask the kernel before they choose a number of threads."""
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
OF_PREFIX = ("bin", "lib", "lib64", "libexec", "include", "share", "nltk_data", "pyvenv.cfg", "Frameworks")
"""Parts of an installation. Not all of its folder: that may be a project's, or a home."""


def rules(folder: str, *, network: bool) -> list[tuple[str, int]]:
    """Paths and the rights to them, for `confine`; `folder` is its own."""
    paths = [(path, READ) for path in (*SYSTEM, *FACTS)]
    paths += [(f"/etc/{name}", READ) for name in (*SETTINGS, *(FOR_THE_NETWORK if network else ()))]
    paths += [(path, READ) for path in _installation()]
    paths += _import_folders()
    paths += [(path, USE) for path in DEVICES]
    return [*paths, (folder, OWN)]


def installation() -> list[str]:
    """Where the interpreter finds what it runs."""
    return [path for path in (*_installation(), *sys.path) if path and os.path.exists(path)]


def _installation() -> Iterator[str]:
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    for prefix in dict.fromkeys(
        (*prefixes, os.path.dirname(os.path.dirname(os.path.realpath(sys.executable))))
    ):
        yield from (os.path.join(prefix, name) for name in OF_PREFIX)
    yield os.path.dirname(os.path.dirname(os.path.realpath(__file__)))  # this package


def _import_folders() -> Iterator[tuple[str, int]]:
    """Where imports are looked for beside the installation: packages that are installed in place.

    Their folder may be a project's, with anything in it: its names can be seen, modules and packages in it be
    read.
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
        # What setuptools leaves for packages that are installed in place with another layout.
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
