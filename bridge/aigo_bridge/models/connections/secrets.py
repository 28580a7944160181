"""Secrets of a model file.

A secret is written as `<< secrets.NAME >>` or `{name: NAME}` and looked up in the `secrets:` of the same file
or of the surrounding run file. It can also come from an environment variable (`$NAME`), which is replaced
while the file is read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from aigo_bridge.codes import Code
from aigo_bridge.errors import Issue
from aigo_bridge.reading import Document
from aigo_bridge.reading.nodes import VariableNode, child
from aigo_bridge.redaction.secrets import address_secrets
from aigo_bridge.spec.models import ModelSpec, SecretName

_REFERENCE = re.compile(r"\s*<<\s*secrets\.([A-Za-z0-9_-]+)\s*>>\s*")
_UNSET = re.compile(r"\$(?:\w+|\{[^}]*\})")

SENSITIVE = re.compile(r"auth|api[-_]?key|token|secret|password|cookie|credential", re.IGNORECASE)
"""Names of headers and variables whose values always count as secrets."""


class MissingSecretError(ValueError):
    """Reference to a secret or variable that does not exist; the message names it."""


def secret_name(value: str) -> str | None:
    """Return the name of the secret that a text refers to; `None` if the text contains no reference.

    Raises:
        MissingSecretError: the reference is only a part of the text, where it would not be replaced.
    """
    match = _REFERENCE.fullmatch(value)
    if match is None and _REFERENCE.search(value):
        raise MissingSecretError("a secret must be the whole value; put the surrounding text into the secret")
    return match[1] if match is not None else None


def resolved(name: str, secrets: Mapping[str, str]) -> str:
    """Return the value of a secret.

    Raises:
        MissingSecretError: the secret does not exist, or its environment variable is not set.
    """
    if name not in secrets:
        names = ", ".join(sorted(secrets)) or "none"
        raise MissingSecretError(f"unknown secret {name!r} (declared: {names})")
    return checked(secrets[name])


def checked(value: str) -> str:
    """Return a value after checking that it is not an unset environment variable.

    Raises:
        MissingSecretError: its environment variable is not set.
    """
    if _UNSET.fullmatch(value.strip()):
        raise MissingSecretError(f"environment variable {value.strip()[1:].strip('{}')!r} is not set")
    return value


class SecretValues:
    """Reader of values that collects problems and remembers which values are secrets."""

    def __init__(self, document: Document[ModelSpec], secrets: Mapping[str, str]):
        self._document = document
        self._secrets = secrets
        self.issues: list[Issue] = []
        self.hidden: set[str] = set()

    def scalar(
        self, value: str | float | bool | SecretName, path: tuple[str, ...], *, secret: bool
    ) -> str | float | bool:
        """Return a value, or the secret that it refers to.

        Args:
            value: value from the file.
            path: position in the file.
            secret: whether the value is a secret even if it is not a reference.
        """
        if isinstance(value, bool | int | float):
            return value
        try:
            name = value.name if isinstance(value, SecretName) else secret_name(value)
            if name is not None:
                text, secret = resolved(name, self._secrets), True
            else:
                assert isinstance(value, str)
                text = checked(value)
                secret = secret or self._from_sensitive_variable(path)
        except MissingSecretError as error:
            self.issues.append(Issue(f"{path[-1]!r}: {error}", path=path, code=Code.MISSING_SECRET))
            return ""
        if secret:
            self.hidden.add(text)
        return text

    def text(self, value: str | SecretName, path: tuple[str, ...], *, secret: bool = False) -> str:
        """Return the same as `scalar`, as a text."""
        return str(self.scalar(value, path, secret=secret))

    def is_secret(self, value: str) -> bool:
        """Return whether a value is or contains a secret."""
        return any(secret and secret in value for secret in self.hidden)

    def hide_parts(self, url: str) -> None:
        """Remember the secrets in a URL: a password, and query parameters with names of credentials."""
        self.hidden |= set(address_secrets(url))

    def _from_sensitive_variable(self, path: tuple[str, ...]) -> bool:
        node = self._document.node
        for part in path:
            entry = child(node, part)
            if entry is None:
                return False
            node = entry[1]
        return (
            isinstance(node, VariableNode) and node.is_expanded and SENSITIVE.search(node.value) is not None
        )
