"""Search for secrets by patterns: values of variables, formats of keys, and patterns of the user.

The search works on the bytes of a log before any other processing, so that later output (traces, metadata,
errors, file names) cannot contain a found secret. Values of variables may contain any character, and are
searched in every JSON spelling, including JSON inside a text. Keys in known formats are printable ASCII
without quotes, so JSON contains them unchanged, unless a writer escapes letters unnecessarily. Only whole
characters are replaced, so that the document stays valid.
"""

from __future__ import annotations

import base64
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from pydantic_core import SchemaValidator

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_bridge.redaction.redactor import Redactor
from aigo_bridge.redaction.secrets import KNOWN, environment_secrets
from aigo_bridge.text.escapes import PLAIN, hint_of, in_json, ranges, replaced

_ESCAPE = r"(?<=\\[bfnrt])|(?<=\\u[0-9a-fA-F]{4})"
"""A word starts after a JSON escape, because the `n` of a line break is not a letter."""
START = rf"(?:(?<![A-Za-z0-9])|{_ESCAPE})"


@dataclass(frozen=True)
class KeyFormat:
    """Format of one kind of key."""

    hint: str
    """Rust pattern without look-around that matches at least the start of every such key."""
    pattern: str
    """Pattern that matches the key. If it has a group `key`, the group is the key."""
    is_key: Callable[[str], bool] | None = None
    """Returns whether a match is a key; `None` if every match is."""


def _prefixed(prefixes: str, suffix: str) -> KeyFormat:
    """Return the format of keys with one of several prefixes, separated by spaces."""
    starts = "|".join(map(re.escape, prefixes.split()))
    return KeyFormat(starts, f"{START}(?:{starts}){suffix}")


