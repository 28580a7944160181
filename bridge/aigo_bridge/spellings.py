"""How JSON spells a text: regular expressions that find it in documents, also in JSON inside of a text of JSON."""

from __future__ import annotations

import re

PLAIN = re.compile(r"[\x20\x21\x23-\x2e\x30-\x5b\x5d-\x7e]+")
"""Characters that JSON has only one spelling for, but for writers who escape all they can."""
_SHORTEST_HINT, _HINT = 6, 64
_SHORTEST_TEXT = 12
_BACKSLASHES = 256
"""Most of them, or pairs of them, that one character has: two to the power of how deep JSON stands in JSON."""
_NAMED = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


def in_json(secret: str) -> str:
    """A regular expression for all spellings of a secret in JSON, and in JSON inside of JSON.

    A backslash belongs to what it escapes: none is looked for in the midst of others.
    """
    first = re.match(r"\\+|.", secret, re.DOTALL)
    start = first[0] if first else ""
    return _spellings(start, r"(?<!\\)") + _anywhere(secret[len(start) :])


def in_json_escaped(secret: str) -> str:
    """As `in_json`, also where letters are escaped that need it not (`A` as `u0041` behind a backslash); such a search is slow."""
    first = re.match(r"\\+|.", secret, re.DOTALL)
    start = first[0] if first else ""
    parts = re.findall(r"\\+|.", secret[len(start) :], re.DOTALL)
    return _or_escaped(start, r"(?<!\\)") + "".join(map(_or_escaped, parts))


def _or_escaped(part: str, begin: str = "") -> str:
    spelled = _spellings(part, begin)
    if not PLAIN.fullmatch(part[0]) and part[0] not in "/\\":
        return spelled
    code = "".join(map(_either_case, f"{ord(part[0]):04x}"))
    return rf"(?:{spelled}|(?:\\{{1,{_BACKSLASHES}}}u{code}){{{len(part)}}})"


def _anywhere(text: str) -> str:
    return "".join(_spellings(part) for part in re.findall(r"\\+|.", text, re.DOTALL))


def _spellings(part: str, begin: str = "") -> str:
    """A regular expression for all spellings of a character, or of several backslashes; JSON in JSON has twice as many of these.

    Args:
        part: the character.
        begin: what must be true where a backslash stands first.
    """
    if PLAIN.fullmatch(part):
        return re.escape(part)
    if part == "/":
        # Some write a slash of a text as `\\/`.
        some = f"{{0,{_BACKSLASHES}}}"
        return rf"(?:{begin}(?:\\\\){some}\\/|/)" if begin else rf"\\{some}/"
    if part[0] == "\\":
        return rf"{begin}(?:\\\\){{{len(part)},{len(part) + _BACKSLASHES}}}"
    units = part.encode("utf-16-be").hex()
    codes = ["".join(map(_either_case, units[at : at + 4])) for at in range(0, len(units), 4)]
    escaped = "".join(rf"\\{{1,{_BACKSLASHES}}}u{code}" for code in codes)
    if part == '"' or part in _NAMED:
        return rf"{begin}(?:\\{{1,{_BACKSLASHES}}}{_NAMED.get(part, part)}|{escaped})"
    return begin + escaped if part < " " else f"(?:{part}|{begin}{escaped})"


def _either_case(digit: str) -> str:
    return f"[{digit}{digit.upper()}]" if digit.isalpha() else digit


def hint_of(secret: str) -> str:
    """A pattern without look-around that finds at least the secret: the longest part of it that has one spelling.

    Without alternatives at its start it is searched for at the speed of any other text.
    """
    part = max(PLAIN.findall(secret), key=len, default="")
    return re.escape(part[:_HINT]) if len(part) >= _SHORTEST_HINT else _anywhere(secret[:_SHORTEST_TEXT])


def hint_of_text(text: str) -> str:
    """A pattern without look-around that finds at least a text as it stands."""
    part = max(PLAIN.findall(text), key=len, default="")
    if len(part) >= _SHORTEST_HINT:
        return re.escape(part[:_HINT])
    # Rust knows escapes of punctuation only.
    return "".join(
        re.escape(char) if char.isascii() and char.isprintable() else char for char in text[:_SHORTEST_TEXT]
    )
