"""Paths of copies, told as the addresses that they are of."""

from __future__ import annotations

import os

from aigo_bridge.access.object_addresses import SCHEMES, is_address, is_collapsed
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError

MIRRORS: list[str] = []
"""Folders of copies of this process."""

SHOWN: dict[str, str] = {}
"""Folders of what was taken of a lake of this machine, and how they are told."""


def address_of(path: str | os.PathLike[str]) -> str | None:
    """The address that a path of this machine stands for; `None`: it is a path of its own."""
    text = os.fspath(path)
    for folder in MIRRORS:
        prefix = f"{folder}{os.sep}"
        if text.startswith(prefix):
            scheme, _, key = text[len(prefix) :].partition(os.sep)
            if scheme in SCHEMES:
                return f"{scheme}://{key}"
    return None


def named(path: str) -> str:
    """A path as it is told: that of a copy as the address that it is of."""
    return address_of(path) or _shown(path)


def with_addresses(text: str) -> str:
    """A text for people, with addresses where it has paths of copies."""
    text = _shown(text)
    for folder in MIRRORS:
        for scheme in SCHEMES:
            text = text.replace(f"{folder}{os.sep}{scheme}{os.sep}", f"{scheme}://")
    return text


def _shown(text: str) -> str:
    for folder, name in SHOWN.items():
        text = text.replace(folder, name)
    return text


def refuse_address(path: object, what: str) -> None:
    """Refuse an address where only paths are taken, before it is taken for a folder called `s3:`.

    Args:
        path: of this machine; what is no path is left alone.
        what: the parameter, for the message.

    Raises:
        UsageError: it is one.
    """
    if not isinstance(path, str | os.PathLike):
        return
    text = str(os.fspath(path))
    if is_address(text) or is_collapsed(text):
        raise UsageError(
            f"{what}: found {text!r}, expected a path of this machine (the command line takes addresses)",
            code=Code.WRONG_ADDRESS,
        )
