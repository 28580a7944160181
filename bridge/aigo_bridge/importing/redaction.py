"""Secrets, taken out of a log before anything else sees it.

Replacing works on the bytes of a member, so that nothing that is written later (traces, metadata, errors, file
names) can contain what was found. Key formats are printable ASCII without quotes: such a text stands in JSON as it is. Values
of the environment may hold any character, and are looked for in every way that JSON spells it, also in JSON inside of a text.
Only whole characters are replaced, so that the document stays valid.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache

from pydantic_core import SchemaValidator

from aigo_bridge.errors import UsageError
from aigo_bridge.secrets import environment_secrets
from aigo_bridge.spellings import PLAIN, hint_of, in_json

_ESCAPE = r"(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4})"
"""Behind an escape of JSON a word begins: the `n` of a line break is no letter."""
_START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPE})"

WELL_KNOWN: Mapping[str, tuple[str, str]] = {
    # Name → (a pattern without look-around that finds at least all secrets, the pattern). The first is searched in
    # Rust, some fifty times faster than Python can, and nearly always in vain.
    "openai or anthropic key": ("sk-[A-Za-z0-9_-]{20}", _START + r"sk-[A-Za-z0-9_-]{20,}"),
    "aws access key id": ("A[KS]IA[A-Z0-9]{16}", _START + r"A[KS]IA[A-Z0-9]{16}(?![A-Za-z0-9])"),
    "google api key": ("AIza[A-Za-z0-9_-]{35}", _START + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    "github token": ("gh[pousr]_[A-Za-z0-9]{36}", _START + r"gh[pousr]_[A-Za-z0-9]{36,}"),
    "github fine-grained token": ("github_pat_[A-Za-z0-9_]{40}", r"github_pat_[A-Za-z0-9_]{40,}"),
    "gitlab token": ("glpat-[A-Za-z0-9_-]{20}", r"glpat-[A-Za-z0-9_-]{20,}"),
    "hugging face token": ("hf_[A-Za-z0-9]{30}", _START + r"hf_[A-Za-z0-9]{30,}"),
    "slack token": ("xox[abposr]-[A-Za-z0-9-]{20}", _START + r"xox[abposr]-[A-Za-z0-9-]{20,}"),
    "private key": (
        "PRIVATE KEY-----",
        r"-----BEGIN [A-Z ]*PRIVATE KEY-----[A-Za-z0-9+/=\\nr :,-]+?-----END [A-Z ]*PRIVATE KEY-----",
    ),
    "json web token": ("eyJhbGciOi", r"eyJhbGciOi[A-Za-z0-9_-]+\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]{16,}"),
}


@dataclass(frozen=True)
class Redaction:
    """What to look for, and how often it was found."""

    rules: tuple[tuple[str, bytes], ...] = ()
    """(name, regular expression) of the secrets; compiled when there is a suspicion, which takes longer than most logs."""
    suspicion: SchemaValidator | None = None
    """Accepts every text that has a match of any rule, and few others; `None` where every text must be searched."""
    found: Counter[str] = field(default_factory=Counter)
    """Name of the rule → matches replaced so far."""
    spelled: tuple[tuple[str, str], ...] = ()
    """(name, secret) of the secrets that JSON spells otherwise than they are: to be found in texts that are no JSON."""

    def suspects(self, data: bytes) -> bool:
        """Whether `data`, which must be UTF-8, may hold a secret."""
        return self.suspicion is None or self.suspicion.isinstance_python(data)

    def apply(self, data: bytes) -> bytes:
        """`data` with every secret replaced by `[redacted: <name>]`; `data` itself where there is none."""
        # Bytes that are not UTF-8 satisfy no validator: their being refused says nothing.
        readable = data.isascii() or _UTF8.isinstance_python(data)
        if readable and not self.suspects(data):
            return data
        for name, pattern in self.rules:
            if readable and name in WELL_KNOWN and not _hint(name).isinstance_python(data):
                continue
            replaced, count = re.subn(pattern, f"[redacted: {name}]".encode(), data)
            if count:
                data = replaced
                self.found[name] += count
        return data

    def text(self, text: str) -> str:
        """As `apply`, for a text of Python."""
        for name, secret in self.spelled:
            if count := text.count(secret):
                text = text.replace(secret, f"[redacted: {name}]")
                self.found[name] += count
        data = text.encode("utf-8", "surrogatepass")
        clean = self.apply(data)
        return text if clean is data else clean.decode("utf-8", "surrogatepass")

    def texts(self, texts: list[str]) -> list[str]:
        """As `text`, for many short ones, which are searched at once; for names of what is counted elsewhere: not counted."""
        together = "\n".join(texts)
        if not texts or not (
            self.suspects(together.encode("utf-8", "replace"))
            or any(secret in text for _, secret in self.spelled for text in texts)
        ):
            return texts
        uncounted = replace(self, found=Counter())
        return [uncounted.text(text) for text in texts]


@cache
def _hint(name: str) -> SchemaValidator:
    """Accepts every text that may have a match of a well-known rule."""
    return SchemaValidator({"type": "str", "pattern": WELL_KNOWN[name][0]})


_UTF8 = SchemaValidator({"type": "str"})
_NOTHING = SchemaValidator({"type": "none"})
NO_REDACTION = Redaction(suspicion=_NOTHING)


def redaction(
    patterns: Iterable[str] = (), *, environment: Mapping[str, str] | None = None, well_known: bool = True
) -> Redaction:
    """Build a `Redaction`.

    Args:
        patterns: further regular expressions, as the user typed them.
        environment: variables whose values are secrets when their names say so; the process's own by default.
        well_known: look for the key formats in `WELL_KNOWN`.

    Raises:
        UsageError: a pattern is not a regular expression, or matches the empty text.
    """
    rules: list[tuple[str, bytes]] = []
    hints: list[str] = []
    variables = os.environ if environment is None else environment
    values = environment_secrets(variables)
    spelled: list[tuple[str, str]] = []
    # Longer values first, so that one value inside another does not leave a remainder.
    for secret, name in sorted(values.items(), key=lambda item: -len(item[0])):
        kind = f"value of {_printable(name)}"
        rules.append((kind, in_json(secret).encode()))
        hints.append(hint_of(secret))
        if not PLAIN.fullmatch(secret.replace("/", "x")):
            spelled.append((kind, secret))
    if well_known:
        for name, (hint, pattern) in WELL_KNOWN.items():
            rules.append((name, pattern.encode()))
            hints.append(hint)
    own = [_checked(text) for text in patterns]
    rules += own
    # Python's regular expressions are richer than Rust's: the user's own are always searched.
    if own:
        suspicion = None
    else:
        suspicion = SchemaValidator({"type": "str", "pattern": "|".join(hints)}) if hints else _NOTHING
    return Redaction(tuple(rules), suspicion, spelled=tuple(spelled))


def _checked(text: str) -> tuple[str, bytes]:
    try:
        pattern = re.compile(text.encode())
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}") from error
    if pattern.match(b""):
        raise UsageError(f"{text!r} matches the empty text, expected a pattern for a secret")
    return f"pattern {_printable(text)}", text.encode()


def _printable(text: str) -> str:
    """`text` without the characters that would end or escape a JSON text."""
    return re.sub(r"[^\x20\x21\x23-\x5b\x5d-\x7e]", "_", text)
