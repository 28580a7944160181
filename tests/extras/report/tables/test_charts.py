"""Charts: correct data, labels and escaped hostile texts."""

from __future__ import annotations

import base64
import json
import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from tests.support.hostile_texts import HOSTILE
from tests.support.results import message, metric, question, result, sample, score, trial, write_result

from aigo_bridge.codes import Code
from aigo_bridge.errors import UsageError
from aigo_report.tables.charts import CHART_NAMES, THEMES, chart, draw
from aigo_report.tables.results import results_at

MEAN = {"type": "mean", "field": "is_correct"}
ERROR = {"error_type": "TimeoutError", "message": "no answer", "hint": None, "stage": "solver"}


@pytest.fixture
def quiz(tmp_path: Path) -> Path:
    """Return a result of twelve questions with three wrong answers, one failure and one exclusion."""
    samples = [question(number, "b" if number % 4 == 0 else "a", "a") for number in range(12)]
    samples += [question(12, "a", "a", excluded="easy"), sample(trial(13, None, errors=[ERROR]))]
    log = result(samples, [metric({"mean": 0.75}, scorer="exact", key="mean")])
    log["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "", "value": "", "metrics": [MEAN]}
    ]
    return write_result(tmp_path / "quiz.tasklog.json", log)


def test_chart_data_equals_the_result_metrics(quiz: Path) -> None:
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


def test_many_score_values_are_binned(tmp_path: Path) -> None:
    samples = [sample(trial(number, [], scores=[score("s", {"n": number / 100})])) for number in range(101)]
    path = write_result(tmp_path / "n.tasklog.json", result(samples))

    rows = chart("scores", results_at([path])).rows

    assert [row["samples"] for row in rows] == [5] * 19 + [6]
    assert rows[0]["value"] == "0 to 0.05"


@pytest.mark.parametrize("name", CHART_NAMES)
@pytest.mark.parametrize("suffix", [".svg", ".png", ".pdf"])
def test_every_chart_is_written_in_every_image_format(
    quiz: Path, tmp_path: Path, name: str, suffix: str
) -> None:
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
        assert "some/model" in data.decode()
    else:
        assert data.startswith(b"\x89PNG\r\n" if suffix == ".png" else b"%PDF-")


def with_model(path: Path, name: str, title: str = "Quiz") -> Path:
    """Write a result of a model with the given name."""
    log = result([question(0, "a", "a")], [metric({"mean": 1.0})], title=title)
    log["specification"]["evaluated_entity"]["display_name"] = name
    return write_result(path, log)


def test_chart_labels_include_the_file_if_model_names_are_equal(tmp_path: Path) -> None:
    names = {"one": "m/small", "two": "m/large", "three": "m/large"}
    results = results_at(
        [with_model(tmp_path / f"{file}.tasklog.json", name) for file, name in names.items()]
    )

    labels = [row["label"] for row in chart("metrics", results).rows]

    assert labels == ["m/small", *(f"m/large ({name})" for name in results.names[1:])]


def test_chart_labels_include_the_task_if_there_are_several(tmp_path: Path) -> None:
    paths = [with_model(tmp_path / f"{name}.tasklog.json", "m", name) for name in ("Quiz", "Test")]

    assert [row["label"] for row in chart("stages", results_at(paths)).rows] == ["Quiz · m", "Test · m"]
    assert [row["label"] for row in chart("metrics", results_at(paths)).rows] == ["m", "m"]


def test_svg_embeds_the_fonts_of_its_characters(tmp_path: Path) -> None:
    for name, model in (("plain", "m"), ("greek", "μ-λ")):
        path = with_model(tmp_path / f"{name}.tasklog.json", model)
        draw(chart("stages", results_at([path])), tmp_path / f"{name}.svg")

    plain, greek = ((tmp_path / f"{name}.svg").read_text() for name in ("plain", "greek"))
    assert (plain.count("@font-face"), greek.count("@font-face")) == (1, 2)
    fonts = re.findall(r"data:font/woff2;base64,([^)]+)\)", greek)
    assert [base64.b64decode(font)[:4] for font in fonts] == [b"wOF2", b"wOF2"]
    assert 'font-family="Arimo,' in plain


def test_a_dark_chart_has_light_and_larger_text(quiz: Path, tmp_path: Path) -> None:
    drawn = chart("metrics", results_at([quiz]))

    for name, theme in THEMES.items():
        draw(drawn, tmp_path / f"{name}.svg", name)
        texts = [one for one in ET.parse(tmp_path / f"{name}.svg").iter() if one.tag.endswith("}text")]
        assert {one.get("fill") for one in texts} == {theme.ink}
        assert min(float(str(one.get("font-size", ""))[:-2]) for one in texts) == theme.size


def test_axis_of_a_proportion_ends_at_100_percent(tmp_path: Path) -> None:
    log = result([question(number, "a", "a") for number in range(4)], [metric({"mean": 1.0})])
    log["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "", "value": "", "metrics": [MEAN]}
    ]
    path = write_result(tmp_path / "all.tasklog.json", log)

    draw(chart("metrics", results_at([path])), tmp_path / "all.svg")

    texts = [
        "".join(one.itertext()) for one in ET.parse(tmp_path / "all.svg").iter() if one.tag.endswith("}text")
    ]
    assert "100 %" in texts
    assert "100 %  (51.01 to 100 %)" in [text.replace("\xa0", " ") for text in texts]
    assert not [text for text in texts if text.startswith("110")]


def test_results_with_long_equal_name_prefixes_have_distinct_labels(tmp_path: Path) -> None:
    paths = [tmp_path / f"{'x' * 200}{number}.tasklog.json" for number in range(2)]
    for path in paths:
        write_result(path, result([question(0, "a", "a")]))

    drawn = chart("stages", results_at(paths)).specification()["vconcat"][0]["data"]["values"]

    assert len({row["label"] for row in drawn}) == 2
    assert all(len(row["label"]) < 220 for row in drawn)


def test_hostile_names_are_drawn_as_text(tmp_path: Path) -> None:
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
    assert tags <= {"svg", "style", "g", "path", "text", "tspan", "rect", "line", "defs", "clipPath", "title"}
    (style,) = (element for element in tree.iter() if element.tag.endswith("}style"))
    assert set(re.findall(r"url\((.{12})", style.text or "")) == {"data:font/wo"}
    names = {name.rpartition("}")[2].lower() for element in tree.iter() for name in element.attrib}
    assert not {name for name in names if name.startswith("on") or name in ("href", "src")}
    assert "<script>alert(document.domain)</script>" in "".join(tree.getroot().itertext())


def test_chart_without_data_or_with_too_many_marks_is_rejected(quiz: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no data for the chart 'tokens', expected model calls"):
        chart("tokens", results_at([quiz]))
    samples = [sample(trial(0, [], scores=[score(f"s{number}", {"n": 1})])) for number in range(401)]
    path = write_result(tmp_path / "many.tasklog.json", result(samples))
    with pytest.raises(UsageError, match="401 marks, expected at most 400; name fewer results") as caught:
        chart("scores", results_at([path]))
    assert caught.value.code == Code.UNDRAWABLE_CHART


def test_known_secrets_are_not_drawn(tmp_path: Path) -> None:
    from aigo_bridge.redaction.secrets import KNOWN

    secret = sample(trial(0, [], scores=[score("hunter2-hunter2", {"n": 1})]))
    path = write_result(tmp_path / "s.tasklog.json", result([secret]))
    KNOWN.learn(["hunter2-hunter2"])

    draw(chart("scores", results_at([path])), tmp_path / "s.svg")

    assert "hunter2" not in (tmp_path / "s.svg").read_text()
