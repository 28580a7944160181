"""Report page: front end and data in one HTML file without external resources.

| element | content |
|---|---|
| `<meta http-equiv>` | content security policy: only this script and style, by digest |
| `<script id="summary">` | data of the first view: gzip in base64 |
| `<script>` | front end, built from `frontend/` |
| `<script id="r0p0">` … | samples and table rows, unpacked when displayed |
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
    """Compressed data in a file."""

    name: str
    """ID of its HTML element."""
    place: int
    """Start offset."""
    size: int


def packed(data: bytes) -> bytes:
    """Return compressed data as base64 text. Equal data give equal texts."""
    return base64.b64encode(zipped(data))


def zipped(data: bytes) -> bytes:
    """Return gzip data. Equal data give equal bytes."""
    from zlib_ng import gzip_ng

    compress: Any = gzip_ng.compress
    zipped_data: bytes = compress(data, 6, mtime=0)
    return zipped_data


def asset(name: str) -> bytes:
    """Return a front-end file."""
    return files("aigo_report.page").joinpath("page", name).read_bytes()


def policy(script: bytes, style: bytes) -> str:
    """Return the Content-Security-Policy of a page with one script and one style."""
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
        target: file to write.
        summary: JSON of the summary.
        blocks: blocks to include.
        data: file that contains the blocks.
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
