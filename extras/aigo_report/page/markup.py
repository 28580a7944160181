"""HTML without a script: every text of a stranger stays text, what cannot be seen is made visible, and no
secret that this process knows is in it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from typing import NewType

from aigo_bridge.redaction.secrets import redact

Html = NewType("Html", str)
"""Markup that may stand in a page as it is."""

NOTHING = Html("")

_INVISIBLE = re.compile(
    "([\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    "\U000e0000-\U000e007f\ud800-\udfff])"
)
"""Control characters, what turns the direction of writing, zero widths, tags, lone surrogates: those that the
page of results shows, too.
"""


def text(content: object, most: int | None = None) -> Html:
    """A text as it is.

    Args:
        content: shown as `str` does.
        most: characters that are shown; how many more there are is said. `None`: all.
    """
    redacted = redact(str(content))  # before anything is cut, so that no half of a secret stays
    cut = redacted if most is None else redacted[:most]
    pieces = _INVISIBLE.split(cut)
    shown = "".join(
        escape(piece) if not number % 2 else _visible(piece) for number, piece in enumerate(pieces)
    )
    more = len(redacted) - len(cut)
    return Html(f"<bdi>{shown}</bdi>" + (f" <small>… {more} more characters</small>" if more else ""))


def _visible(character: str) -> str:
    return f'<span class="control" title="a character that cannot be seen">U+{ord(character):04X}</span>'


def joined(parts: Iterable[Html]) -> Html:
    """One after another."""
    return Html("".join(parts))


def element(tag: str, *content: Html, kind: str | None = None) -> Html:
    """An element, with a class."""
    opening = tag if kind is None else f'{tag} class="{escape(kind)}"'
    return Html(f"<{opening}>{joined(content)}</{tag}>")


def note(content: object) -> Html:
    """A remark in words."""
    return element("p", text(content), kind="note")


def table(
    caption: object, columns: Sequence[str], rows: Iterable[Sequence[Html]], *, kind: str | None = None
) -> Html:
    """A table that scrolls by itself where the page is narrow.

    Args:
        caption: what it shows.
        columns: our own headings; those that begin with `#` stand over numbers. The first names the rows.
        rows: a cell for each column.
        kind: its class.
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
    """For an attribute, in which nothing can be marked."""
    return _INVISIBLE.sub("\ufffd", redact(str(content)))
