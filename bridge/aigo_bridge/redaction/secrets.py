"""Secrets known to this process, masked in all output.

Known secrets are the values of environment variables with names of secrets, passwords and keys in URLs of any
variable, keys in model files, and keys passed to providers. They are found in plain form and in every
spelling of `redactor.py`.

Some values are not treated as secrets because masking them would damage ordinary text. See `may_be_secret`
for values with names of secrets, and `is_credential` for values that are used as credentials.
"""

from __future__ import annotations

import base64
import binascii
import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, cast
from urllib.parse import parse_qsl, unquote, urlsplit

from aigo_bridge.redaction.redactor import MASK, SHORTEST, WORD, Redactor, parts

__all__ = [
    "KNOWN",
    "MASK",
    "SECRET_NAMES",
    "SHORTEST",
    "KnownSecrets",
    "Redactor",
    "address_secrets",
    "environment_secrets",
    "is_clean",
    "is_credential",
    "learn_arguments",
    "learn_environment",
    "may_be_secret",
    "redact",
    "redact_error",
    "redact_json",
    "redact_on_screen",
    "redact_value",
]

SECRET_NAMES = re.compile(
    r"api[-_]?key|secret|token(?!i[sz])|passw(or)?d|passphrase|credential|private[-_]?key|access[-_]?key|bearer|cookie"
    r"|_pwd$|^pgpassfile$|connection[-_]?string"
    r"|(^|[-_])(key|auth|authorization|pass|pat|dsn)$",
    re.IGNORECASE,
)
"""Names of variables and arguments whose values are secrets."""

_IN_ADDRESSES = re.compile(r"key|sig|token|secret|code|password|auth", re.IGNORECASE)
"""URL parameters whose values are secrets."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_LONG_WORD = re.compile(r"[a-z]{16,}")
_WORDS = re.compile(r"[A-Za-z]+(?:[-_ ][A-Za-z]+)*")
_MIXED = re.compile(r"(?=.*[A-Za-z])(?=.*\d).*|.*[^A-Za-z0-9_. -].*", re.DOTALL)
_SURELY = 12
"""Minimum characters of a value that counts as a secret without further signs, unless it is a word."""


def is_credential(value: str) -> bool:
    """Return whether a credential needs masking: all except values under 8 characters and words such as
    `not-needed`.
    """
    plain = value.strip()
    return len(plain) >= SHORTEST and not (len(plain) < _SURELY and _WORDS.fullmatch(plain))


def may_be_secret(value: str) -> bool:
    """Return whether a value with the name of a secret is one: not a word, number, URL or file."""
    return (
        len(value) >= SHORTEST
        and (len(value) >= _SURELY or (_MIXED.fullmatch(value) is not None and not value.isdigit()))
        and (_LONG_WORD.fullmatch(value) is not None or not WORD.fullmatch(value))
        and not _ADDRESS.match(value)
        and not _is_file(value)
    )


def environment_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the secrets in an environment: value → name of its variable."""
    secrets: dict[str, str] = {}
    for name, value in environment.items():
        secret = value.strip()
        if not _is_text(secret):
            continue
        for part in address_secrets(secret):
            secrets.setdefault(part, name)
        if not SECRET_NAMES.search(name):
            continue
        for part in (secret, *_fields(secret), *_basic(secret)):
            if may_be_secret(part):
                secrets.setdefault(part, name)
    return secrets


def _is_file(value: str) -> bool:
    try:
        return Path(value).is_file()
    except (OSError, ValueError):  # The value is too long for a file name or is not a valid name.
        return False


def address_secrets(address: str) -> list[str]:
    """Return the secrets in a URL: its password, also with the user name, and parameters with names of
    credentials.
    """
    if not _ADDRESS.match(address) or not ("@" in address or "=" in address):
        return []
    try:
        split = urlsplit(address)
        values = [value for name, value in parse_qsl(split.query) if _IN_ADDRESSES.search(name)]
        user, password = split.username, split.password
    except ValueError:
        return []
    if password:
        values += [
            password,
            unquote(password),
            f"{user or ''}:{password}",
            f"{unquote(user or '')}:{unquote(password)}",
        ]
    elif user and len(user) >= _SURELY:
        values += [user, unquote(user)]  # For example `https://TOKEN@host`.
    return [text for text in dict.fromkeys(values) if is_credential(text)]


