"""What this process knows to be secret, kept out of everything that it writes or shows.

Known are the values of environment variables that are named like secrets, passwords and keys in addresses of
any variable, the keys of model files, and keys that providers were given. They are looked for as they are,
and in every spelling that `redactor.py` knows.

What is not taken for a secret, because masking it would spoil ordinary text: see `may_be_secret` for values
that are only named like one, and `is_credential` for those that are used as one.
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
"""Parameters of addresses whose values are secrets."""

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
_LONG_WORD = re.compile(r"[a-z]{16,}")
_WORDS = re.compile(r"[A-Za-z]+(?:[-_ ][A-Za-z]+)*")
_MIXED = re.compile(r"(?=.*[A-Za-z])(?=.*\d).*|.*[^A-Za-z0-9_. -].*", re.DOTALL)
_SURELY = 12
"""Characters from which on a value that is no word needs nothing else to be a secret."""


def is_credential(value: str) -> bool:
    """Whether what is used as a key is worth hiding: all but values of fewer than 8 characters, and words
    such as `not-needed`.
    """
    plain = value.strip()
    return len(plain) >= SHORTEST and not (len(plain) < _SURELY and _WORDS.fullmatch(plain))


def may_be_secret(value: str) -> bool:
    """Whether the value of what is named like a secret is one: no word, number, address or file."""
    return (
        len(value) >= SHORTEST
        and (len(value) >= _SURELY or (_MIXED.fullmatch(value) is not None and not value.isdigit()))
        and (_LONG_WORD.fullmatch(value) is not None or not WORD.fullmatch(value))
        and not _ADDRESS.match(value)
        and not _is_file(value)
    )


def environment_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The secrets in an environment: value → name of its variable."""
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
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False


def address_secrets(address: str) -> list[str]:
    """The secrets in an address: its password, alone and behind its user, and parameters named like keys."""
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
        values += [user, unquote(user)]  # `https://TOKEN@host`
    return [text for text in dict.fromkeys(values) if is_credential(text)]


def _fields(value: str) -> list[str]:
    """Texts of a JSON object, such as a service account's, that are named like secrets."""
    if not value.startswith("{"):
        return []
    try:
        fields = json.loads(value)
    except (ValueError, RecursionError):
        return []
    return [part for name, part in fields.items() if isinstance(part, str) and SECRET_NAMES.search(name)]


def _basic(value: str) -> list[str]:
    """User and password of `Basic …`, together and the password alone."""
    scheme, _, encoded = value.partition(" ")
    if scheme.lower() != "basic":
        return []
    try:
        pair = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return []
    return [pair, pair.partition(":")[2]]


def _is_text(value: str) -> bool:
    """Whether a variable is UTF-8, as everything that is written."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


# What this process knows


class KnownSecrets:
    """A growing set of secrets, with what takes them out."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._redactor: Redactor | None = None

    def learn(self, secrets: Iterable[str]) -> None:
        """From now on these are secrets, too."""
        new = {part for secret in secrets for part in parts(secret)} - self._secrets
        if new:
            self._secrets |= new
            self._redactor = None

    @property
    def values(self) -> frozenset[str]:
        """What is known now."""
        return frozenset(self._secrets)

    def forget(self) -> None:
        """Nothing is secret any more: for tests, whose environments come and go."""
        self._secrets.clear()
        self._redactor = None

    @property
    def redactor(self) -> Redactor:
        """Takes out what is known now."""
        if self._redactor is None:
            self._redactor = Redactor(self._secrets)
        return self._redactor


KNOWN = KnownSecrets()
"""The secrets of this process."""


def learn_environment(environment: Mapping[str, str] | None = None) -> None:
    """Take notice of the secrets in an environment; `None`: the process's own."""
    KNOWN.learn(environment_secrets(os.environ if environment is None else environment))


def learn_arguments(arguments: Mapping[str, Any]) -> None:
    """Take notice of the secrets among named arguments, such as `api_key` of a provider, and in mappings such
    as `headers`.
    """
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            learn_arguments(value)
        elif isinstance(value, str):
            KNOWN.learn(address_secrets(value))
            if SECRET_NAMES.search(name) and not _is_file(value):
                KNOWN.learn(part for part in (value, *_fields(value), *_basic(value)) if is_credential(part))


def redact(text: str) -> str:
    """A text without what this process knows to be secret."""
    return KNOWN.redactor(text)


def redact_on_screen(text: str) -> str:
    """A text as a screen shows it without what this process knows to be secret, also where its lines are
    broken in the midst of words.
    """
    return KNOWN.redactor.on_screen(text)


def redact_json(data: bytes) -> bytes:
    """A document of JSON without what this process knows to be secret."""
    return KNOWN.redactor.json(data)


def redact_value(value: Any) -> Any:
    """Plain data without what this process knows to be secret."""
    return KNOWN.redactor.value(value)


def redact_error(error: BaseException) -> None:
    """Take secrets out of an exception and all behind it, where they stand; engines log and show them."""
    chain = list(_chain(error))
    for link in chain:
        link.args = redact_value(link.args)
        for name, value in list(vars(link).items()):
            clean = redact_value(value)
            if clean != value:
                vars(link)[name] = clean
    for link in chain:
        # Some say what cannot be changed: what they say stays unsaid.
        if any(origin is not None and not is_clean(origin) for origin in (link.__cause__, link.__context__)):
            link.__cause__ = link.__context__ = None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and all that it came from or consists of."""
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
    """Whether what an exception says of itself holds no secret."""
    text = f"{error}\n{error!r}"
    return redact(text) == text


_DOCUMENTS = frozenset({".json", ".jsonl"})


class _CleanFile:
    """A file that writes no secret."""

    def __init__(self, file: BinaryIO, *, document: bool):
        self._file = file
        self._document = document

    def write(self, data: bytes) -> int:
        """Write whole values, or what stands between them, without secrets."""
        self._file.write(redact_json(data) if self._document else _redacted(data))
        return len(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


def clean_file(file: BinaryIO, path: Path) -> BinaryIO:
    """A file of that name that writes no secret: JSON stays JSON, all else is text."""
    document = any(suffix.lower() in _DOCUMENTS for suffix in path.suffixes[-2:])
    return cast("BinaryIO", _CleanFile(file, document=document))


@contextmanager
def open_clean(path: Path) -> Iterator[BinaryIO]:
    """A file to write, without secrets, in the place of one that may be there."""
    with path.open("wb") as file:
        yield clean_file(file, path)


def _redacted(data: bytes) -> bytes:
    return redact(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
