"""What this process knows to be secret, kept out of everything that it writes or shows.

Known are the values of environment variables that are named like secrets, passwords in addresses of any variable, the keys of model
files, and keys that providers were given. They are looked for as they are, and as JSON (also JSON inside of a text), Python's `repr`,
HTML, addresses and base64 (`Authorization: Basic`) spell them.

What is not taken for a secret, because masking it would spoil ordinary text: values of fewer than 12 characters (`true`, `1`,
`not-needed`), numbers (but for twelve digits and more that are not round), words of up to 32 lower-case letters and `_` (names of
fields stand in every log), addresses (but for their passwords) and names of files that exist.
"""

from __future__ import annotations

import base64
import html
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from pydantic_core import SchemaValidator

from aigo_bridge.spellings import hint_of, hint_of_text, in_json, in_json_escaped

MASK = "[secret]"
"""What stands for a secret."""

SHORTEST = 12
"""Characters from which on a value may be a secret: shorter ones (`not-needed`, a year, a version) are words of ordinary texts."""

SECRET_NAMES = re.compile(
    r"api[-_]?key|secret|token(?!i[sz])|passw(or)?d|passphrase|credential|private[-_]?key|access[-_]?key|bearer|cookie"
    r"|(^|[-_])(key|auth|authorization|pass|pat)$",
    re.IGNORECASE,
)
"""Names of variables and arguments whose values are secrets."""

_WORD = re.compile(r"[a-z_]{1,32}|(?=.*\D)[\d.,:+\sTZeE-]+|\d+000")
"""Field names, times, round numbers and those with signs: they stand in any log. Of other digits, twelve and more are a key."""
_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


def environment_secrets(environment: Mapping[str, str]) -> dict[str, str]:
    """The secrets in an environment: value → name of its variable."""
    found: dict[str, str] = {}
    for name, value in environment.items():
        secret = value.strip()
        if not _is_text(secret):
            continue
        for password in _passwords(secret):
            found.setdefault(password, name)
        if SECRET_NAMES.search(name) and may_be_secret(secret):
            found.setdefault(secret, name)
    return found


def may_be_secret(value: str) -> bool:
    """Whether the value of something that is named like a secret is one, and no ordinary word, number, address or file."""
    return (
        len(value) >= SHORTEST
        and not _WORD.fullmatch(value)
        and not _ADDRESS.match(value)
        and not _is_file(value)
    )


def _is_file(value: str) -> bool:
    try:
        return Path(value).is_file()
    except (OSError, ValueError):  # too long for a name, or no name at all
        return False


def _passwords(address: str) -> list[str]:
    """The password in an address, as written and as meant."""
    if not _ADDRESS.match(address) or "@" not in address:
        return []
    try:
        password = urlsplit(address).password
    except ValueError:
        return []
    spelled = [] if password is None else [password, unquote(password)]
    return [text for text in dict.fromkeys(spelled) if len(text) >= SHORTEST]


