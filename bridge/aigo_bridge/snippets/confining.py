"""What the operating system can take from a worker beyond its environment: the sight of its parent's, and its life after the parent.

Every function does what the system allows and nothing else; SECURITY.md says what holds where.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal
import sys
from contextlib import suppress

_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CAPABILITY_VERSION_3 = 0x20080522
_CAP_DAC_READ_SEARCH = 2
"""Kept by root's workers: an installation may belong to another user. It opens no other process's environment."""


def keep_environment_private() -> None:
    """Hide this process's environment and memory from other processes of the user (root excepted), as long as it lives.

    Debuggers that attach from outside and core files do not work any more after it. Linux; nothing happens elsewhere, nor for root,
    whose workers give up the right to look instead.
    """
    if sys.platform == "linux" and os.geteuid() != 0:
        with suppress(OSError, AttributeError):
            _libc().prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def give_up_privileges() -> None:
    """Give up what lets a process look into others: root's capabilities; else, by a user namespace, the kinship of the user's processes."""
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):
        libc = _libc()
        if os.geteuid() != 0:
            _enter_user_namespace(libc)
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        for capability in range(64):
            if capability != _CAP_DAC_READ_SEARCH:
                libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0)
        kept = 1 << _CAP_DAC_READ_SEARCH if os.geteuid() == 0 else 0
        header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
        libc.capset(header, (ctypes.c_uint32 * 6)(kept, kept, 0, 0, 0, 0))


def die_with(lifeline: int) -> None:
    """Let the kernel kill this process's group when the other end of a pipe is closed, whatever the process is doing then."""
    if sys.platform == "linux":
        with suppress(OSError):
            fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
            fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
            fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_RDONLY | os.O_ASYNC)


def _enter_user_namespace(libc: ctypes.CDLL) -> None:
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(_CLONE_NEWUSER) != 0:
        return
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:  # noqa: PTH123  # pathlib is not worth its import here
            file.write(text)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)
