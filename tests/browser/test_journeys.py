"""User journeys through report pages, from the start page to the answer."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.conftest import open_page
from tests.browser.test_shapes import barriers
from tests.support.results import message, metric, question, result, sample, score, trial, write_result
from tests.support.viewing import serving

from aigo_report.page import sources_of, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

Json = dict[str, Any]


def report_of(folder: Path, *logs: Path) -> Path:
    return write_report(sources_of(logs), folder / "report.html").path


def judged(number: int, grade: float) -> Json:
    """Return a sample with a judge's grade."""
    judge = {
        "model": "m/judge",
        "messages": [message("user", f"Grade answer {number}.")],
        "reply": f"I give {grade}.",
    }
    items = [message("user", f"Question {number}?"), message("assistant", f"Answer {number}.")]
    return sample(
        trial(number, items, scores=[score("judge", {"grade": grade}, reasoning="Why.", judge_calls=[judge])])
    )


def test_worst_answers_of_a_judge_task_are_browsable_in_order(page: Page, tmp_path: Path) -> None:
    grades = [(7 * number % 40) / 10 for number in range(40)]
    log = result([judged(number, grade) for number, grade in enumerate(grades)], title="Essays")
    path = write_result(tmp_path / "essays.tasklog.json", log)
    open_page(page, report_of(tmp_path, path))

    page.get_by_role("link", name="Samples", exact=True).click()
    page.get_by_role("columnheader", name="judge · grade").get_by_role("button").click()
    page.locator("[aria-sort=ascending]").wait_for()
    page.locator(".rows .line").first.click()
    seen = []
    for place in range(1, 6):
        page.get_by_text(f"{place} of 40", exact=True).wait_for()
        number = int(page.locator("#sample-title").inner_text().removeprefix("Sample "))
        page.locator(".top").get_by_text(f"Answer {number}.", exact=True).wait_for()
        page.locator("summary", has_text="Prompt and reply of the judge").click()
        page.get_by_text(f"I give {grades[number]}.", exact=True).wait_for()
        seen.append(grades[number])
        page.keyboard.press("j")

    assert seen == [0.0, 0.1, 0.2, 0.3, 0.4]


def test_failed_samples_are_listed_by_cause(page: Page, tmp_path: Path) -> None:
    samples = [question(number, "a", "a") for number in range(30)]
    for number in (3, 8, 21):
        samples[number]["trials"][0].update(
            solver=None,
            scores=[],
            errors=[
                {
                    "error_type": "RateLimitError",
                    "message": f"429 for request {number}",
                    "hint": "lower --max-connections",
                    "stage": "solver",
                }
            ],
        )
    path = write_result(tmp_path / "quiz.tasklog.json", result(samples, [metric({"accuracy": 1.0})]))
    open_page(page, report_of(tmp_path, path))

    alarm = page.locator(".card.alarm")
    assert "3 × " in alarm.inner_text()
    (cause,) = page.locator("table", has_text="Failures by cause").locator("tbody tr").all()
    assert cause.locator(".number").inner_text() == "3"
    assert "429 for request 3" in cause.inner_text()
    alarm.get_by_role("link", name="Show failed samples").click()
    page.get_by_text("3 of 30 trials").wait_for()
    page.locator(".rows .line").nth(1).click()
    assert page.locator("#sample-title").inner_text() == "Sample 8"
    error = page.locator(".sample .error").inner_text()
    assert "429 for request 8" in error
    assert "hint: lower --max-connections" in error


def quiz(path: Path, model: str, wrong: range) -> Path:
    samples = [question(number, "b" if number in wrong else "a", "a") for number in range(60)]
    content = result(samples, [metric({"accuracy": 1 - len(wrong) / 60}, key="mean")])
    mean = {"type": "mean", "field": "is_correct", "name": "accuracy"}
    content["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "{{ sample.gold }}", "metrics": [mean]}
    ]
    content["specification"]["evaluated_entity"]["display_name"] = model
    return write_result(path, content)


