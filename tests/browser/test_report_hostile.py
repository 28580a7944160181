"""Hostile texts in any field of a result are displayed, and never run, load or link to anything."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from tests.browser.conftest import open_page
from tests.support.hostile_texts import HOSTILE, RICH
from tests.support.results import message, metric, result, sample, score, trial

from aigo_report.page import sources_of, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Page

STRANGE = (
    "script:not([src]):not([type]), iframe, object, embed, svg, form:not(.filters), base, link, style, img, video,"
    " a[href]:not([href^='#'])"
)
"""Elements that do or load something; the page has a script and a style of its own."""

WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", (event) => violations.push(`${event.violatedDirective} ${event.blockedURI}`));
"""


def hostile_sample(text: str, number: int) -> dict[str, Any]:
    """Return a sample with the given text in every text field."""
    event = {"id": text, "span_id": "s", "type": "custom", "name": text, "data": {text: text}}
    call = {
        "id": f"c{number}",
        "type": "function_call",
        "call_id": text,
        "name": text,
        "arguments": text,
        "status": "completed",
    }
    output = {
        "id": "o",
        "type": "function_call_output",
        "call_id": text,
        "output": text,
        "status": "completed",
    }
    parts: list[str | dict[str, Any]] = [
        text,
        {"type": "reasoning_text", "text": text},
        {"type": "refusal", "refusal": text},
        {"type": "input_image", "image_url": text, "detail": "auto"},
        {"type": "input_file", "filename": text, "file_url": text},
        {"type": text, "text": text},
    ]
    judge = {"model": text, "messages": [{"role": text, "content": text}], "reply": text}
    scores = [
        score(text, {text: text}, answer_gt=text, answer_pred=f"{text}!", reasoning=text, judge_calls=[judge])
    ]
    errors = [{"error_type": text, "message": text, "hint": text, "stage": text}]
    spans: list[dict[str, Any]] = [
        {"id": "b", "span_id": "s", "type": "span_begin", "name": text, "span_type": text},
        event,
        {
            "id": "m",
            "span_id": "s",
            "type": "model_call_event",
            "model": text,
            "input_context": [message("user", text)],
            "output_items": [],
            "error": text,
        },
    ]
    items = [message("system", text), message("user", *parts), message(text, text), call, output]
    return sample(
        trial(
            f"{number} {text}",
            items,
            scores=scores,
            data={text: text, "n": text},
            errors=errors,
            events=spans,
        ),
        excluded=text,
    )


def hostile_log(of_samples: Sequence[str] = HOSTILE) -> dict[str, Any]:
    """Return a result with hostile texts in all fields."""
    # Unpaired surrogates are only valid in samples.
    texts = [text for text in HOSTILE if "\ud800" not in text]
    everything = " ".join(texts)
    samples = [hostile_sample(text, number) for number, text in enumerate(of_samples)]
    metrics = [metric({text: 0.5}, scorer=text, scorer_name=text, reason=text) for text in texts]
    log = result(samples, metrics, title=everything)
    log["specification"]["config"] = dict.fromkeys(texts, everything)
    log["specification"]["task"]["description"] = everything
    log["specification"]["evaluated_entity"]["display_name"] = everything
    log["app_version"] = everything
    log["evidence"]["errors"] = [{"error_type": everything, "message": everything, "hint": everything}]
    return log


@pytest.fixture(scope="module")
def hostile_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    texts = [text for text in HOSTILE if "\ud800" not in text]
    everything = " ".join(texts)
    (folder / "hostile.tasklog.json").write_text(json.dumps(hostile_log()))
    rules = [
        {"policy": text, "rule": text, "display_name": text, "reason": text, "passed": False}
        for text in texts
    ]
    entry = {
        "key": everything,
        "result": "hostile.tasklog.json",
        "problem": everything,
        "faults": texts,
        "warnings": [{"message": text} for text in texts],
    }
    evaluation = {
        "status": everything,
        "evaluation": {"key": everything, "display_name": everything, "file": everything},
        "results": [entry],
        "policies": rules,
    }
    (folder / "evaluation.json").write_text(json.dumps(evaluation))
    return write_report(sources_of([folder]), folder / "report.html").path


def test_at_least_60_hostile_texts_are_tested() -> None:
    assert len(set(HOSTILE)) >= 60


def harmless(page: Page) -> None:
    """Check that no request was blocked and no text created an element."""
    assert page.evaluate("violations") == []
    names = page.evaluate(f"[...document.querySelectorAll({STRANGE!r})].map((element) => element.localName)")
    assert sorted(names) == ["script", "style"]


def test_hostile_texts_are_harmless_in_summary_and_sample_table(page: Page, hostile_page: Path) -> None:
    page.add_init_script(WATCH)
    open_page(page, hostile_page)
    assert page.locator(".metrics tbody tr").count() == len(HOSTILE) - 1
    assert page.locator("table", has_text="Policies").first.locator("tbody tr").count() == len(HOSTILE) - 1
    harmless(page)

    page.get_by_role("link", name="Samples", exact=True).click()
    page.locator(".breakdown summary").click()
    page.locator(".breakdown select").select_option(index=1)
    page.get_by_label("search", exact=True).fill("<script>")
    page.wait_for_selector(".rows .line")
    harmless(page)


