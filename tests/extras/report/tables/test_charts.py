"""Charts: what they show is what the results have, and texts of strangers are drawn as texts."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.support.hostile_texts import HOSTILE
from tests.support.results import message, metric, question, result, sample, score, trial, write_result

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_report.tables.charts import CHART_NAMES, chart, draw
from aigo_report.tables.results import results_at

MEAN = {"type": "mean", "field": "is_correct"}
ERROR = {"error_type": "TimeoutError", "message": "no answer", "hint": None, "stage": "solver"}


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    """Twelve questions, of which a quarter is answered wrong; one failed and one is excluded."""
    samples = [question(number, "b" if number % 4 == 0 else "a", "a") for number in range(12)]
    samples += [question(12, "a", "a", excluded="easy"), sample(trial(13, None, errors=[ERROR]))]
    log = result(samples, [metric({"mean": 0.75}, scorer="exact", key="mean")])
    log["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "", "value": "", "metrics": [MEAN]}
    ]
    return write_result(tmp_path / "quiz.tasklog.json", log)


def test_numbers_are_those_of_the_results(quiz: Path) -> None:
    results = results_at([quiz])

    (number,) = chart("metrics", results).rows
    assert (number["value"], number["scored"]) == (0.75, 12)
    assert number["low"] < 0.75 < number["high"]
    assert [(row["value"], row["samples"]) for row in chart("scores", results).rows] == [
        ("0.0", 3),
        ("1.0", 9),
    ]
    assert {row["state"]: row["samples"] for row in chart("stages", results).rows} == {
        "scored": 12,
        "excluded": 1,
        "failed: solver": 1,
    }


def test_many_values_are_counted_in_ranges(tmp_path: Path) -> None:
    samples = [sample(trial(number, [], scores=[score("s", {"n": number / 100})])) for number in range(101)]
    path = write_result(tmp_path / "n.tasklog.json", result(samples))

    rows = chart("scores", results_at([path])).rows

    assert [row["samples"] for row in rows] == [5] * 19 + [6]
    assert rows[0]["value"] == "0 to 0.05"


@pytest.mark.parametrize("name", CHART_NAMES)
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_every_chart_is_a_picture(quiz: Path, tmp_path: Path, name: str, suffix: str) -> None:
    if name == "tokens":
        call = {
            "type": "model_call_event",
            "model": "m",
            "usage": {"num_prompt_tokens": 7, "num_completion_tokens": 2},
        }
        quiz.write_text(json.dumps(result([sample(trial(0, [], events=[call]))])))
    out = tmp_path / f"p{suffix}"

    draw(chart(name, results_at([quiz])), out)  # type: ignore[arg-type]  # one of its names

    data = out.read_bytes()
    if suffix == ".svg":
        assert ET.fromstring(data).tag == "{http://www.w3.org/2000/svg}svg"
        assert quiz.name in data.decode()
    else:
        assert data.startswith(b"\x89PNG\r\n")


def test_results_of_one_beginning_stay_apart(tmp_path: Path) -> None:
    paths = [tmp_path / f"{'x' * 200}{number}.tasklog.json" for number in range(2)]
    for path in paths:
        write_result(path, result([question(0, "a", "a")]))

    drawn = chart("stages", results_at(paths)).specification()["data"]["values"]

    assert len({row["result"] for row in drawn}) == 2
    assert all(len(row["result"]) < 220 for row in drawn)


def test_hostile_names_are_drawn_as_texts(tmp_path: Path) -> None:
    samples = [
        sample(
            trial(
                text,
                [message("user", text)],
                scores=[score(text, {text: 1.0})],
                errors=[{**ERROR, "message": text}],
            )
        )
        for text in HOSTILE
    ]
    path = tmp_path / "h.tasklog.json"
    path.write_text(json.dumps(result(samples, title="<script>")))

    draw(chart("scores", results_at([path])), tmp_path / "h.svg")

    tree = ET.parse(tmp_path / "h.svg")
    tags = {element.tag.rpartition("}")[2] for element in tree.iter()}
    assert tags <= {"svg", "g", "path", "text", "tspan", "rect", "line", "defs", "clipPath", "title"}
    names = {name.rpartition("}")[2].lower() for element in tree.iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or name in ("href", "src")}
    assert "<script>alert(document.domain)</script>" in "".join(tree.getroot().itertext())


def test_nothing_to_draw_and_too_much_are_told(quiz: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no data for the chart 'tokens', expected model calls"):
        chart("tokens", results_at([quiz]))
    samples = [sample(trial(0, [], scores=[score(f"s{number}", {"n": 1})])) for number in range(401)]
    path = write_result(tmp_path / "many.tasklog.json", result(samples))
    with pytest.raises(UsageError, match="401 marks, expected at most 400; name fewer results") as caught:
        chart("scores", results_at([path]))
    assert caught.value.code == Code.UNDRAWABLE_CHART


def test_what_the_process_knows_to_be_secret_is_not_drawn(tmp_path: Path) -> None:
    from aigo_bridge.redaction.secrets import KNOWN

    secret = sample(trial(0, [], scores=[score("hunter2-hunter2", {"n": 1})]))
    path = write_result(tmp_path / "s.tasklog.json", result([secret]))
    KNOWN.learn(["hunter2-hunter2"])

    draw(chart("scores", results_at([path])), tmp_path / "s.svg")

    assert "hunter2" not in (tmp_path / "s.svg").read_text()
