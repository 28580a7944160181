"""The HTML of a page: the front end and its data in one file, which loads nothing and runs nothing else.

| element | content |
|---|---|
| `<meta http-equiv>` | a policy: nothing is loaded; script and style of the page apply, by their digests |
| `<script id="summary">` | what the first view needs: gzip in base64 |
| `<script>` | the front end, built from `frontend/` |
| `<script id="r0p0">` … | samples and rows of the table, unpacked when they are looked at |
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, BinaryIO

BUNDLE = "report.js"
STYLE = "report.css"


@dataclass(frozen=True)
class Block:
    """Packed data in a file."""

    name: str
    """Identifier of its element."""
    place: int
    """Where it begins."""
    size: int


def packed(data: bytes) -> bytes:
    """Data as a page holds it: equal data are equal texts."""
    return base64.b64encode(zipped(data))


def zipped(data: bytes) -> bytes:
    """Data in gzip; equal data are equal bytes."""
    from zlib_ng import gzip_ng

    compress: Any = gzip_ng.compress
    zipped_data: bytes = compress(data, 6, mtime=0)
    return zipped_data


def asset(name: str) -> bytes:
    """A file of the front end."""
    return files("aigo_report.page").joinpath("page", name).read_bytes()


def policy(script: bytes, style: bytes) -> str:
    """The Content-Security-Policy of a page with one script and one style."""
    return "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "require-trusted-types-for 'script'",
            "trusted-types 'none'",
        )
    )


def _digest(data: bytes) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(data).digest()).decode()}"


def write_page(target: BinaryIO, summary: bytes, blocks: Iterable[Block], data: BinaryIO) -> None:
    """Write a page.

    Args:
        target: the file.
        summary: JSON.
        blocks: the blocks that it holds.
        data: the file that they stand in.
    """
    script, style = asset(BUNDLE), asset(STYLE)
    target.write(_HEAD.replace(b"{policy}", policy(script, style).encode()))
    target.write(b"<style>" + style + b"</style>\n</head>\n<body>\n")
    target.write(b'<div id="app"><noscript>This page needs JavaScript.</noscript></div>\n')
    target.write(_element("summary", packed(summary)))
    target.write(b"<script>" + script + b"</script>\n")
    for block in blocks:
        data.seek(block.place)
        target.write(_element(block.name, data.read(block.size)))
    target.write(b"</body>\n</html>\n")


def _element(name: str, content: bytes) -> bytes:
    return b'<script type="application/octet-stream" id="%s">%s</script>\n' % (name.encode(), content)


_HEAD = b"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="referrer" content="no-referrer">
<title>Report</title>
"""
