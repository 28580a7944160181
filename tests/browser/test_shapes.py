"""Pages of every kind of result: complete metrics, working views, accessibility and printing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.browser.conftest import open_page
from tests.support.commands import TASKS
from tests.support.frontend import part
from tests.support.results import PIXEL, message, metric, question, result, sample, score, trial, write_result

from aigo_report.page import sources_of, write_report

if TYPE_CHECKING:
    from playwright.sync_api import Page

GUEST_AND_JUDGE = "openai$gpt-4-1-mini"
SHIPPED: dict[str, tuple[str, ...]] = {
    "singleturn-generic-input": (),
    "hp-trivia": ("--model-map", f"openai$gpt-4-1-nano=scripted/{TASKS}/hp-trivia/judge.jsonl"),
    "booking-dialogue": ("--model-map", f"{GUEST_AND_JUDGE}=scripted/{TASKS}/booking-dialogue/judge.jsonl"),
    "tool-use": (),
    "uniqueness-task": (
        *("--dataset", f"contacts={TASKS}/uniqueness-task/contacts.csv"),
        *("--config", "field=email"),
    ),
}
"""Shipped tasks, and how each is run offline: of single turns, with a judge, of many turns, with tools, of rows alone."""

TASK = """key: {key}
display_name: Task {key}
description: ""
definition:
  dataset: {{key: rows}}
  solver:
    type: single_turn_solver
    input_builder: {{type: chat_completion, input_messages: [{{role: user, content: "{{{{ sample.q }}}}"}}]}}
  scorers:
    - type: string_equals
      ground_truth: "{{{{ sample.{key} }}}}"
      metrics: [{{type: mean, field: is_correct, name: Accuracy}}]
"""
MODELS, QUESTIONS = ("one", "two"), ("a", "b", "c")
EVALUATION = f"""
models: [{", ".join(f"{{$provider: scripted/{name}.jsonl}}" for name in MODELS)}]
tasks: [{", ".join(f"{{$ref: {key}.yaml}}" for key in QUESTIONS)}]
evaluation:
  key: matrix
  display_name: Two models, three tasks
  description: ""
  task_specifications:
{chr(10).join(f'    - {{key: {key}-{name}, task_key: {key}, model_key: "scripted${name}-jsonl"}}' for key in QUESTIONS for name in MODELS)}
policies:
  - key: gate
    display_name: Gate
    rules:
      - {{key: any, display_name: Better than nothing, definition: {{type: threshold, metric: Accuracy, operator: ">=", threshold: 0.0}}, scope: {{task_specification_keys: [a-one]}}}}
      - {{key: all, display_name: All right, definition: {{type: threshold, metric: Accuracy, operator: ">=", threshold: 1.0}}, scope: {{task_specification_keys: [b-one]}}}}
