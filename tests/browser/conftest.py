"""Offline browser fixtures for the report pages."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run all browser tests in one process, because each process starts a browser.

    `tryfirst`: before modules become groups.
    """
    for item in items:
        if item.path.parent == Path(__file__).parent:
            item.add_marker(pytest.mark.xdist_group("browser"))


_OPENED: list[Browser] = []
_CLOSING = ExitStack()


@pytest.fixture
def browser() -> Browser:
    """Return headless Chromium with a new profile folder, started by the first test that needs it."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        assert os.environ.get("AIGO_BROWSER") != "required", "there is no Chromium"
        pytest.skip("there is no Chromium here (Debian: apt-get install chromium)")
    if not _OPENED:
        from playwright.sync_api import sync_playwright

        playwright = _CLOSING.enter_context(sync_playwright())
        started = playwright.chromium.launch(executable_path=chromium, headless=True, args=list(FLAGS))
        _CLOSING.callback(started.close)
        _OPENED.append(started)
    return _OPENED[0]


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> None:
    """Close the browser before another folder's test: engines cannot run while its event loop runs in this process."""
    if nextitem is None or Path(__file__).parent not in nextitem.path.parents:
        _OPENED.clear()
        _CLOSING.close()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """Return an offline tab, 1280 pixels wide. A script error, external request or policy violation fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, offline=True)
    tab = context.new_page()
    tab.set_default_timeout(20_000)
    complaints: list[str] = []

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def refuse(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def notice(request: Request) -> None:
        if not request.url.startswith(("file:", "data:", "blob:")):
            complaints.append(f"request: {request.url}")

    tab.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    tab.on("dialog", refuse)
    tab.on("console", hear)
    tab.on("request", notice)
    yield tab
    context.close()
    assert complaints == []


def open_page(tab: Page, path: Path, place: str = "") -> None:
    """Open a page from its file and wait for its first view."""
    tab.goto(f"{path.as_uri()}{place}")
    tab.wait_for_selector("main")
