"""Pages of `aigo-bridge view` in a browser, including updates when files change."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.test_report_hostile import STRANGE, WATCH, hostile_sample
from tests.browser.test_shapes import barriers
from tests.support.hostile_texts import HOSTILE
from tests.support.results import metric, question, result, write_result
from tests.support.viewing import serving

from aigo_report.viewing import ViewServer

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request


def quiz(path: Path, answers: str, accuracy: float, **fields: Any) -> Path:
    samples = [question(number, letter, "a") for number, letter in enumerate(answers)]
    content = result(samples, [metric({"accuracy": accuracy}, key="mean")], **fields)
    mean = {"type": "mean", "field": "is_correct", "name": "accuracy"}
    # Flips are listed only for scores that the scorer type declares as right or wrong.
    content["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "{{ sample.gold }}", "metrics": [mean]}
    ]
    return write_result(path, content)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[ViewServer]:
    """Serve a folder with results, one of them with hostile texts, and an Inspect log."""
    folder = tmp_path / "folder"
    folder.mkdir()
    quiz(folder / "one.tasklog.json", "aabb" * 4, 0.5)
    quiz(folder / "two.tasklog.json", "aaab" * 4, 0.75)
    samples = [hostile_sample(text, number) for number, text in enumerate(HOSTILE)]
    texts = [text for text in HOSTILE if "\ud800" not in text]
    strange = result(samples, [metric({text: 0.5}, reason=text) for text in texts], title=" ".join(texts))
    (folder / "<img src=x onerror=alert(1)>.tasklog.json").write_text(json.dumps(strange))
    with serving(folder) as server:
        yield server


@pytest.fixture
def page(browser: Browser, served: ViewServer) -> Iterator[Page]:
    """Return a tab. A script error, external request or policy violation fails the test."""
    context = browser.new_context(viewport={"width": 1280, "height": 800})
    tab = context.new_page()
    tab.set_default_timeout(40_000)
    tab.add_init_script(WATCH)
    complaints: list[str] = []
    own = f"http://127.0.0.1:{served.guard.port}/"

    def hear(message: ConsoleMessage) -> None:
        if message.type == "error":
            complaints.append(message.text)

    def refuse(dialog: Dialog) -> None:
        complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def notice(request: Request) -> None:
        if not request.url.startswith((own, "data:")):
            complaints.append(f"request: {request.url}")
        if request.headers.get("referer"):
            complaints.append(f"referer: {request.headers['referer']}")

    tab.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    tab.on("dialog", refuse)
    tab.on("console", hear)
    tab.on("request", notice)
    yield tab
    context.close()
    # The browser also logs requests that the server rejects as outdated.
    assert [text for text in complaints if "410 (Gone)" not in text and "404 (Not Found)" not in text] == []


def harmless(tab: Page) -> None:
    assert tab.evaluate("violations") == []
    names = tab.evaluate(
        f"[...document.querySelectorAll({STRANGE!r})].filter((one) => !one.matches('a')).map((one) => one.localName)"
    )
    assert sorted(names) == ["script", "style"]


def test_folder_is_browsed_and_two_results_are_compared(page: Page, served: ViewServer) -> None:
    page.goto(served.guard.address)
    page.wait_for_selector("table.folder")
    assert served.guard.token not in page.url
    page.locator("tr", has_text="one.tasklog.json").get_by_text("50").wait_for()
    assert page.locator("table.folder td.file", has_text="one.tasklog.json").count() == 1
    harmless(page)
    assert barriers(page) == []

    page.locator("tr", has_text="one.tasklog.json").get_by_role("checkbox").check()
    page.locator("tr", has_text="two.tasklog.json").get_by_role("link").click()
    page.wait_for_selector(".metrics")
    assert page.locator(".metrics .value").inner_text() == "75\xa0%"
    page.get_by_role("button", name="Choose it for a comparison").click()
    page.get_by_role("link", name="Samples", exact=True).click()
    assert page.locator("output").inner_text() == "16 of 16 trials"
    page.locator(".rows .line").nth(3).click()
    assert page.locator(".item.assistant").inner_text() == "assistant\n#2\nb"
    page.get_by_role("link", name="Compare", exact=True).click()
    page.wait_for_selector("table.metrics")
    assert "16 samples are in both" in page.locator("main").inner_text()
    cells = page.locator("table.metrics tbody td").all_inner_texts()
    assert cells[:3] == ["50\xa0%", "75\xa0%", "+25\xa0pp"]
    harmless(page)
    assert barriers(page) == []
    page.get_by_label("verdict").select_option("wrong → right")
    assert page.locator("output").inner_text() == "4 of 16 pairs"
    page.get_by_role("button", name="sample 2").first.click()
    page.locator(".diff").wait_for()
    assert page.locator(".diff").inner_text().split("\n") == ["base", "b", "new", "a"]
    assert barriers(page) == []
    page.get_by_role("link", name="Open the sample in new").click()
    assert page.locator("h2:visible").inner_text() == "Sample 2"


def test_page_updates_with_its_result_and_reports_deletion(page: Page, served: ViewServer) -> None:
    page.goto(served.guard.address)
    page.locator("tr", has_text="one.tasklog.json").get_by_role("link").click()
    page.wait_for_selector(".metrics")
    assert page.locator(".metrics .value").inner_text() == "50\xa0%"

    log = quiz(served.library.root / "one.tasklog.json", "aaaa", 1.0)
    page.locator(".metrics .value", has_text="100\xa0%").wait_for()
    page.get_by_role("link", name="Samples", exact=True).click()
    assert page.locator("output").inner_text() == "4 of 4 trials"

    log.unlink()
    page.wait_for_selector("[role=alert]")
    assert "no longer in the folder" in page.locator("[role=alert]").inner_text()


def test_hostile_texts_are_harmless_in_view(page: Page, served: ViewServer) -> None:
    page.goto(served.guard.address)
    page.locator("tr", has_text="onerror=alert(1)>.tasklog").get_by_role("link").click()
    page.wait_for_selector(".metrics")
    harmless(page)
    page.get_by_role("link", name="Samples", exact=True).click()
    page.locator(".rows .line").first.click()
    page.wait_for_selector(".chat")
    harmless(page)