OWN: dict[str, KeyFormat] = {
    "openai or anthropic key": KeyFormat("sk-[A-Za-z0-9_-]{20}", START + r"sk-[A-Za-z0-9_-]{20,}"),
    "aws access key id": KeyFormat(
        "(?:AKIA|ASIA|ABIA|ACCA|A3T)[A-Z0-9]{16}",
        START + r"(?:A[KSB]IA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    "aws bedrock key": _prefixed("ABSK bedrock-api-key-", r"[A-Za-z0-9+/]{40,}={0,2}"),
    "google api key": KeyFormat("AIza[A-Za-z0-9_-]{35}", START + r"AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])"),
    "google oauth token": _prefixed("ya29. GOCSPX- 1//0", r"[A-Za-z0-9_-]{20,}"),
    "github token": KeyFormat("gh[pousr]_[A-Za-z0-9]{36}", START + r"gh[pousr]_[A-Za-z0-9]{36,}"),
    "github fine-grained token": KeyFormat("github_pat_[A-Za-z0-9_]{40}", r"github_pat_[A-Za-z0-9_]{40,}"),
    "gitlab token": KeyFormat("glpat-[A-Za-z0-9_-]{20}", r"glpat-[A-Za-z0-9_-]{20,}(?:\.[0-9a-z]{9})?"),
    "hugging face token": _prefixed("hf_ api_org_", r"[A-Za-z0-9]{30,}"),
    "slack token": _prefixed(
        "xoxa- xoxb- xoxe- xoxe. xoxo- xoxp- xoxr- xoxs- xoxc- xoxd- xapp-", r"[A-Za-z0-9%./+-]{16,}"
    ),
    "slack webhook": KeyFormat(
        "hooks[.]slack[.]com/",
        r"hooks\.slack\.com/(?:services|workflows|triggers)/(?P<key>[A-Za-z0-9/+]{30,})",
    ),
    "stripe key": _prefixed(
        "sk_live_ sk_test_ rk_live_ rk_test_ sk_prod_ rk_prod_ whsec_", r"[A-Za-z0-9+/=]{10,}"
    ),
    "groq key": _prefixed("gsk_", r"[A-Za-z0-9]{32,}"),
    "xai key": _prefixed("xai-", r"[A-Za-z0-9]{32,}"),
    "perplexity key": _prefixed("pplx-", r"[A-Za-z0-9]{32,}"),
    "nvidia key": _prefixed("nvapi-", r"[A-Za-z0-9_-]{32,}"),
    "replicate token": _prefixed("r8_", r"[A-Za-z0-9]{32,}"),
    "fireworks key": _prefixed("fw_", r"[A-Za-z0-9]{20,}(?![A-Za-z0-9_-])"),
    "cerebras key": _prefixed("csk-", r"[A-Za-z0-9]{32,}"),
    "tavily key": _prefixed("tvly-", r"[A-Za-z0-9-]{20,}"),
    "langsmith key": _prefixed("lsv2_pt_ lsv2_sk_ ls__", r"[a-f0-9]{24,}[a-f0-9_]*"),
    "langfuse key": _prefixed("sk-lf- pk-lf-", r"[a-f0-9-]{30,}"),
    "pinecone key": _prefixed("pcsk_", r"[A-Za-z0-9_]{30,}"),
    "databricks token": KeyFormat("dapi[a-f0-9]{32}", START + r"dapi[a-f0-9]{32}(?:-\d)?(?![A-Za-z0-9])"),
    "digitalocean token": _prefixed("dop_v1_ doo_v1_ dor_v1_", r"[a-f0-9]{60,}"),
    "docker token": _prefixed("dckr_pat_ dckr_oat_", r"[A-Za-z0-9_-]{20,}"),
    "npm token": _prefixed("npm_", r"[A-Za-z0-9]{36,}"),
    "sendgrid key": _prefixed("SG.", r"[A-Za-z0-9_-]{20,}\.[A-Za-z0-9_-]{30,}"),
    "mailgun key": KeyFormat("key-[0-9a-f]{32}", START + r"key-[0-9a-f]{32}(?![A-Za-z0-9])"),
    "twilio key": KeyFormat("SK[0-9a-f]{32}", START + r"SK[0-9a-f]{32}(?![A-Za-z0-9])"),
    "telegram token": KeyFormat(
        ":AA[A-Za-z0-9_-]{33}", START + r"\d{8,10}:AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])"
    ),
    "atlassian token": _prefixed("ATATT3 ATBB ATCTT3", r"[A-Za-z0-9_=-]{24,}"),
    "figma token": _prefixed("figd_ figo_", r"[A-Za-z0-9_-]{30,}"),
    "new relic key": _prefixed("NRAK- NRII- NRJS-", r"[A-Za-z0-9]{19,}"),
    "vault token": _prefixed("hvs. hvb. hvr.", r"[A-Za-z0-9_-]{24,}"),
    "fly token": _prefixed("fo1_ fm1a_ fm1r_ fm2_", r"[A-Za-z0-9+/_-]{40,}={0,3}"),
    "private key": KeyFormat(
        "PRIVATE KEY",
        r"-----BEGIN [A-Z0-9 ]{0,40}PRIVATE KEY(?: BLOCK)?-----"
        r"(?:(?:[^\"-]|-(?!----))*+-----END [A-Z0-9 ]{0,40}-----"
        r"|(?:(?:\s|\\{1,16}[nrt])*+[A-Za-z0-9+/=]{40,76}+)*+)",
    ),
    "putty key": KeyFormat(
        "Private-Lines:", r"Private-Lines: ?\d+(?P<key>(?:(?:\s|\\{1,16}[nrt])*+[A-Za-z0-9+/=]{20,76}+)++)"
    ),
    "json web token": KeyFormat(
        r"eyJ[A-Za-z0-9_-]{10,}[.]",
        START + r"eyJ[A-Za-z0-9_-]{10,}\.(?:[A-Za-z0-9_-]{10,}|(?=\.[A-Za-z0-9_-]))(?:\.[A-Za-z0-9_-]*){0,3}",
    ),
    "azure storage key": KeyFormat(
        "(?:AccountKey|SharedAccessKey)=", r"(?:AccountKey|SharedAccessKey)=(?P<key>[A-Za-z0-9+/]{20,}={0,2})"
    ),
    "signature in an address": KeyFormat(
        "[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=",
        r"[?&](?:sig|X-Amz-Signature|X-Goog-Signature)=(?P<key>[A-Za-z0-9%+/_-]{20,}={0,2})",
    ),
}
"""Kinds with known prefixes → format."""

_PLACEHOLDER = re.compile(
    r"[xX*.•_-]+|(?:your|my|the|some|insert|example|changeme|change[-_]me|placeholder|dummy|fake|redacted|todo|test[-_])"
    r".*|.*(?:example|placeholder|redacted|\.\.\.|x{6}|123456|_here|-here).*|(?:os|process|self|config|settings|env|args|kwargs|secrets?)\..*"
    r"|~?/(?:home|usr|tmp|var|etc|opt|mnt|root|data|app|srv|users|workspace)/.*|(?:true|false|none|null|undefined)",
    re.IGNORECASE,
)
_DIGIT, _LETTER = re.compile(r"\d"), re.compile(r"[A-Za-z]")


def _is_value(text: str, least: int = 8) -> bool:
    """Return whether the text after a secret's name is a secret: a mix of letters and digits, and not a
    placeholder.
    """
    return (
        len(text) >= least
        and _DIGIT.search(text) is not None
        and _LETTER.search(text) is not None
        and not _PLACEHOLDER.fullmatch(text)
        and len(set(text)) >= 5
    )


def _is_user_and_password(text: str) -> bool:
    """Return whether base64 text contains a user and a password."""
    coded = text.replace("%3D", "=").replace("-", "+").replace("_", "/").rstrip("=")
    try:
        decoded = base64.b64decode(coded + "=" * (-len(coded) % 4), validate=True).decode()
    except ValueError:
        return False
    return ":" in decoded and decoded.isprintable()


_QUOTE = r"(?:\\{0,16}[\"'])"
_VALUE = r"[^\s\"'\\,;&<>(){}\[\]$]"
_NAME = (
    r"(?:api[_-]?key|secret(?:[_-]?access)?(?:[_-]?key)?|client[_-]?secret|access[_-]?key|private[_-]?key|auth[_-]?key|license[_-]?key"
    r"|(?:access|auth|refresh|bearer|id|session|api|bot|user|hub|hf|gh|csrf|oauth)[_-]?token|token|passw(?:or)?d|passphrase|pwd|credentials?)"
)
_NAMES = (
    "api_key api-key apikey apiKey access_key accesskey accessKey private_key privatekey privateKey auth_key"
    " license_key secret token"
    " password passwd passphrase pwd credential credentials"
)
_HINTS = "|".join(
    dict.fromkeys(
        spelled for name in _NAMES.split() for spelled in (name, name.upper(), name[0].upper() + name[1:])
    )
)
IN_PLACES: dict[str, KeyFormat] = {
    "password in an address": KeyFormat(
        r"://[^\s/\"@]*:[^\s/\"@]*@",
        r"(?<=://)[^\s/:@\"\\<>{}$]{0,200}:(?P<key>[^\s/@\"\\<>{}$]{3,200})@(?=[A-Za-z0-9\[])",
        lambda text: (
            not _PLACEHOLDER.fullmatch(text)
            and text.lower() not in {"password", "passwd", "pass", "pwd", "secret", "port"}
        ),
    ),
    "bearer authorization": KeyFormat(
        r"(?:[Bb]earer|BEARER|[Aa]pi[Kk]ey|uthorization[\"\\']{0,4}\s?[:=]\s?[\"\\']{0,4}[Tt]oken)(?:\s|%20|[+])",
        rf"(?i)(?:{START}|(?<=%20))(?:bearer|apikey|(?<=: )token|(?<=:)token|(?<=\")token)"
        r"(?:\s{1,4}|%20|\+)(?P<key>[A-Za-z0-9._~+/%-]{12,}={0,2})",
        lambda text: _is_value(text, 12),
    ),
    "basic authorization": KeyFormat(
        r"(?:[Bb]asic|BASIC)(?:\s|%20|[+])",
        rf"(?i){START}basic(?:\s{{1,4}}|%20|\+)(?P<key>[A-Za-z0-9+/_-]{{8,}}(?:=|%3D){{0,2}})",
        _is_user_and_password,
    ),
    "cookie": KeyFormat(
        r"[Cc]ookie[\"\\']{0,4}\s?[:,]|COOKIE[\"\\']{0,4}\s?[:,]",
        rf"(?i){START}(?:set-)?cookie{_QUOTE}?\s?[:,]\s?{_QUOTE}?(?P<key>[A-Za-z0-9_.-]{{1,100}}=[^\s\"\\]{{8,}}(?:;\s?[^\"\\\r\n;]{{1,4000}})*+)",
        lambda text: _DIGIT.search(text) is not None and not _PLACEHOLDER.fullmatch(text.partition("=")[2]),
    ),
    "value of a variable named like a secret": KeyFormat(
        r"(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASS|PWD|PAT|AUTH|CREDENTIALS?)=[^\s=]",
        rf"{START}(?:API_?KEY|KEY|TOKEN|SECRET|(?:PG)?PASSWORD|PASSWD|PASS|PWD(?==[^/])|PAT|AUTH|CREDENTIALS?)="
        rf"{_QUOTE}?(?P<key>{_VALUE}{{6,}})",
        lambda text: _is_value(text, 6),
    ),
    "value that is named like a secret": KeyFormat(
        rf"(?:{_HINTS})(?:\\{{0,16}}[\"']\s?(?:[:=]|=>)\s?\\{{0,16}}[\"']|\s?(?:[:=]|=>)=?\s?\\{{0,16}}[\"']?)[^\s\"'\\,;&<>(){{}}\[\]$]{{8}}",
        rf"(?i){START}{_NAME}(?:{_QUOTE}\s?(?:=>|[:=])\s?{_QUOTE}|\s?(?:=>|:=|[:=](?!=))\s?{_QUOTE}?)(?P<key>{_VALUE}{{8,}})",
        lambda text: _is_value(text, 8),
    ),
}
"""Contexts in which a text is a key, independent of its format."""


@cache
def formats() -> dict[str, KeyFormat]:
    """Return all kinds in search order, the most specific first."""
    stored = json.loads((Path(__file__).with_name("key_formats.json")).read_text(encoding="utf-8"))["rules"]
    theirs = {
        name: KeyFormat(re.escape(start), rf"{START}(?:{pattern})[A-Za-z0-9_-]*")
        for name, (start, pattern) in stored.items()
    }
    return {**OWN, **theirs, **IN_PLACES}


WELL_KNOWN: Mapping[str, KeyFormat] = formats()
"""Kinds of keys that are recognized by their format or context."""

_NEEDLESS = re.compile(rb"\\u00(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa])")
"""Letters and digits that are escaped unnecessarily."""
_NEEDLESS_TEXT = re.compile(_NEEDLESS.pattern.decode())
_LONGEST = 200
_TOGETHER = 20
"""Maximum number of hints to search together. With more, the search for their first letters is slower."""
_LONG_START = 4
"""Number of letters that the search compares at once: fewer if any hint has a short start."""
_UTF8 = SchemaValidator({"type": "str"})


@dataclass(frozen=True)
class PatternRules:
    """Patterns of secrets with their names (`redactor.Rules`)."""

    patterns: tuple[tuple[str, bytes], ...]
    """Pairs of name and expression of the secrets, compiled on suspicion only, because that is slow."""
    suspicion: tuple[SchemaValidator, ...] | None
    """Validators: at least one accepts each text with a match of a rule, and they accept few other texts.
    `None`: every text is searched.
    """
    spelled: tuple[tuple[str, str], ...]
    """Pairs of name and secret for secrets with another spelling in JSON, to be found in texts that are not
    JSON.
    """

    def suspects(self, data: bytes) -> bool:
        """Return whether `data`, which must be UTF-8, may contain a secret."""
        return self.suspicion is None or any(pattern.isinstance_python(data) for pattern in self.suspicion)

    def in_text(self, text: str, counts: Counter[str]) -> str:
        """Return a text with secrets replaced; `text` itself if it contains none."""
        for name, secret in self.spelled:
            if count := text.count(secret):
                text = text.replace(secret, f"[redacted: {name}]")
                counts[name] += count
        data = text.encode("utf-8", "surrogatepass")
        clean = self.in_json(data, counts)
        return text if clean is data else clean.decode("utf-8", "surrogatepass")

    def in_json(self, data: bytes, counts: Counter[str]) -> bytes:
        """Return `data` with secrets as `[redacted: <name>]`; `data` itself if it contains none."""
        # Validators reject bytes that are not UTF-8, so their rejection proves nothing.
        readable = data.isascii() or _UTF8.isinstance_python(data)
        if readable and not self.suspects(data):
            return data
        # Well-known keys are ASCII. Searching for all of them without their hints takes seconds per MB.
        text = None if readable else data.decode("ascii", "replace")
        for name, pattern in self.patterns:
            if name in WELL_KNOWN and not _hint(name).isinstance_python(data if text is None else text):
                continue
            data = _replaced(name, _compiled(pattern), data, counts)
        if readable and _NEEDLESS.search(data):
            data = self._without_escaped(data, counts)
        return data

    def _without_escaped(self, data: bytes, counts: Counter[str]) -> bytes:
        """Return `data` without keys that contain unnecessary escapes, which become letters when the data is
        read.
        """
        text = data.decode()
        for name, pattern in self.patterns:
            suspects = [match.span() for match in _NEEDLESS_TEXT.finditer(text)]
            places = ranges(text, _compiled_text(pattern), suspects, _LONGEST, document=True)
            text = replaced(text, places, f"[redacted: {name}]")
            if places:
                counts[name] += len(places)
        return text.encode()


def _replaced(name: str, pattern: re.Pattern[bytes], data: bytes, counts: Counter[str]) -> bytes:
    """Return `data` without the matches of one rule."""
    parts: list[bytes] = []
    end = 0
    for match in pattern.finditer(data):
        if (span := _key_in(name, match)) is not None:
            parts += [data[end : span[0]], f"[redacted: {name}]".encode()]
            end = span[1]
    if not parts:
        return data
    counts[name] += len(parts) // 2
    return b"".join([*parts, data[end:]])


def _key_in(name: str, match: re.Match[bytes]) -> tuple[int, int] | None:
    """Return the position of the key in a match; `None` if it is not a key."""
    kind = WELL_KNOWN.get(name)
    if kind is None:
        return match.span() if match[0] else None
    group = "key" if "key" in match.re.groupindex else 0
    if kind.is_key is not None and not kind.is_key(match[group].decode("utf-8", "replace")):
        return None
    return match.span(group)


_compiled = cache(re.compile)


@cache
def _compiled_text(pattern: bytes) -> re.Pattern[str]:
    return re.compile(pattern.decode())


@cache
def _hint(name: str) -> SchemaValidator:
    """Return a validator that accepts every text with a possible match of a well-known rule."""
    return SchemaValidator({"type": "str", "pattern": WELL_KNOWN[name].hint})


def redaction(
    patterns: Iterable[str] = (), *, environment: Mapping[str, str] | None = None, well_known: bool = True
) -> Redactor:
    """Return the redactor of logs and texts of other people, with its own counts.

    Args:
        patterns: additional regular expressions, as the user typed them.
        environment: variables whose values are secrets if their names indicate it; by default the
            variables of the process.
        well_known: search for the key formats in `WELL_KNOWN`.

    Raises:
        UsageError: a pattern is not a regular expression, or matches the empty text.
    """
    rules: list[tuple[str, bytes]] = []
    hints: list[str] = []
    contexts: list[str] = []
    variables = os.environ if environment is None else environment
    values = environment_secrets(variables)
    if environment is None:
        values = {**dict.fromkeys(KNOWN.values, "secret that this process received"), **values}
    spelled: list[tuple[str, str]] = []
    # Replace longer values first, so that a value inside another one does not leave a remainder.
    for secret, name in sorted(values.items(), key=lambda item: -len(item[0])):
        kind = f"value of {_printable(name)}" if " " not in name else name
        rules.append((kind, in_json(secret).encode()))
        hints.append(hint_of(secret))
        if not PLAIN.fullmatch(secret.replace("/", "x")):
            spelled.append((kind, secret))
    if well_known:
        rules += [(name, kind.pattern.encode()) for name, kind in WELL_KNOWN.items()]
        hints += [kind.hint for name, kind in WELL_KNOWN.items() if name not in IN_PLACES]
        contexts = [*(kind.hint for kind in IN_PLACES.values()), _NEEDLESS.pattern.decode()]
    user_rules = [_checked(text) for text in patterns]
    rules += user_rules
    # Python's regular expressions have more features than Rust's, so the user's own expressions are always
    # searched.
    suspicion = (
        None
        if user_rules
        else tuple(
            SchemaValidator({"type": "str", "pattern": "|".join(group)})
            for group in [*_groups(dict.fromkeys(hints)), contexts]
            if group
        )
    )
    return Redactor(rules=PatternRules(tuple(rules), suspicion, tuple(spelled)))


def _groups(hints: Iterable[str]) -> Iterator[list[str]]:
    """Yield the hints that are searched together: those with a start of similar length."""
    by_length: dict[int, list[str]] = {}
    for hint in hints:
        alternatives = hint.removeprefix("(?:").replace("\\", "").split("|")
        length = min(len(re.split(r"[\[()]", text)[0]) for text in alternatives)
        by_length.setdefault(min(max(length, _LONG_START - 2), _LONG_START), []).append(hint)
    for group in by_length.values():
        for begin in range(0, len(group), _TOGETHER):
            yield group[begin : begin + _TOGETHER]


NO_REDACTION = Redactor()


def _checked(text: str) -> tuple[str, bytes]:
    try:
        pattern = re.compile(text.encode())
    except re.error as error:
        raise UsageError(f"{text!r} is not a regular expression: {error}", code=Code.WRONG_OPTION) from error
    if pattern.match(b""):
        raise UsageError(
            f"{text!r} matches the empty text, expected a pattern for a secret", code=Code.WRONG_OPTION
        )
    return f"pattern {_printable(text)}", text.encode()


def _printable(text: str) -> str:
    """Return `text` without characters that would end or escape a JSON text."""
    return re.sub(r"[^\x20\x21\x23-\x5b\x5d-\x7e]", "_", text)