def _fields(value: str) -> list[str]:
    """Return texts in a JSON object, such as a service account's, whose keys name secrets."""
    if not value.startswith("{"):
        return []
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError):
        return []
    return [part for name, part in fields.items() if isinstance(part, str) and SECRET_NAMES.search(name)]


def _basic(value: str) -> list[str]:
    """Return user and password of `Basic …`, together and the password alone."""
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return []
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return []
    return [pair, pair.partition(":")[2]]


def _is_text(value: str) -> bool:
    """Return whether a variable can be encoded as UTF-8, like all output."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# Secrets of this process


class KnownSecrets:
    """Growing set of secrets with its redactor."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._redactor: Redactor | None = None

    def learn(self, secrets: Iterable[str]) -> None:
        """Add secrets."""
        new = {part for secret in secrets for part in parts(secret)} - self._secrets
        if new:
            self._secrets |= new
            self._redactor = None

    @property
    def values(self) -> frozenset[str]:
        """Return the known secrets."""
        return frozenset(self._secrets)

    def forget(self) -> None:
        """Forget all secrets, for tests with changing environments."""
        self._secrets.clear()
        self._redactor = None

    @property
    def redactor(self) -> Redactor:
        """Return the redactor of the known secrets."""
        if self._redactor is None:
            self._redactor = Redactor(self._secrets)
        return self._redactor


KNOWN = KnownSecrets()
"""Secrets of this process."""


def learn_environment(environment: Mapping[str, str] | None = None) -> None:
    """Learn the secrets in an environment; `None`: the process's own."""
    KNOWN.learn(environment_secrets(os.environ if environment is None else environment))


def learn_arguments(arguments: Mapping[str, Any]) -> None:
    """Learn the secrets among named arguments, e.g. `api_key`, and in mappings such as `headers`."""
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            learn_arguments(value)
        elif isinstance(value, str):
            KNOWN.learn(address_secrets(value))
            if SECRET_NAMES.search(name) and not _is_file(value):
                KNOWN.learn(part for part in (value, *_fields(value), *_basic(value)) if is_credential(part))


def redact(text: str) -> str:
    """Return a text with the known secrets masked."""
    return KNOWN.redactor.text(text)


def redact_on_screen(text: str) -> str:
    """Return a text for a screen with the known secrets masked, even if line breaks split them."""
    return KNOWN.redactor.on_screen(text)


def redact_json(data: bytes) -> bytes:
    """Return a JSON document with the known secrets masked."""
    return KNOWN.redactor.json(data)


def redact_value(value: Any) -> Any:
    """Return plain data with the known secrets masked; `value` itself if it contains none."""
    return KNOWN.redactor.value(value)


def redact_error(error: BaseException) -> None:
    """Mask secrets in an exception and all its causes in place, because engines log and show them."""
    chain = list(_chain(error))
    for link in chain:
        link.args = redact_value(link.args)
        for name, value in list(vars(link).items()):
            clean = redact_value(value)
            if clean != value:
                vars(link)[name] = clean
    for link in chain:
        # Some exceptions cannot be changed; they are removed from the chain.
        if any(origin is not None and not is_clean(origin) for origin in (link.__cause__, link.__context__)):
            link.__cause__ = link.__context__ = None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception, its causes and its members."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        link = todo.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        todo += [link.__cause__, link.__context__]
        if isinstance(link, BaseExceptionGroup):
            todo += link.exceptions


def is_clean(error: BaseException) -> bool:
    """Return whether the text of an exception contains no secret."""
    text = f"{error}\n{error!r}"
    return redact(text) == text


_DOCUMENTS = frozenset({".json", ".jsonl"})


class _CleanFile:
    """Binary file that masks secrets on writing."""

    def __init__(self, file: BinaryIO, *, document: bool):
        self._file = file
        self._document = document

    def write(self, data: bytes) -> int:
        """Write whole values, or the text between them, with secrets masked."""
        self._file.write(redact_json(data) if self._document else redact_value(data))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def clean_file(file: BinaryIO, path: Path) -> BinaryIO:
    """Return a file that masks secrets on writing: JSON files stay valid JSON, other files are text."""
    document = any(suffix.lower() in _DOCUMENTS for suffix in path.suffixes[-2:])
    return cast("BinaryIO", _CleanFile(file, document=document))


@contextmanager
def open_clean(path: Path) -> Iterator[BinaryIO]:
    """Open a file for writing with secrets masked, replacing an existing one."""
    with path.open("wb") as file:
        yield clean_file(file, path)
