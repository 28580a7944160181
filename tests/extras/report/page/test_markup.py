"""Markup without scripts: texts are escaped."""

from __future__ import annotations

from html.parser import HTMLParser

import pytest
from tests.support.hostile_texts import HOSTILE

from aigo_bridge.redaction.secrets import KNOWN, MASK
from aigo_report.page.markup import table, text


class _Reader(HTMLParser):
    """Parser that collects elements, attributes and texts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.data = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attrs]

    def handle_data(self, data: str) -> None:
        self.data += data


@pytest.mark.parametrize("hostile", HOSTILE)
def test_hostile_texts_are_escaped_in_markup(hostile: str) -> None:
    reader = _Reader()
    reader.feed(table(hostile, ("one", "#two"), [(text(hostile), text(hostile))]))

    assert set(reader.tags) <= {"div", "table", "caption", "thead", "tbody", "tr", "th", "td", "bdi", "span"}
    assert set(reader.attributes) <= {"class", "role", "tabindex", "aria-label", "scope", "title"}
    if hostile.isprintable():
        assert reader.data.count(hostile) == 3


def test_invisible_characters_are_displayed_as_code_points() -> None:
    shown = text("a\u202eb\x00c\ud800d")

    for name in ("U+202E", "U+0000", "U+D800"):
        assert f">{name}</span>" in shown
    assert shown.encode() == shown.encode("ascii")


def test_truncated_text_shows_the_number_of_omitted_characters() -> None:
    assert text("x" * 30, 10) == f"<bdi>{'x' * 10}</bdi> <small>… 20 more characters</small>"
    assert text("x" * 10, 10) == f"<bdi>{'x' * 10}</bdi>"


def test_secrets_are_redacted_before_escaping_and_truncation() -> None:
    KNOWN.learn(["s3cr&t-<value>-42"])

    assert text("key s3cr&t-<value>-42!") == f"<bdi>key {MASK}!</bdi>"
    assert "s3cr" not in text("key s3cr&t-<value>-42!", 9)