EVERY_SAMPLE = """async (number) => {
  const texts = [];
  for (let i = 0; i < number; i++) {
    const until = performance.now() + 10000;
    const shown = () => document.querySelector("#sample-title")?.textContent.startsWith(`Sample ${i} `)
      && document.querySelector(".sample .chat") && document.querySelector(".sample .timeline");
    while (!shown()) {
      if (performance.now() > until) return texts;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    for (const part of document.querySelectorAll("details")) part.open = true;
    while (!document.querySelector(".judge .chat")) {
      if (performance.now() > until) return texts;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
    texts.push([document.querySelector(".sample").textContent, [...document.querySelectorAll(STRANGE)].map((one) => one.localName)]);
    document.body.dispatchEvent(new KeyboardEvent("keydown", { key: "j", bubbles: true }));
  }
  return texts;
}""".replace("STRANGE", repr(STRANGE))


def test_hostile_samples_are_harmless_and_displayed_as_text(page: Page, hostile_page: Path) -> None:
    page.add_init_script(WATCH)
    open_page(page, hostile_page, f"#{urlencode({'sample': f'0 {HOSTILE[0]}'})}")

    seen = page.evaluate(EVERY_SAMPLE, len(HOSTILE))

    assert len(seen) == len(HOSTILE)
    for text, (content, elements) in zip(HOSTILE, seen, strict=True):
        assert sorted(elements) == ["script", "style"], text
        if text.isprintable():
            assert content.count(text) > 10, text
    assert any("U+202E" in content for content, _ in seen)
    harmless(page)


def test_hostile_rich_text_is_rendered_and_harmless(page: Page, tmp_path: Path) -> None:
    items = [message("assistant", text) for text in RICH]
    rich = sample(
        trial("rich", items, scores=[score("exact", {"x": 1.0}, answer_gt=RICH[0], reasoning=RICH[0])])
    )
    (tmp_path / "rich.tasklog.json").write_text(json.dumps(result([rich], [])))
    report = write_report(sources_of([tmp_path / "rich.tasklog.json"]), tmp_path / "report.html").path
    page.add_init_script(WATCH)
    open_page(page, report, "#sample=rich")
    page.locator(".item").last.wait_for()

    assert page.locator(".item math").count() > 0
    assert page.locator(".item .hljs-string").count() > 0
    assert page.locator(".item").count() == len(RICH)
    assert "hidden -->" in (page.locator(".chat").text_content() or "")
    wide = "[...document.querySelectorAll('.item *')].filter((one) => one.getBoundingClientRect().height > 5000).length"
    assert page.evaluate(wide) == 0
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    harmless(page)

    page.keyboard.press("r")
    raw = page.locator(".item").nth(10)
    raw.locator(".long").wait_for()
    assert RICH[10] in (raw.text_content() or "")


WRAPPED = (
    "{}",
    "> - **{}**",
    "```python\n{}\n```",
    "`{}`",
    "$${}$$",
    "$\\text{{{}}}$",
    "![{0}]({0})",
    "[{0}]: {0}\n\n![{0}] [x][{0}]",
)
"""Places of a text in Markdown: text, list, code, maths, images and references."""


def test_hostile_texts_are_harmless_in_markdown_code_math_and_images(page: Page, tmp_path: Path) -> None:
    items = [message("assistant", wrapper.format(text)) for text in HOSTILE for wrapper in WRAPPED]
    samples = [sample(trial(str(start), items[start : start + 100])) for start in range(0, len(items), 100)]
    log = tmp_path / "wrapped.tasklog.json"
    log.write_text(json.dumps(result(samples, [])))
    report = write_report(sources_of([log]), tmp_path / "report.html").path
    page.add_init_script(WATCH)

    for start in range(0, len(items), 100):
        open_page(page, report, f"#sample={start}")
        page.reload()
        page.locator(".item").nth(len(items[start : start + 100]) - 1).wait_for(state="attached")
        harmless(page)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_hostile_texts_are_harmless_on_start_page_and_in_comparison(page: Page, tmp_path: Path) -> None:
    logs = [tmp_path / f"{name}.tasklog.json" for name in "ab"]
    texts = [
        text for text in HOSTILE if "\ud800" not in text
    ]  # samples with unpaired surrogates are not valid evidence
    for log in logs:
        content = hostile_log(texts)
        content["specification"]["evaluated_entity"]["display_name"] += log.name
        log.write_text(json.dumps(content))
    page.add_init_script(WATCH)
    open_page(page, write_report(sources_of(logs), tmp_path / "report.html").path)
    page.locator(".matrix").wait_for()
    page.locator("summary", has_text="Charts").click()
    harmless(page)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")

    page.get_by_role("link", name="Compare 2 models").click()
    page.get_by_text(f"of {len(texts)} pairs").wait_for()
    page.locator(".breakdown summary").click()
    harmless(page)
    page.locator(".pairs-of-samples .link").first.click()
    page.locator(".diff").wait_for()
    for number in range(1, 10):
        page.keyboard.press("j")
        page.locator("#sample-title", has_text=f"Sample {number} ").wait_for()
    harmless(page)
