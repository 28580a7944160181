"""All bytes below folders, searched for keys with code that is independent of the product."""

from __future__ import annotations

import base64
import binascii
import gzip
import html
import io
import json
import re
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import unquote

import zstandard

_ESCAPE = re.compile(r"\\+u([0-9a-fA-F]{4})|\\+x([0-9a-fA-F]{2})")
_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{12,}={0,2}")
_TOKEN = re.compile(r'"token\\*":\s*\\*"([^"]*?)\\*"')
_NUMBERS = re.compile(r"\[\s*(\d{1,3}(?:\s*,\s*\d{1,3})*)\s*\]")
PIECE = 8
"""Letters and digits of a key, one after the other, that give it away."""
STEP = 4
"""Pieces are looked for that begin at every so many letters: of twelve letters one after the other one is always found."""


def contents(folder: Path, *, but: Sequence[Path] = ()) -> Iterator[tuple[str, bytes]]:
    """Return all bytes and names below a folder, with archives, streams and columns decompressed."""
    for path in sorted(folder.rglob("*")):
        if any(path.is_relative_to(other) for other in but):
            continue
        yield f"name of {path}", str(path.relative_to(folder)).encode()
        if path.is_file():
            yield from opened(str(path), path.read_bytes())


def opened(name: str, data: bytes) -> Iterator[tuple[str, bytes]]:
    """Return data and its compressed contents."""
    yield name, data
    if data.startswith(b"PK\x03\x04"):
        import inspect_ai._util.zipfile  # noqa: F401  # teaches zipfile Zstandard

        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            for member in archive.namelist():
                yield from opened(f"{name}:{member}", archive.read(member))
    elif data.startswith(b"\x1f\x8b"):
        yield from opened(f"{name}:gz", gzip.decompress(data))
    elif data.startswith(b"\x28\xb5\x2f\xfd"):
        with zstandard.ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
            yield from opened(f"{name}:zst", reader.read())
    elif data.startswith(b"PAR1"):
        import pyarrow.parquet as pq  # type: ignore[import-untyped]  # ships none

        rows = pq.read_table(io.BytesIO(data)).to_pylist()
        yield f"{name}:rows", json.dumps(rows, default=str).encode()


def leaks(name: str, data: bytes, keys: Sequence[str]) -> list[str]:
    """Return the places with a part of a key in any encoding: `name: … context …`."""
    found = []
    for text in _readings(data):
        bare = re.sub(r"[^A-Za-z0-9]", "", text)
        for key in keys:
            core = re.sub(r"[^A-Za-z0-9]", "", key)
            for at in range(0, max(1, len(core) - PIECE + 1), STEP):
                where = bare.find(core[at : at + PIECE])
                if where >= 0:
                    found.append(
                        f"{name}: {core[at : at + PIECE]} in {bare[max(0, where - 40) : where + 40]}"
                    )
                    break
    return list(dict.fromkeys(found))


def _readings(data: bytes) -> Iterator[str]:
    """Return a text, its unescaped form, and its decoded base64, hexadecimal digits, tokens and byte lists."""
    text = data.decode("utf-8", "replace")
    for _ in range(6):
        yield text
        before = text
        text = _ESCAPE.sub(lambda match: chr(int(match[1] or match[2], 16)), _COLOUR.sub("", text))
        text = html.unescape(unquote(text, errors="replace")).replace("\\n", "\n")
        if text == before:
            break
    decoded: list[str] = []
    for match in _BASE64.finditer(text):
        coded = match[0].rstrip("=").replace("-", "+").replace("_", "/")
        for start in range(4):
            part = coded[start:]
            part = part[: len(part) // 4 * 4]
            try:
                decoded.append(base64.b64decode(part).decode("utf-8", "replace"))
            except (binascii.Error, ValueError):
                continue
        if re.fullmatch(r"(?:[0-9a-fA-F]{2})+", match[0]):
            decoded.append(bytes.fromhex(match[0]).decode("utf-8", "replace"))
    decoded.append("".join(_TOKEN.findall(text)))
    decoded.append(
        "".join(
            bytes(map(_byte, numbers.split(","))).decode("utf-8", "replace")
            for numbers in _NUMBERS.findall(text)
        )
    )
    yield "\n".join(decoded)


def _byte(number: str) -> int:
    return min(255, int(number))
