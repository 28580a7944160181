"""Report page in a browser, opened from its file."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.conftest import open_page
from tests.browser.test_shapes import barriers
from tests.support.results import PIXEL, message, metric, question, result, sample, trial, write_result

from aigo_report.page import sources_of, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Page

FAILURE = {"error_type": "HTTPStatusError", "message": "content policy", "stage": "solver"}


COPIED = """() => {
  const data = new DataTransfer();
  document.body.dispatchEvent(new ClipboardEvent("copy", { clipboardData: data, bubbles: true, cancelable: true }));
  return data.getData("text/plain");
}"""


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    """Return the report page of five samples, of which one failed and one is excluded."""
    samples = [
        question(0, "Nile", "Nile"),
        question(1, "Lyon", "Paris"),
        question(2, "Rhine", "Rhine", excluded="too-easy"),
        question(3, "Oslo", "Oslo"),
        question(4, "", "Po", errors=[FAILURE]),
    ]
    samples[4]["trials"][0].update(solver=None, scores=[])
    metrics = [metric({"accuracy": 0.6666666666666666, "count": 3})]
    content = result(samples, metrics)
    mean = {"type": "mean", "field": "is_correct", "name": "accuracy"}
    content["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "{{ sample.gold }}", "metrics": [mean]}
    ]
    log = write_result(tmp_path / "quiz.tasklog.json", content)
    return write_report(sources_of([log]), tmp_path / "report.html").path


def test_rounded_metrics_show_all_digits_on_hover_and_when_copied(page: Page, quiz: Path) -> None:
    open_page(page, quiz)

    rows = [text.replace("\xa0", " ") for text in page.locator(".metrics tbody tr").all_inner_texts()]
    bounds = "50 % if every missing sample or trial had scored worst, 75 % if best"
    unknown = "no interval: the samples' scores give 0.666667, which differs from the result"
    assert [[cell.strip() for cell in row.split("\t")] for row in rows] == [
        [
            "accuracy mean",
            "66.67 %",
            "",
            f"20.77 to 93.85 % standard error 27.22 pp\n{bounds}",
            "3",
            "1",
            "0",
            "1",
            "exact",
        ],
        ["count mean *", "3", "", unknown, "3", "–", "1", "1", "exact"],
    ]
    value = page.locator(".metrics .value").first
    assert value.locator(".num").get_attribute("title") == "0.6666666666666666"
    value.evaluate("(cell) => getSelection().selectAllChildren(cell)")
    copied = page.evaluate(COPIED)
    assert copied == "0.6666666666666666"
    assert page.locator(".tiles").inner_text().split("\n") == [
        "5 samples",
        "3 scored",
        "1 failed",
        "1 excluded",
    ]
    cause = page.locator("table", has_text="Failures by cause").locator("tbody tr").inner_text().split("\t")
    assert [cell.strip() for cell in cause] == ["HTTPStatusError: content policy", "1", "solver", "4"]


def test_sample_is_found_by_search_and_displayed(page: Page, quiz: Path) -> None:
    open_page(page, quiz)
    page.get_by_role("link", name="Samples", exact=True).click()
    assert page.locator("output").inner_text() == "5 of 5 trials"

    page.get_by_label("search", exact=True).fill("lyon")
    assert page.locator("output").inner_text() == "1 of 5 trials"
    page.locator(".rows .line").click()

    assert page.locator("h2:visible").inner_text() == "Sample 1"
    assert "#sample=1" in page.url
    assert page.locator(".item.user").inner_text() == "user\n#1\nQuestion 1?"
    assert page.locator(".score .values").inner_text() == "is_correct 0"
    assert page.locator(".top").inner_text().split("\n") == [
        *("Question", "Question 1?", "Expected", "Paris", "Given", "Lyon"),
    ]
    assert page.locator(".top del").inner_text() == "Paris"
    page.keyboard.press("Escape")
    assert page.locator("output").inner_text() == "1 of 5 trials"


def test_link_to_a_failed_sample_shows_its_error(page: Page, quiz: Path) -> None:
    open_page(page, quiz, "#sample=4")

    assert page.locator(".sample .error").inner_text().split("\n")[0] == "solver HTTPStatusError"
    assert "content policy" in page.locator(".sample .error").inner_text()


def test_agent_trace_shows_tool_calls_images_and_spans(page: Page, tmp_path: Path) -> None:
    span = {"span_id": "a", "timestamp": "2026-01-01T00:00:00Z"}
    events: list[dict[str, Any]] = [
        {**span, "type": "span_begin", "name": "researcher", "span_type": "agent"},
        {"span_id": "a", "timestamp": "2026-01-01T00:00:01Z", "type": "function_call_event", "call_id": "c", "function": "look", "arguments": "{}", "result": "blue", "status": "completed", "working_time": 0.5},
        {"span_id": "a", "timestamp": "2026-01-01T00:00:02Z", "type": "span_end"},
    ]  # fmt: skip
    call = {"type": "function_call", "id": "i", "call_id": "c", "name": "look", "arguments": '{"at": 1.0}', "status": "completed"}  # fmt: skip
    output = {"type": "function_call_output", "id": "o", "call_id": "c", "output": "blue", "status": "completed"}  # fmt: skip
    image = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
    thought = {"type": "reasoning_text", "text": "It looks blue."}
    items = [message("user", "Which colour?", image), call, output, message("assistant", thought, "Blue.")]
    log = write_result(
        tmp_path / "agent.tasklog.json", result([sample(trial("x y", items, events=events))], [])
    )
    report = write_report(sources_of([log]), tmp_path / "report.html")

    open_page(page, report.path, "#sample=x+y")

    assert page.locator(".item.call").inner_text().split("\n") == [
        *("tool call", "look", "#2", "at\t1.0", "result", "blue"),
    ]
    assert (
        page.locator(".item.user img").evaluate("(image) => image.decode().then(() => image.naturalWidth)")
        == 10
    )
    assert not page.get_by_text("It looks blue.").is_visible()
    page.locator("summary", has_text="reasoning").click()
    page.get_by_text("It looks blue.").wait_for()
    assert page.locator(".timeline .took").all_inner_texts() == ["2\xa0s", "500\xa0ms"]


def test_outline_of_a_long_agent_run_links_to_the_failed_tool_call(page: Page, tmp_path: Path) -> None:
    items: list[dict[str, Any]] = [message("user", "Fix the bug.")]
    for number in range(250):
        call = {"type": "function_call", "id": f"f{number}", "call_id": f"c{number}", "name": "bash", "arguments": f'{{"cmd": "cat {number}.py"}}', "status": "completed"}  # fmt: skip
        status = "incomplete" if number == 200 else "completed"
        output = {"type": "function_call_output", "id": f"o{number}", "call_id": f"c{number}", "output": f"content {number}", "status": status}  # fmt: skip
        items += [message("assistant", f"*Step* {number}"), call, output]
    log = write_result(tmp_path / "agent.tasklog.json", result([sample(trial("long", items))], []))
    open_page(page, write_report(sources_of([log]), tmp_path / "report.html").path, "#sample=long")

    page.locator(".outline .failed").click()
    failed = page.locator(".item.failed")
    failed.locator(".code").wait_for()
    assert failed.inner_text().split("\n")[:4] == ["tool call", "bash", "✗ failed", "#403"]
    assert "content 200" in failed.inner_text()
    assert "turn=403" in page.url
    assert page.evaluate("document.querySelector('.item.failed').getBoundingClientRect().top") < 200
    page.get_by_label("search in this sample").fill("content 24")
    page.get_by_text("1 of 11", exact=True).wait_for()


def test_samples_can_be_filtered_and_searched(page: Page, tmp_path: Path) -> None:
    samples = [question(number, "a" if number % 3 else "b", "a") for number in range(30)]
    samples[7]["trials"][0]["solver"]["output"]["trace"]["items"].insert(1, message("assistant", "needle"))
    log = write_result(tmp_path / "quiz.tasklog.json", result(samples, []))
    open_page(page, write_report(sources_of([log]), tmp_path / "report.html").path, "#samples")
    shown = page.locator("output")

    page.get_by_label("filter", exact=True).fill('score < 0.5 and topic == "rivers"')
    assert shown.inner_text() == "5 of 30 trials"
    page.locator(".rows .line").nth(1).click()
    assert page.locator(".where-am-i").inner_text() == "2 of 5 (filtered)"
    page.keyboard.press("j")
    page.get_by_text("3 of 5 (filtered)").wait_for()
    page.keyboard.press("Escape")
    assert shown.inner_text() == "5 of 30 trials"
    page.get_by_label("filter", exact=True).fill("score <")
    assert "expected a value, found the end" in page.locator("#where-problem").inner_text()
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("search", exact=True).fill("needle")
    page.get_by_text("1 of 30 trials").wait_for()
    page.set_viewport_size({"width": 400, "height": 800})
    page.locator(".grid.narrow").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    assert barriers(page) == []


def test_multi_page_report_navigates_from_table_to_sample_and_back(page: Page, tmp_path: Path) -> None:
    noise = random.Random(1)
    samples = [question(number, noise.randbytes(20_000).hex(), "a") for number in range(20)]
    log = write_result(tmp_path / "quiz.tasklog.json", result(samples, [metric({"accuracy": 0.0})]))
    report = write_report(sources_of([log]), tmp_path / "report.html", largest=300_000)

    open_page(page, report.path, "#samples")
    page.locator(".rows .line").nth(19).click()
    page.wait_for_selector(".chat")
    assert "/samples-" in page.url
    assert page.locator(".item.user").inner_text() == "user\n#1\nQuestion 19?"
    page.keyboard.press("Escape")
    page.wait_for_selector(".rows .line")
    assert "/index.html" in page.url


def test_printed_report_uses_the_light_theme_and_shows_all_metrics(page: Page, quiz: Path) -> None:
    open_page(page, quiz, "#sample=1")
    page.get_by_role("button", name="Dark").click()
    page.emulate_media(media="print")

    assert page.locator(".metrics").is_visible()
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(23, 32, 46)"
    assert not page.locator(".sample").is_visible()


def test_configuration_is_an_expandable_table(page: Page, tmp_path: Path) -> None:
    log = result([question(0, "Nile", "Nile")], [])
    log["specification"]["config"] = {
        "inspect": {
            "eval": {"task": "rivers", "ids": [f"s{number}" for number in range(200)], "temperature": 1.0}
        },
        "aigo_bridge": {"superseded_by": {"log": "later.eval", "task_id": "x"}},
    }
    write_result(tmp_path / "r.tasklog.json", log)
    open_page(page, write_report(sources_of([tmp_path / "r.tasklog.json"]), tmp_path / "report.html").path)

    assert "↻ superseded" in page.locator("h2").first.inner_text()
    page.locator("summary", has_text="Configuration").first.click()
    table = page.locator("details.configuration table").first
    assert "rivers" not in table.inner_text()
    table.locator("tr", has_text="Configuration of the task").locator("summary").first.click()
    table.get_by_text("rivers").wait_for()
    assert "task\t\nrivers" in table.inner_text()
    assert "temperature\t\n1.0" in table.inner_text()
    table.locator("summary", has_text="200 entries").click()
    table.get_by_text("… 100 more").wait_for()
    assert "{" not in table.inner_text()
