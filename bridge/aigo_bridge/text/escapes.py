"""Escapes: decoding them, regular expressions for JSON spellings, and escaping text for display.

Escaped display text prevents untrusted text from moving the cursor, breaking lines or changing the writing
direction.

Decoding handles nested and mixed escapes of JSON, Python's `repr`, URLs (`%41`) and HTML (`&#65;`). For
screens, it also joins words across line breaks with whitespace and frames, and removes colors. Each match is
mapped to whole escapes of the original text, so replacing it leaves a valid document.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Iterator
from html import unescape
from typing import Any

NEEDLESS = r"\\u00[2-7]|\\x[2-7]|%2[DdEe]|%25[2-7]|%3[0-9]|%[46][1-9A-Fa-f]|%5[0-9AaFf]|%7[0-9AaEe]|&#"
"""Pattern that matches at least all escapes of characters that need no escape. Such escapes can hide every
part of a secret.
"""

_TOKEN = re.compile(
    r"""
      (?P<pair> \\+u[dD][89abAB][0-9a-fA-F]{2}\\+u[dD][c-fC-F][0-9a-fA-F]{2})
    | (?P<code> \\+(?:u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}))
    | (?P<bytes> (?:%[0-9a-fA-F]{2})+)
    | (?P<html> &(?:\#[0-9]{1,7}|\#[xX][0-9a-fA-F]{1,6}|amp|lt|gt|quot|apos);)
    | (?P<slashes> \\+)(?P<behind> ["'/bfnrt])?
    """,
    re.VERBOSE,
)
_BREAK = re.compile(r"(?:\x1b\[[0-9;]*m|[ \t│╭╮╰╯─]*\r?\n[ \t│╭╮╰╯─]*)+")
_NAMED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_END = "\0"
"""Placeholder for a quote that starts or ends a text in a document; no match extends across it."""
_ROUNDS = 8
_WIDTH = 18
"""Maximum characters of a nested escape of one character."""
_LONGEST = 400
"""Maximum characters of a search term. For longer ones, only escapes near an unescaped part are decoded."""
_MOST_BACKSLASHES = 256

_Range = tuple[int, int]


def ranges(
    text: str, pattern: re.Pattern[str], suspects: Iterable[_Range], length: int, *, document: bool = False
) -> list[_Range]:
    """Return the ranges in which a pattern matches the decoded text, in order and without overlap.

    Args:
        text: text to search.
        pattern: pattern to search for.
        suspects: ranges near which a match is possible.
        length: maximum length of a match.
        document: whether the text is JSON, in which texts end at quotes.
    """
    matches: list[_Range] = []
    for start, end in _windows(text, suspects, min(length + 2, _LONGEST) * _WIDTH):
        matches += _in_window(text[start:end], start, pattern, document=document)
    return _merged(matches)


def ranges_on_screen(text: str, pattern: re.Pattern[str]) -> list[_Range]:
    """Return the same as `ranges` for the whole text on a screen, where line breaks may split words."""
    shown, starts = _unbroken(text)
    return _merged(
        [(starts[start], starts[end]) for start, end in _in_window(shown, 0, pattern, document=False)]
    )


def replaced(text: str, spans: Iterable[_Range], mask: str) -> str:
    """Replace ranges, which are in order, by a mask."""
    parts: list[str] = []
    last = 0
    for start, end in spans:
        parts += [text[last:start], mask]
        last = end
    return "".join([*parts, text[last:]]) if parts else text


def undone(text: str) -> str:
    """Return a text with decoded escapes, as patterns see it."""
    for current, _ in _rounds(text, list(range(len(text) + 1)), document=False):
        text = current
    return text


def _in_window(text: str, offset: int, pattern: re.Pattern[str], *, document: bool) -> list[_Range]:
    starts = list(range(offset, offset + len(text) + 1))
    return [
        (at[match.start()], at[match.end()])
        for current, at in _rounds(text, starts, document=document)
        for match in pattern.finditer(current)
        if match.end() > match.start()
    ]


def _rounds(text: str, starts: list[int], *, document: bool) -> Iterator[tuple[str, list[int]]]:
    """Yield the text after decoding each layer of escapes, with original positions, including its end."""
    for _ in range(_ROUNDS):
        previous = text
        text, starts = _undone(text, starts, document=document)
        document = False  # The quotes are already marked.
        yield text, starts
        if text == previous:
            return


def _undone(text: str, starts: list[int], *, document: bool) -> tuple[str, list[int]]:
    parts: list[str] = []
    at: list[int] = []
    end = 0
    for match in _TOKEN.finditer(text):
        between = text[end : match.start()]
        parts.append(between.replace('"', _END) if document else between)
        at += starts[end : match.start()]
        end = match.start()
        for char, width in _meant(match, document=document):
            parts.append(char)
            at.append(starts[end])
            end += width
    tail = text[end:]
    parts.append(tail.replace('"', _END) if document else tail)
    return "".join(parts), at + starts[end:]


def _meant(match: re.Match[str], *, document: bool) -> list[tuple[str, int]]:
    """Return the characters of an escape, each with its width in the text."""
    token = match[0]
    if match["pair"]:
        high, low = re.findall(r"[0-9a-fA-F]{4}", token.replace("\\", " "))
        char = bytes.fromhex(high + low).decode("utf-16-be", "replace")
        return [(char, len(token))]
    if match["code"]:
        return [(chr(int(token.lstrip("\\")[1:], 16)), len(token))]
    if match["bytes"]:
        return _of_bytes(token)
    if match["html"]:
        return [(unescape(token), len(token))]
    slashes, behind = len(match["slashes"]), match["behind"]
    if behind is None:
        return [("\\", slashes)]
    if behind == '"' and document and slashes % 2 == 0:
        return [("\\", slashes), (_END, 1)]
    return [(_NAMED.get(behind, behind), len(token))]


def _of_bytes(token: str) -> list[tuple[str, int]]:
    data = bytes.fromhex(token.replace("%", ""))
    try:
        return [(char, 3 * len(char.encode())) for char in data.decode()]
    except UnicodeDecodeError:
        return [(chr(byte), 3) for byte in data]


def _unbroken(text: str) -> tuple[str, list[int]]:
    """Return a text without characters that split words on a screen, with the original positions of its
    characters and its end.
    """
    parts: list[str] = []
    starts: list[int] = []
    end = 0
    for match in _BREAK.finditer(text):
        parts.append(text[end : match.start()])
        starts += range(end, match.start())
        end = match.end()
    return "".join([*parts, text[end:]]), [*starts, *range(end, len(text) + 1)]


def _windows(text: str, suspects: Iterable[_Range], margin: int) -> list[_Range]:
    """Return the surroundings of suspicious ranges; none starts within an escape."""
    wide = [(max(0, start - margin), min(len(text), end + margin)) for start, end in suspects]
    return [(_beginning(text, start), end) for start, end in _merged(wide)]


def _beginning(text: str, start: int) -> int:
    least = max(0, start - _WIDTH)
    while start > least and text[start - 1] in "\\%&#;xu0123456789abcdefABCDEF":
        start -= 1
    least = max(0, start - _MOST_BACKSLASHES)
    while start > least and text[start - 1] == "\\":
        start -= 1
    return start


def _merged(unmerged: list[_Range]) -> list[_Range]:
    merged: list[_Range] = []
    for start, end in sorted(unmerged):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


PLAIN = re.compile(r"[\x20\x21\x23-\x2e\x30-\x5b\x5d-\x7e]+")
"""Characters with a single spelling in JSON, except for writers that escape everything."""
_SHORTEST_HINT, _HINT = 6, 64
_SHORTEST_TEXT = 12
_BACKSLASHES = 256
"""Maximum backslashes, or pairs of them, for one character: two to the power of the nesting depth of JSON
in JSON.
"""
_LETTERS = {"\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t"}


def in_json(secret: str) -> str:
    """Return a regular expression for all spellings of a secret in JSON and in nested JSON.

    A backslash belongs to the character that it escapes, so a match never starts within a row of backslashes.
    """
    first = re.match(r"\\+|.", secret, re.DOTALL)
    start = first[0] if first else ""
    return _spellings(start, r"(?<!\\)") + _anywhere(secret[len(start) :])


def _anywhere(text: str) -> str:
    return "".join(_spellings(part) for part in re.findall(r"\\+|.", text, re.DOTALL))


def _spellings(part: str, begin: str = "") -> str:
    """Return a regular expression for all spellings of a character or a row of backslashes; JSON in JSON
    doubles them. `begin` is a condition before a leading backslash.
    """
    if PLAIN.fullmatch(part):
        return re.escape(part)
    if part == "/":
        # Some writers escape a slash as `\\/`.
        some = f"{{0,{_BACKSLASHES}}}"
        return rf"(?:{begin}(?:\\\\){some}\\/|/)" if begin else rf"\\{some}/"
    if part[0] == "\\":
        return rf"{begin}(?:\\\\){{{len(part)},{len(part) + _BACKSLASHES}}}"
    units = part.encode("utf-16-be").hex()
    codes = ["".join(map(_either_case, units[at : at + 4])) for at in range(0, len(units), 4)]
    escaped = "".join(rf"\\{{1,{_BACKSLASHES}}}u{code}" for code in codes)
    if part == '"' or part in _LETTERS:
        return rf"{begin}(?:\\{{1,{_BACKSLASHES}}}{_LETTERS.get(part, part)}|{escaped})"
    return begin + escaped if part < " " else f"(?:{part}|{begin}{escaped})"


def _either_case(digit: str) -> str:
    return f"[{digit}{digit.upper()}]" if digit.isalpha() else digit


def hint_of(secret: str) -> str:
    """Return a pattern without look-around that matches at least the secret: its longest part with a single
    spelling.

    Without alternatives at its start, the search is as fast as for plain text.
    """
    part = max(PLAIN.findall(secret), key=len, default="")
    return re.escape(part[:_HINT]) if len(part) >= _SHORTEST_HINT else _anywhere(secret[:_SHORTEST_TEXT])


def hint_of_text(text: str) -> str:
    """Return a pattern without look-around that matches at least the unescaped text."""
    part = max(PLAIN.findall(text), key=len, default="")
    if len(part) >= _SHORTEST_HINT:
        return re.escape(part[:_HINT])
    # Rust only supports escapes of punctuation.
    return "".join(
        re.escape(char) if char.isascii() and char.isprintable() else char for char in text[:_SHORTEST_TEXT]
    )


_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode categories of invisible characters that change the display of their surroundings."""


def visible(text: str, keep: str = "") -> str:
    """Escape control, format and direction characters and line breaks, except the characters in `keep`."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(
        char.encode("unicode_escape").decode() if is_unseen(char) and char not in keep else char
        for char in text
    )


def is_unseen(char: str) -> bool:
    """Return whether a character is invisible but changes the display of its surroundings."""
    return unicodedata.category(char) in _UNSEEN


_BEYOND_ASCII = re.compile(r"[^\x20-\x7e\n]")


def json_text(value: Any, *, indent: int | None = 2) -> str:
    """Return a value as JSON for a screen, with invisible characters as JSON escapes."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return _BEYOND_ASCII.sub(
        lambda match: json.dumps(match[0])[1:-1] if is_unseen(match[0]) else match[0], text
    )
