"""Safe HTML: untrusted text stays text, invisible characters are made visible, and known secrets are
removed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

from aigo_bridge.redaction.secrets import redact

Html = NewType("Html", str)
"""Markup that can be inserted in a page unchanged."""

NOTHING = Html("")

_INVISIBLE = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff])"
)
"""Pattern of control characters, direction marks, zero-width characters, tags and lone surrogates.

The results page makes the same characters visible.
"""


def text(content: object, most: int | None = None) -> Html:
    """Return a text as escaped HTML.

    Args:
        content: any object, converted with `str`.
        most: maximum number of characters. The number of omitted characters is displayed. `None` shows all.
    """
    redacted = redact(str(content))  # before truncation, so that no part of a secret remains
    cut = redacted if most is None else redacted[:most]
    pieces = _INVISIBLE.split(cut)
    shown = "".join(
        escape(piece) if not number % 2 else _visible(piece) for number, piece in enumerate(pieces)
    )
    more = len(redacted) - len(cut)
    return Html(f"<bdi>{shown}</bdi>" + (f" <small>… {more} more characters</small>" if more else ""))


def _visible(character: str) -> str:
    return f'<span class="control" title="invisible character">U+{ord(character):04X}</span>'


def joined(parts: Iterable[Html]) -> Html:
    """Return the parts joined together."""
    return Html("".join(parts))


def element(tag: str, *content: Html, kind: str | None = None) -> Html:
    """Return an element with a CSS class."""
    opening = tag if kind is None else f'{tag} class="{escape(kind)}"'
    return Html(f"<{opening}>{joined(content)}</{tag}>")


def note(content: object) -> Html:
    """Return a remark."""
    return element("p", text(content), kind="note")


def table(
    caption: object, columns: Sequence[str], rows: Iterable[Sequence[Html]], *, kind: str | None = None
) -> Html:
    """Return a table that scrolls horizontally on a narrow page.

    Args:
        caption: caption of the table.
        columns: column headings. A heading that starts with `#` marks a numeric column. The first column
            names the rows.
        rows: one cell for each column.
        kind: CSS class of the table.
    """
    numeric = [column.startswith("#") for column in columns]
    headings = joined(
        Html(f'<th scope="col"{_number(right)}>{text(column.removeprefix("#"))}</th>')
        for column, right in zip(columns, numeric, strict=True)
    )
    body = joined(
        element("tr", Html(f'<th scope="row">{row[0]}</th>'), *map(_cell, row[1:], numeric[1:]))
        for row in rows
    )
    content = (
        element("caption", text(caption)),
        element("thead", element("tr", headings)),
        element("tbody", body),
    )
    label = escape(_plain(caption))
    return Html(
        f'<div class="wide" role="region" tabindex="0" aria-label="{label}">'
        f"{element('table', *content, kind=kind)}</div>\n"
    )


def _number(right: bool) -> str:
    return ' class="number"' if right else ""


def _cell(content: Html, right: bool) -> Html:
    return Html(f"<td{_number(right)}>{content}</td>")


def _plain(content: object) -> str:
    """Return a text for an attribute, where invisible characters cannot be marked up."""
    return _INVISIBLE.sub("\ufffd", redact(str(content)))