def _is_text(value: str) -> bool:
    """Whether a variable is UTF-8, as everything that is written."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_COLOURED = re.compile(rb'(?P<name>"traceback_ansi"\s*:\s*)"(?P<text>(?:[^"\\]|\\.)*+)"')
_BREAKS = re.compile(r"\\u001b\[[0-9;]*m|\x1b\[[0-9;]*m|\\[nrt]|\s|[│╭╮╰╯─]|\\u25[0-9a-f]{2}")
"""What a coloured traceback has in the midst of words: colours, line breaks, the edges of its frame."""


class Redactor:
    """Takes a set of secrets out of texts."""

    def __init__(self, secrets: Iterable[str]):
        forms: set[str] = set()
        for secret in secrets:
            if len(secret) >= SHORTEST:
                forms |= _forms(secret)
        # Longer ones first, so that one inside of another does not leave a remainder.
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        # In a document of JSON a number or a field's name must stay; it is masked where it comes from.
        in_documents = [form for form in longest_first if not _WORD.fullmatch(form) and not form.isdigit()]
        self._text = _Search(
            [*map(re.escape, longest_first), *map(in_json, longest_first)],
            longest_first,
        )
        self._json = _Search(list(map(in_json, in_documents)), in_documents)
        self._closed = [closed for form in longest_first if len(closed := _BREAKS.sub("", form)) >= SHORTEST]

    def __call__(self, text: str) -> str:
        """A text without secrets; the text itself where there is none."""
        return self._text.replaced(text)

    def json(self, data: bytes) -> bytes:
        """A document of JSON without secrets, still valid; `data` itself where there is none."""
        data = self._without_coloured(data)
        if self._json.finds_nothing(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        clean = self._json.replaced(text)
        return data if clean is text else clean.encode("utf-8", "surrogateescape")

    def _without_coloured(self, data: bytes) -> bytes:
        """Without coloured tracebacks that hold a secret: they are broken to lines, and coloured, in the midst of words."""
        if b"traceback_ansi" not in data or not self._closed:
            return data

        def clean(match: re.Match[bytes]) -> bytes:
            shown = _BREAKS.sub("", match["text"].decode("utf-8", "replace"))
            return match["name"] + b'"' + MASK.encode() + b'"' if self._closed_up(shown) else match[0]

        return _COLOURED.sub(clean, data)

    def _closed_up(self, text: str) -> bool:
        return any(form in text for form in self._closed)

    def value(self, value: Any) -> Any:
        """Plain data without secrets in its texts, keys included; what is no plain data stays."""
        if isinstance(value, str):
            return self(value)
        if isinstance(value, bytes):
            return self(value.decode("latin-1")).encode("latin-1")
        if isinstance(value, Mapping):
            return {self.value(key): self.value(part) for key, part in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self.value, value))
        return value


class _Search:
    """Finds secrets: first whether there may be one, in Rust, then where."""

    def __init__(self, patterns: list[str], forms: list[str]):
        self._forms = forms
        self._patterns = patterns
        hints = dict.fromkeys(hint for form in forms for hint in (hint_of(form), hint_of_text(form)))
        # Some writers escape letters that need it not, too.
        self._suspicion = (
            SchemaValidator({"type": "str", "pattern": "|".join([*hints, _NEEDLESS.pattern])})
            if hints
            else None
        )

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        # Compiled when there is a suspicion: that takes longer than most texts.
        return re.compile("|".join(self._patterns))

    @cached_property
    def _escaped(self) -> re.Pattern[str]:
        return re.compile("|".join(map(in_json_escaped, self._forms)))

    def finds_nothing(self, text: str | bytes) -> bool:
        if self._suspicion is None:
            return True
        # What is no UTF-8 satisfies no validator: its being refused says nothing.
        return not self._suspicion.isinstance_python(text) and (
            text.isascii() or _UTF8.isinstance_python(text)
        )

    def replaced(self, text: str) -> str:
        if self.finds_nothing(text):
            return text
        clean = self._pattern.sub(MASK, text)
        if _NEEDLESS.search(clean):
            clean = self._escaped.sub(MASK, clean)
        return text if clean == text else clean


_NEEDLESS = re.compile(r"\\u00[2-7]")
_UTF8 = SchemaValidator({"type": "str"})


def _forms(secret: str) -> set[str]:
    """How a secret is written where it is not written as it is; what JSON makes of each is found anyway."""
    plain = {secret, secret.strip()}
    forms = plain | {repr(text)[1:-1] for text in plain} | {html.escape(text) for text in plain}
    for text in plain:
        data = text.encode("utf-8", "surrogatepass")
        forms |= {quote(data), quote(data, safe=""), *_base64(data)}
    return {form for form in forms if len(form) >= SHORTEST}


def _base64(data: bytes) -> set[str]:
    """What a secret is in base64, wherever it begins in what is encoded; without the letters that it shares with its neighbours."""
    found: set[str] = set()
    for offset in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(bytes(offset) + data).decode()
            found.add(text[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6])
    return found


# What this process knows


class KnownSecrets:
    """A growing set of secrets, with what takes them out."""

    def __init__(self) -> None:
        self._secrets: set[str] = set()
        self._redactor: Redactor | None = None

    def learn(self, secrets: Iterable[str]) -> None:
        """From now on these are secrets, too."""
        new = {secret for secret in secrets if len(secret) >= SHORTEST} - self._secrets
        if new:
            self._secrets |= new
            self._redactor = None

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
    """Take notice of the secrets among named arguments, such as `api_key` of a provider."""
    KNOWN.learn(
        value
        for name, value in arguments.items()
        if isinstance(value, str) and SECRET_NAMES.search(name) and may_be_secret(value)
    )


def redact(text: str) -> str:
    """A text without what this process knows to be secret."""
    return KNOWN.redactor(text)


def redact_json(data: bytes) -> bytes:
    """A document of JSON without what this process knows to be secret."""
    return KNOWN.redactor.json(data)


def redact_value(value: Any) -> Any:
    """Plain data without what this process knows to be secret."""
    return KNOWN.redactor.value(value)


def redact_error(error: BaseException) -> None:
    """Take secrets out of an exception and of those that it came from, where they stand; engines log and show all of them."""
    chain = list(_chain(error))
    for each in chain:
        each.args = redact_value(each.args)
        for name, value in list(vars(each).items()):
            clean = redact_value(value)
            if clean != value:
                vars(each)[name] = clean
    for each in chain:
        # Some say what cannot be changed: what they say stays unsaid.
        if any(origin is not None and not is_clean(origin) for origin in (each.__cause__, each.__context__)):
            each.__cause__ = each.__context__ = None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """An exception, and all that it came from or consists of."""
    seen: set[int] = set()
    todo: list[BaseException | None] = [error]
    while todo:
        each = todo.pop()
        if each is None or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        todo += [each.__cause__, each.__context__]
        if isinstance(each, BaseExceptionGroup):
            todo += each.exceptions


def is_clean(error: BaseException) -> bool:
    """Whether what an exception says of itself holds no secret."""
    said = f"{error}\n{error!r}"
    return redact(said) == said