def test_two_models_of_a_report_are_compared_and_flips_are_browsable(page: Page, tmp_path: Path) -> None:
    logs = [
        quiz(tmp_path / "a.tasklog.json", "m/base", range(0)),
        quiz(tmp_path / "b.tasklog.json", "m/new", range(20, 35)),
        quiz(tmp_path / "c.tasklog.json", "m/other", range(5)),
    ]
    open_page(page, report_of(tmp_path, *logs))

    assert page.get_by_role("link", name="Compare 3 models").get_attribute("href") == "#compare=0,1,2"
    charts = page.locator("details", has=page.get_by_text("Charts", exact=True))
    assert charts.locator("table", has_text="Quiz: accuracy").locator("tbody tr").count() == 3
    for model in ("m/new", "m/base"):  # the report determines the order of the two results
        page.get_by_role("checkbox", name=f"compare Quiz, {model}").check()
    page.get_by_role("link", name="Compare", exact=True).click()
    page.get_by_text("15 right → wrong, 0 wrong → right").wait_for()
    cells = [
        text.replace("\xa0", " ") for text in page.locator("table.metrics:visible tbody td").all_inner_texts()
    ]
    assert cells[:4] == ["100 %", "75 %", "−25 pp", "−37.23 to −15.78 pp"]
    assert barriers(page) == []

    page.get_by_label("verdict").select_option("right → wrong")
    assert page.locator("output").inner_text() == "15 of 60 pairs"
    page.get_by_role("button", name="sample 20").click()
    for number in range(20, 30):
        page.get_by_role("heading", name=f"Sample {number} right → wrong").wait_for()
        page.locator(".diff").wait_for()
        assert page.locator(".diff").inner_text().split("\n") == ["base", "a", "new", "b"]
        page.keyboard.press("j")
    assert barriers(page) == []
    page.get_by_role("link", name="Open the sample in new").click()
    assert "#sample=30&result=1" in page.url

    page.goto(f"{page.url.partition('#')[0]}#compare=0,1,2")
    page.get_by_role("button", name="Base and m/other").click()
    page.get_by_text("5 right → wrong, 0 wrong → right").wait_for()
    page.set_viewport_size({"width": 400, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
    page.goto(f"{page.url.partition('#')[0]}#compare=0,9")
    page.get_by_text("These results are not in this report.").wait_for()


def test_pair_in_a_multi_page_report_shows_answer_excerpts_and_links(page: Page, tmp_path: Path) -> None:
    logs = []
    for name, letter in (("a", "x"), ("b", "y")):
        samples = [question(number, letter * 9_000, "x" * 9_000) for number in range(20)]
        logs.append(write_result(tmp_path / f"{name}.tasklog.json", result(samples)))
    report = write_report(sources_of(logs), tmp_path / "report.html", largest=2_000)
    assert report.pages > 1

    open_page(page, report.path, "#compare=0,1")
    page.get_by_role("button", name="sample 3", exact=True).click()
    page.get_by_text("The samples are on other pages of this report").wait_for()
    page.get_by_role("link", name="Open the sample in new").click()
    page.wait_for_selector(".chat")
    assert "/samples-" in page.url


def test_each_printed_result_starts_with_a_one_page_summary(page: Page, tmp_path: Path) -> None:
    logs = [quiz(tmp_path / f"{name}.tasklog.json", f"m/{name}", range(9)) for name in "ab"]
    open_page(page, report_of(tmp_path, *logs))
    page.set_viewport_size({"width": 718, "height": 1040})  # A4 between the margins of a browser
    page.emulate_media(media="print")

    for number in range(2):
        part = page.locator(f"#result-{number}")
        assert part.locator(".cards").is_visible()
        begin = f"document.getElementById('result-{number}')"
        assert page.evaluate(f"getComputedStyle({begin}).breakBefore") == "page"
        end = f"{begin}.querySelector('.metrics').getBoundingClientRect().bottom"
        assert page.evaluate(f"{end} - {begin}.getBoundingClientRect().top") < 1040
    assert page.pdf(format="A4").count(b"/Type /Page\n") in range(3, 9)


RUN = """
import asyncio, sys
from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, ModelUsage, get_model
from inspect_ai.scorer import includes
from inspect_ai.solver import solver

@solver
def slow():
    async def solve(state, generate):
        state = await generate(state)
        while state.sample_id == "live":
            await asyncio.sleep(0.2)
        return state
    return solve

rows = [Sample(id="done", input="One?", target="x"), Sample(id="live", input="Two?", target="x")]
task = Task(name="slow", dataset=rows, solver=slow(), scorer=includes())
output = ModelOutput.from_content("mockllm/model", "x")
output.usage = ModelUsage(input_tokens=3, output_tokens=2, total_tokens=5)
model = get_model("mockllm/model", custom_outputs=[output, output])
eval(task, model=model, log_dir=sys.argv[1], display="none", log_buffer=1, max_samples=2)
"""


@pytest.fixture
def run_in_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Start an Inspect run in which one sample is complete and one never ends."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "logs").mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", RUN, str(tmp_path / "logs")], start_new_session=True
    ) as process:
        yield process
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


def test_run_in_progress_is_displayed_and_reported_when_killed(
    browser: Browser, run_in_progress: Any, tmp_path: Path
) -> None:
    with serving(tmp_path / "logs") as server:
        context = browser.new_context(viewport={"width": 1280, "height": 800})
        tab = context.new_page()
        tab.set_default_timeout(90_000)
        tab.goto(server.guard.address)
        tab.get_by_text("1 run in progress").wait_for()
        tab.get_by_text("1 of 2", exact=False).first.wait_for()
        tab.get_by_role("link", name="slow").first.click()
        tab.get_by_text(
            re.compile(r"The run is in progress: \d trials? (is|are) not in its log yet")
        ).wait_for()
        tab.get_by_role("link", name="Samples", exact=True).click()
        tab.get_by_text("2 of 2 trials").wait_for()
        assert tab.locator(".rows .line", has_text="not finished").count() == 1
        assert barriers(tab) == []

        os.killpg(run_in_progress.pid, signal.SIGKILL)
        run_in_progress.wait()
        tab.get_by_text(
            re.compile(r"The run ended before it was complete: \d trials? (is|are) not in")
        ).wait_for()
        tab.locator(".rows .line", has_text="live").click()
        tab.get_by_text("The trial did not finish: the page shows it up to its end.").wait_for()
        tab.get_by_role("link", name="← Folder").click()
        tab.get_by_text("ended early").first.wait_for()
        context.close()
