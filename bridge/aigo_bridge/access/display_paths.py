"""Addresses of local copies, for display instead of their paths."""

from __future__ import annotations

import os

from aigo_bridge.access.object_addresses import SCHEMES, is_address, is_collapsed
from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError

MIRRORS: list[str] = []
"""Folders with copies of this process."""

SHOWN: dict[str, str] = {}
"""Folders with data from a local lake → displayed text."""


def address_of(path: str | os.PathLike[str]) -> str | None:
    """Return the address of a copy's path; `None` if the path is not a copy."""
    text = os.fspath(path)
    for folder in MIRRORS:
        prefix = f"{folder}{os.sep}"
        if text.startswith(prefix):
            scheme, _, key = text[len(prefix) :].partition(os.sep)
            if scheme in SCHEMES:
                return f"{scheme}://{key}"
    return None


def display_path(path: str) -> str:
    """Return the displayed form of a path: for a copy, the address of the original."""
    return address_of(path) or _shown(path)


def with_addresses(text: str) -> str:
    """Return a text for people, with addresses instead of paths of copies."""
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
    """Raise an error for an address where only paths are accepted; otherwise it would become a folder called
    `s3:`.

    Args:
        path: local path; other types are ignored.
        what: parameter name, for the message.

    Raises:
        UsageError: the value is an address.
    """
    if not isinstance(path, str | os.PathLike):
        return
    text = str(os.fspath(path))
    if is_address(text) or is_collapsed(text):
        raise UsageError(
            f"{what}: found {text!r}, expected a path of this machine (the command line takes addresses)",
            code=Code.WRONG_ADDRESS,
        )
