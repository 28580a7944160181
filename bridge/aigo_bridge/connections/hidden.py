"""Secrets of a model file: where they come from, and how they are kept out of everything that is written.

A secret is written as `<< secrets.NAME >>` or `{name: NAME}`, looked up in the `secrets:` of the same file (or of the
run file around it), or comes from an environment variable (`$NAME`, put in while the file is read).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from aigo_bridge.secrets import MASK, SHORTEST, Redactor, redact

__all__ = [
    "MASK",
    "SENSITIVE",
    "SHORTEST",
    "Mask",
    "MissingSecretError",
    "checked",
    "resolved",
    "secret_name",
]

_REFERENCE = re.compile(r"\s*<<\s*secrets\.([A-Za-z0-9_-]+)\s*>>\s*")
_UNSET = re.compile(r"\$(?:\w+|\{[^}]*\})")

SENSITIVE = re.compile(r"auth|api[-_]?key|token|secret|password|cookie|credential", re.IGNORECASE)
"""Names of headers and variables whose values are secrets, however they were written."""


class MissingSecretError(ValueError):
    """A value refers to something that is not there; the message says to what."""


def secret_name(value: str) -> str | None:
    """The secret that a text refers to; `None` for a text that refers to none.

    Raises:
        MissingSecretError: it refers to one in the middle, where nothing would be put in.
    """
    match = _REFERENCE.fullmatch(value)
    if match is None and _REFERENCE.search(value):
        raise MissingSecretError(
            "a secret has to be the whole value; put what stands around it into the secret"
        )
    return match[1] if match is not None else None


def resolved(name: str, secrets: Mapping[str, str]) -> str:
    """The value of a secret.

    Raises:
        MissingSecretError: there is no such secret, or its environment variable is not set.
    """
    if name not in secrets:
        known = ", ".join(sorted(secrets)) or "none"
        raise MissingSecretError(f"unknown secret {name!r} (declared: {known})")
    return checked(secrets[name])


def checked(value: str) -> str:
    """A value that is no longer the name of a variable.

    Raises:
        MissingSecretError: its environment variable is not set.
    """
    if _UNSET.fullmatch(value.strip()):
        raise MissingSecretError(f"environment variable {value.strip()[1:].strip('{}')!r} is not set")
    return value


class Mask:
    """Takes the secrets of one connection out of texts, and those that the process knows besides."""

    def __init__(self, secrets: Iterable[str]):
        self._redactor = Redactor(secrets)

    def __call__(self, text: str) -> str:
        """The text without secrets."""
        return redact(self._redactor(text))
