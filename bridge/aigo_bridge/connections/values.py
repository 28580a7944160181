"""Values of a model file: secrets put in, and remembered so that nothing shows them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote, urlsplit

from aigo_bridge.connections.hidden import SENSITIVE, MissingSecretError, checked, resolved, secret_name
from aigo_bridge.errors import Issue
from aigo_bridge.reading import Document
from aigo_bridge.reading.nodes import ExpandedNode, child
from aigo_bridge.spec import ModelSpec
from aigo_bridge.spec.models import SecretName

_IN_ADDRESSES = re.compile(r"key|sig|token|secret|code|password|auth", re.IGNORECASE)
"""Parameters of addresses whose values are secrets."""


class Values:
    """Reads values, collects what is wrong with them, and remembers which of them are secrets."""

    def __init__(self, document: Document[ModelSpec], secrets: Mapping[str, str]):
        self._document = document
        self._secrets = secrets
        self.issues: list[Issue] = []
        self.hidden: set[str] = set()

    def scalar(
        self, value: str | float | bool | SecretName, path: tuple[str, ...], *, secret: bool
    ) -> str | float | bool:
        """A value, or the secret that it refers to.

        Args:
            value: as written.
            path: where it stands.
            secret: whether it is a secret though it does not refer to one.
        """
        if isinstance(value, bool | int | float):
            return value
        try:
            name = value.name if isinstance(value, SecretName) else secret_name(value)
            if name is not None:
                found, secret = resolved(name, self._secrets), True
            else:
                assert isinstance(value, str)
                found = checked(value)
                secret = secret or self._from_sensitive_variable(path)
        except MissingSecretError as error:
            self.issues.append(Issue(f"{path[-1]!r}: {error}", path=path))
            return ""
        if secret:
            self.hidden.add(found)
        return found

    def text(self, value: str | SecretName, path: tuple[str, ...], *, secret: bool = False) -> str:
        """As `scalar`, for a value that is a text."""
        return str(self.scalar(value, path, secret=secret))

    def is_secret(self, value: str) -> bool:
        """Whether a value is a secret, or holds one."""
        return any(secret and secret in value for secret in self.hidden)

    def hide_parts(self, url: str) -> None:
        """Remember the secrets in an address: a password, and parameters that are named like keys."""
        parts = urlsplit(url)
        if parts.password:
            self.hidden |= {parts.password, unquote(parts.password)}
        for name, value in parse_qsl(parts.query):
            if _IN_ADDRESSES.search(name):
                self.hidden.add(value)

    def _from_sensitive_variable(self, path: tuple[str, ...]) -> bool:
        node = self._document.node
        for part in path:
            found = child(node, part)
            if found is None:
                return False
            node = found[1]
        return isinstance(node, ExpandedNode) and SENSITIVE.search(node.written) is not None
