"""Removal of secrets from texts, JSON documents and plain data.

`Redactor` masks known values in all spellings, and it applies rules such as formats of keys (`rules.py`). For
known values, a pattern in Rust first checks whether a text may contain a secret: a longer part of a spelling,
or an escape of a character that needs none. Almost no text does. Then common spellings are replaced. Finally,
remaining suspicious parts are checked by decoding all escapes around them.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from functools import cached_property
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

from pydantic_core import SchemaValidator

from aigo_bridge.text.escapes import (
    NEEDLESS,
    hint_of,
    hint_of_text,
    in_json,
    ranges,
    ranges_on_screen,
    replaced,
    undone,
)

T = TypeVar("T")

MASK = "[secret]"
"""Text that replaces a secret."""

SHORTEST = 8
"""Minimum characters of a secret; shorter values are words of ordinary texts."""

WORD = re.compile(r"[a-z_]{1,32}|(?=.*\D)[\d.,:+\sTZeE-]+|\d+000")
"""Field names, times, round numbers and numbers with signs, which occur in any log. Other numbers with at
least twelve digits may be keys.
"""

_SECRET_NAME = re.compile(r"(?i)(^|_|-)(api[_-]?key|token|secret|password|authorization|credentials?)$")
_LEAST_VALUE = 12
"""Minimum characters of a value under the name of a secret; `eos_token: </s>` is too short."""
_LEAST_LINE = 16
"""Minimum characters of one line of a multi-line secret that is itself a secret."""
_PART = re.compile(r"[A-Za-z0-9]{6,24}")
"""Text that minimal escaping leaves unchanged."""
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"(?P<field>\s*:)?', re.DOTALL)
"""Text in a JSON document, and whether it is a key."""
_COLOURED = re.compile(rb'(?P<name>"traceback_ansi"\s*:\s*)"(?P<text>(?:[^"\\]|\\.)*+)"')
_BREAKS = re.compile(r"\\u001b\[[0-9;]*m|\x1b\[[0-9;]*m|\\[nrt]|\s|[│╭╮╰╯─]|\\u25[0-9a-f]{2}")
"""Characters within words of a colored traceback: colors, line breaks and frame borders."""
_UTF8 = SchemaValidator({"type": "str", "pattern": ""})
"""Validator of text and bytes without lone surrogates. Without a pattern it accepts every text."""


class Rules(Protocol):
    """Search for secrets by patterns, which counts replacements by their names."""

    def suspects(self, data: bytes) -> bool:
        """Return whether a JSON document may contain a secret."""
        ...

    def in_text(self, text: str, counts: Counter[str]) -> str:
        """Return a text with secrets replaced; `text` itself if it contains none."""
        ...

    def in_json(self, data: bytes, counts: Counter[str]) -> bytes:
        """Return a JSON document with secrets replaced; `data` itself if it contains none."""
        ...


class Redactor:
    """Removal of secrets: known values, and everything that rules find."""

    def __init__(self, secrets: Iterable[str] = (), rules: Rules | None = None):
        self.found: Counter[str] = Counter()
        """Name of a rule → number of replacements."""
        self.rules = rules
        values = {part for secret in secrets for part in parts(secret)}
        forms = {form for secret in values for form in _forms(secret)}
        # Longer forms first, so that a form inside another one leaves no remainder.
        longest_first = sorted(forms, key=lambda form: (-len(form), form))
        # In a JSON document, numbers and keys must stay; such a word in a text is not a secret.
        words = [
            form for form in longest_first if form in values and (WORD.fullmatch(form) or form.isdigit())
        ]
        plain = [form for form in longest_first if form not in words]
        patterns = [*map(re.escape, longest_first), *map(in_json, longest_first)]
        self._text = _Search(patterns, longest_first, document=False)
        self._json = _Search(list(map(in_json, plain)), plain, document=True)
        self._words = _Search(list(map(re.escape, words)), words, document=False)
        self._closed = [closed for form in longest_first if len(closed := _BREAKS.sub("", form)) >= SHORTEST]

    def suspects(self, data: bytes) -> bool:
        """Return whether a JSON document, which must be UTF-8, may contain a secret."""
        return not self._finds_nothing(data) or (self.rules is not None and self.rules.suspects(data))

    def text(self, text: str) -> str:
        """Return a text with secrets masked; the same object if it contains none."""
        clean = self._text.replaced(text)
        return clean if self.rules is None else self.rules.in_text(clean, self.found)

    def texts(self, texts: list[str]) -> list[str]:
        """Return several short texts with secrets masked; the same list if they contain none. It searches
        them together and does not count replacements: names are counted in other places.
        """
        counts = Counter(self.found)
        together = "\n".join(texts)
        clean = texts if self.text(together) == together else [self.text(text) for text in texts]
        self._set_counts(counts)
        return clean

    def on_screen(self, text: str) -> str:
        """Return a text for a screen with secrets masked, even if line breaks split them."""
        return self._text.replaced_on_screen(self.text(text))

    def json(self, data: bytes) -> bytes:
        """Return a JSON document with secrets masked; `data` itself if it contains none."""
        clean = self._json_without_values(data)
        return clean if self.rules is None else self.rules.in_json(clean, self.found)

    def joined(self, documents: Sequence[bytes]) -> bytes:
        """Return JSON documents with secrets masked, joined by commas.

        A secret that contains only digits may be part of a number. The replacement text then replaces the
        whole number.
        """
        data = b",\n".join(documents)
        counts = Counter(self.found)
        clean = self.json(data)
        if clean is data or clean == data:
            return data
        try:
            json.loads(b"[" + clean + b"]")
        except ValueError:
            from aigo_bridge.text.json_text import dumps  # few texts contain a secret

            self._set_counts(counts)
            return b",\n".join(dumps(self._cleaned(json.loads(document))) for document in documents)
        return clean

    def value(self, value: T) -> T:
        """Return plain data or frozen dataclasses with secrets masked in all texts and keys; `value` itself
        if it contains none. Other objects are unchanged.
        """
        if self.rules is None:
            clean: Any = self._cleaned(value)
            return value if clean == value else clean
        from aigo_bridge.text.json_text import dumps  # loads packages that few commands need

        data = dumps(value)  # as a document, because rules also search for names next to values
        clean = self.joined([data])
        return value if clean == data else json.loads(clean)

    def settings(self, value: Any, name: str = "") -> Any:
        """Return a copy of settings in which values under names of secrets are masked. The configuration of a
        model contains its API key.
        """
        if isinstance(value, dict):
            return {key: self.settings(item, str(key)) for key, item in value.items()}
        if isinstance(value, list):
            return [self.settings(item) for item in value]
        is_text = isinstance(value, str) and len(value) >= _LEAST_VALUE and not value.startswith("[redacted:")
        if not is_text or not _SECRET_NAME.search(name):
            return value
        kind = f"value of {name}"
        self.found[kind] += 1
        return f"[redacted: {kind}]"

    def _set_counts(self, counts: Counter[str]) -> None:
        self.found.clear()
        self.found.update(counts)

    def _finds_nothing(self, data: bytes) -> bool:
        return self._json.finds_nothing(data) and self._words.finds_nothing(data)

    def _json_without_values(self, data: bytes) -> bytes:
        if self._closed and b"traceback_ansi" in data:
            data = self._without_coloured(data)
        if self._finds_nothing(data):
            return data
        text = data.decode("utf-8", "surrogateescape")
        clean = self._without_words(self._json.replaced(text))
        return data if clean is text else clean.encode("utf-8", "surrogateescape")

    def _without_words(self, text: str) -> str:
        if self._words.finds_nothing(text):
            return text

        def cleaned(match: re.Match[str]) -> str:
            return match[0] if match["field"] else self._words.replaced(match[0])

        clean = _STRING.sub(cleaned, text)
        return text if clean == text else clean

    def _without_coloured(self, data: bytes) -> bytes:
        """Remove colored tracebacks that contain a secret split by line breaks."""

        def clean(match: re.Match[bytes]) -> bytes:
            shown = _BREAKS.sub("", match["text"].decode("utf-8", "replace"))
            return match["name"] + b'"' + MASK.encode() + b'"' if self._closed_up(shown) else match[0]

        return _COLOURED.sub(clean, data)

    def _closed_up(self, text: str) -> bool:
        return any(form in text for form in self._closed)

    def _cleaned(self, value: Any) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bytes):
            return self.text(value.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")
        if isinstance(value, Mapping):
            return {self._cleaned_key(key): self._cleaned(part) for key, part in value.items()}
        if type(value) in (list, tuple):
            return type(value)(map(self._cleaned, value))
        if self.rules is not None and isinstance(value, int | float) and not isinstance(value, bool):
            number = json.dumps(value).encode()
            clean = self.rules.in_json(number, self.found)
            return value if clean == number else clean.decode()
        if is_dataclass(value) and not isinstance(value, type) and value.__dataclass_params__.frozen:  # type: ignore[attr-defined]  # not in typeshed
            parts_by_name = {part.name: getattr(value, part.name) for part in fields(value)}
            clean_parts = {name: self.value(part) for name, part in parts_by_name.items()}
            changed = {name: part for name, part in clean_parts.items() if part is not parts_by_name[name]}
            return replace(value, **changed) if changed else value
        return value

    def _cleaned_key(self, key: Any) -> Any:
        if isinstance(key, str) and self.rules is None:
            return self._json.replaced(key)
        return self._cleaned(key)


class _Search:
    """Search for secrets: first a fast check in Rust, then the exact positions."""

    def __init__(self, patterns: list[str], forms: list[str], *, document: bool):
        self._forms = forms
        self._patterns = patterns
        self._document = document
        self._parts = list(dict.fromkeys(part for form in forms if (part := _part(form)) is not None))
        short = [form for form in forms if _part(form) is None]
        hints = [*self._parts, *(hint for form in short for hint in (hint_of(form), hint_of_text(form)))]
        self._suspicion = (
            SchemaValidator({"type": "str", "pattern": "|".join([*dict.fromkeys(hints), NEEDLESS])})
            if hints
            else None
        )

    # Compiled only for suspicious texts, because compilation takes longer than checking most texts.

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        return re.compile("|".join(self._patterns))

    @cached_property
    def _meant(self) -> re.Pattern[str]:
        """Pattern of all forms with decoded escapes."""
        meant = dict.fromkeys(text for form in self._forms for text in (form, undone(form)))
        return re.compile("|".join(map(re.escape, sorted(meant, key=len, reverse=True))))

    @cached_property
    def _suspects(self) -> re.Pattern[str]:
        return re.compile("|".join([*self._parts, NEEDLESS]))

    def finds_nothing(self, text: str | bytes) -> bool:
        if self._suspicion is None:
            return True
        # The validators reject text that is not UTF-8, so their result proves nothing.
        return not self._suspicion.isinstance_python(text) and (
            text.isascii() or _UTF8.isinstance_python(text)
        )

    def replaced(self, text: str) -> str:
        if self.finds_nothing(text):
            return text
        clean = self._pattern.sub(MASK, text)
        suspects = [match.span() for match in self._suspects.finditer(clean)]
        if suspects:
            places = ranges(clean, self._meant, suspects, len(self._forms[0]), document=self._document)
            clean = replaced(clean, places, MASK)
        return text if clean == text else clean

    def replaced_on_screen(self, text: str) -> str:
        if self._suspicion is None or "\n" not in text.strip("\n"):
            return text
        return replaced(text, ranges_on_screen(text, self._meant), MASK)


def _part(form: str) -> str | None:
    """Return the longest part of a form that minimal escaping never changes; `None` if all are short."""
    return max(_PART.findall(form), key=len, default=None)


_SCHEME = re.compile(r"(?:basic|bearer|token|apikey)\s+", re.IGNORECASE)


def parts(secret: str) -> set[str]:
    """Return a secret and its parts that are secrets themselves: without surrounding whitespace, without
    `Bearer`, each line of a multi-line key.
    """
    plain = secret.strip()
    lines = [line.strip() for line in plain.splitlines()]
    inner = [line for line in lines if len(line) >= _LEAST_LINE and not line.startswith("-----")]
    pieces = {secret, plain, _SCHEME.sub("", plain, count=1) if _SCHEME.match(plain) else plain}
    if len(lines) > 1:
        pieces |= {*inner, "".join(inner), "\r\n".join(lines), "\n".join(lines)}
    return {part for part in pieces if len(part) >= SHORTEST}


def _forms(secret: str) -> set[str]:
    """Return encoded forms of a secret; JSON spellings of each form are found separately."""
    data = secret.encode("utf-8", "surrogatepass")
    forms = {secret, html.escape(secret), repr(secret)[1:-1], data.hex(), data.hex().upper()}
    for text in (quote(data), quote(data, safe="")):
        forms |= {text, text.replace("%20", "+")}
    forms |= _base64(data)
    return {form for form in forms if len(form) >= SHORTEST}


def _base64(data: bytes) -> set[str]:
    """Return Base64 forms of a secret at each offset, without letters that adjacent bytes change."""
    texts: set[str] = set()
    for offset in range(3):
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            text = encode(bytes(offset) + data).decode()
            texts.add(text[(offset * 8 + 5) // 6 : (offset + len(data)) * 8 // 6])
    return texts
