"""Comparison page in a browser: no scripts, accessible and printable."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.browser.conftest import open_page
from tests.browser.test_shapes import barriers
from tests.extras.stats.comparison.logs import MEAN, log, sample
from tests.support.hostile_texts import HOSTILE

from aigo_report.page.comparisons import comparison_page
from aigo_stats.comparison.columns import read_columns
from aigo_stats.comparison.comparing import compare
from aigo_stats.comparison.ranking import rankings

if TYPE_CHECKING:
    from playwright.sync_api import Page


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Return the comparison page of two results with hostile texts."""
    texts = [text for text in HOSTILE if text.isprintable()]
    results = [
        read_columns(
            log(
                tmp_path / f"{name}.tasklog.json",
                [
                    sample(
                        number, {"right": float(right)}, {"question": text}, answer=f"{text} {'words ' * 300}"
                    )
                    for number, text in enumerate(texts)
                ],
                [(MEAN, {"accuracy": float(right)})],
                app_version=texts[right],
            ),
            ["question"],
        )
        for name, right in (("a", 1), ("b", 0))
    ]
    comparison = compare(*results)
    ranks = rankings(["a", "b"], {("a", "b"): comparison})
    page = tmp_path / "comparison.html"
    page.write_bytes(comparison_page([comparison], ranks, len(texts)))
    return page


def test_comparison_page_is_displayed_without_scripts_or_markup_of_results(page: Page, file: Path) -> None:
    open_page(page, file)

    assert page.locator("script, iframe, img, object, form, a, link").count() == 0
    assert page.locator("table").count() == 6
    assert "right → wrong" in page.inner_text("main")
    # The content security policy allows the page's own style sheet.
    assert page.evaluate("getComputedStyle(document.querySelector('.number')).textAlign") == "right"


def test_comparison_page_fits_paper_and_phone_screens(page: Page, file: Path) -> None:
    open_page(page, file)
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.set_viewport_size({"width": 1000, "height": 1400})
    page.emulate_media(media="print")

    cut = "[...document.querySelectorAll('.wide')].filter((box) => box.scrollWidth > innerWidth).length"
    assert page.evaluate(cut) == 0


def test_comparison_page_has_no_accessibility_violations(page: Page, file: Path) -> None:
    open_page(page, file)

    assert barriers(page) == []