"""


def run(folder: Path, *arguments: object) -> None:
    """Call `aigo-bridge run` in another process, because Playwright runs an event loop in this one."""
    from tests.support.forked import finished

    done = finished(["aigo-bridge", "run", *arguments], cwd=folder, env=dict(os.environ), timeout=120)
    assert done.returncode in (0, 1), done.stderr


@dataclass(frozen=True)
class Shape:
    """Page and the results that it shows."""

    page: Path
    logs: Sequence[Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shapes")


def shape(folder: Path, *logs: Path) -> Shape:
    return Shape(write_report(sources_of(logs), folder / f"{logs[0].name}.html").path, logs)


def agent_log() -> dict[str, Any]:
    """Return a log of an agent with a sub-agent that views an image with a tool."""

    def at(second: int, span: str, kind: str, **fields: Any) -> dict[str, Any]:
        return {"span_id": span, "timestamp": f"2026-01-01T00:00:0{second}Z", "type": kind, **fields}

    use = {"num_prompt_tokens": 12, "num_completion_tokens": 3}
    image = {"type": "input_image", "image_url": PIXEL, "detail": "auto"}
    call = {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": '{"at": "sky"}'}
    output = {"type": "function_call_output", "id": "o", "call_id": "c", "output": "blue"}
    model = {"input_context": [], "output_items": [message("assistant", "Blue.")], "model": "some/model"}
    events = [
        at(0, "a", "span_begin", name="planner", span_type="agent"),
        at(1, "b", "span_begin", name="researcher", span_type="agent", parent_span_id="a"),
        at(1, "b", "model_call_event", usage=use, total_time=1.5, **model),
        at(3, "b", "function_call_event", call_id="c", function="look", arguments="{}", result="blue", status="completed", working_time=0.5),
        at(4, "b", "span_end"),
        at(5, "a", "span_end"),
    ]  # fmt: skip
    items = [
        message("system", "Be brief."),
        message("user", "Which colour is it?", image),
        {**call, "status": "completed"},
        {**output, "status": "completed"},
        message("assistant", {"type": "reasoning_text", "text": "It looks blue."}, "Blue."),
    ]
    right = score("exact", {"is_correct": 1.0}, answer_gt="blue", answer_pred="Blue.")
    trials = [trial("sky", items, scores=[right], events=events, index=index) for index in range(2)]
    return result([sample(*trials)], [metric({"accuracy": 1.0})], title="Agent")


def failed_log() -> dict[str, Any]:
    """Return a log of a run that ended before its first sample."""
    error = {"error_type": "ModelError", "message": "no such model", "hint": "say which", "stage": "solver"}
    return result([], None, title="Failed", status="failure", errors=[error])


SHAPES = (*SHIPPED, "matrix", "agent", "failed", "empty", "mixed")


@pytest.fixture(params=SHAPES)
def shaped(request: pytest.FixtureRequest, folder: Path) -> Shape:
    name = request.param
    log = folder / f"{name}.tasklog.json"
    if name in SHIPPED:
        model = () if name == "uniqueness-task" else ("--model", f"scripted/{TASKS}/{name}/answers.jsonl")
        run(folder, TASKS / name, *model, *SHIPPED[name], "--out", folder)
        return shape(folder, log)
    if name == "matrix":
        return matrix(folder)
    logs: dict[str, Callable[[], dict[str, Any]]] = {
        "agent": agent_log,
        "failed": failed_log,
        "empty": lambda: result([], [], title="Empty"),
        "mixed": lambda: result([question(0, "a", "b"), question(1, "b", "b")], [metric({"accuracy": 0.5})]),
    }
    return shape(folder, write_result(log, logs[name]()))


def matrix(folder: Path) -> Shape:
    """Write an evaluation of two models and three tasks in which one policy fails."""
    place = folder / "matrix"
    place.mkdir()
    for key in QUESTIONS:
        (place / f"{key}.yaml").write_text(TASK.format(key=key))
    for name in MODELS:
        (place / f"{name}.jsonl").write_text(json.dumps({"default": True, "reply": name}) + "\n")
    (place / "rows.jsonl").write_text(
        '{"q": "?", "a": "one", "b": "two", "c": "none"}\n{"q": "!", "a": "one", "b": "one", "c": "two"}\n'
    )
    (place / "run.yaml").write_text(EVALUATION)
    run(place, "run.yaml", "--out", place)
    logs = [place / f"{key}-{name}.tasklog.json" for key in QUESTIONS for name in MODELS]
    return Shape(write_report(sources_of([place]), folder / "matrix.html").path, logs)


def numbers(log: Path) -> list[str]:
    """Return the metric values of a result, formatted as in the file."""
    evidence = json.loads(log.read_bytes(), parse_float=str, parse_int=str)["evidence"]
    return [value for metric in evidence["metrics"] or () for value in metric["values"].values()]


def num_trials(log: Path) -> int:
    samples = json.loads(log.read_bytes())["evidence"]["samples"] or ()
    return sum(len(one.get("trials") or [one]) for one in samples)


LEVELS = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa")


def barriers(page: Page) -> list[str]:
    """Return the axe violations of levels A and AA in a view."""
    if not page.evaluate("'axe' in window"):
        page.evaluate((part("axe-core") / "axe.min.js").read_text("utf-8"))
    # Resize events arrive in the next frame.
    page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    outcome: dict[str, Any] = page.evaluate(
        "axe.run(document, {resultTypes: ['violations'], runOnly: RULES})".replace("RULES", str(list(LEVELS)))
    )
    return [
        f"{violation['id']}: {violation['nodes'][0]['html']}: {violation['nodes'][0]['failureSummary']}"
        for violation in outcome["violations"]
    ]


WIDTH_OF_PAPER = 718
"""Pixels of A4 between the margins of a browser."""
OUTSIDE = """(selector) => [...document.querySelectorAll(selector)].filter((element) => {
  const box = element.getBoundingClientRect();
  return box.width === 0 || box.right > innerWidth + 1;
}).map((element) => element.textContent)"""


FULL = """(selector) => [...document.querySelectorAll(selector)].map((cell) =>
  cell.querySelector("[data-full]")?.dataset.full ?? cell.textContent)"""


def test_page_shows_all_metrics_and_samples_and_is_accessible(page: Page, shaped: Shape) -> None:
    open_page(page, shaped.page)
    for position, log in enumerate(shaped.logs):
        assert page.evaluate(FULL, f"#result-{position} .metrics .value") == numbers(log)
    assert barriers(page) == []

    for position, log in enumerate(shaped.logs):
        total = num_trials(log)
        page.goto(f"{shaped.page.as_uri()}#samples&result={position}")
        if total == 0:
            page.get_by_text("The result does not contain samples.").wait_for()
            continue
        page.get_by_text(f"{total} of {total} trials").wait_for()
    if page.locator(".grid").count():
        assert barriers(page) == []
        page.locator(".grid").press("Enter")
        page.locator(".sample h3").first.wait_for()
        assert barriers(page) == []

    page.goto(f"{shaped.page.as_uri()}#")
    page.set_viewport_size({"width": WIDTH_OF_PAPER, "height": 1000})
    page.emulate_media(media="print")
    page.locator("h2").first.wait_for()
    assert page.evaluate(OUTSIDE, ".metrics td, .metrics th, .tiles li, .number") == []
    page.set_viewport_size({"width": 400, "height": 800})
    page.emulate_media(media="screen", color_scheme="dark")
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


def test_sub_agents_are_indented_below_their_agents(page: Page, folder: Path) -> None:
    log = write_result(folder / "agents.tasklog.json", agent_log())
    open_page(page, shape(folder, log).page, "#sample=sky&trial=1")

    names = page.locator(".timeline .name").all_inner_texts()
    assert [name.replace("\n", " ") for name in names] == [
        "span planner agent",
        "span researcher agent",
        "model some/model 12 → 3 tokens",
        "tool look",
    ]
    indents = page.locator(".timeline .name").evaluate_all(
        "(names) => names.map((name) => parseFloat(getComputedStyle(name).paddingLeft))"
    )
    assert indents[0] < indents[1] < indents[2] == indents[3]
    assert page.locator(".timeline .took").all_inner_texts() == ["5\xa0s", "3\xa0s", "1.5\xa0s", "500\xa0ms"]
    assert page.locator("#sample-title").inner_text() == "Sample sky, trial 1"


def test_policy_rules_are_displayed_as_passed_or_not_passed(page: Page, folder: Path) -> None:
    place = folder / "policies"
    place.mkdir()
    write_result(place / "a.tasklog.json", result([question(0, "a", "a")], [metric({"accuracy": 1.0})]))
    rule = {"policy": "gate", "rule": "all", "display_name": "All right", "reason": "accuracy is 1.0"}
    summary = {
        "status": "success",
        "evaluation": {"key": "e", "display_name": "Evaluation", "file": "run.yaml"},
        "results": [{"key": "a", "result": "a.tasklog.json"}],
        "policies": [{**rule, "passed": True}, {**rule, "rule": "none", "passed": False}],
    }
    (place / "evaluation.json").write_text(json.dumps(summary))

    open_page(page, write_report(sources_of([place]), folder / "policies.html").path)

    rows = page.locator("table", has_text="Policies").first.locator("tbody tr").all_inner_texts()
    assert [row.split("\t")[1:] for row in rows] == [
        ["✓ passed", "accuracy is 1.0"],
        ["✗ not passed", "accuracy is 1.0"],
    ]
