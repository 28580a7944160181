"""Report writing: complete samples, reported damage, and folders for large reports."""

from __future__ import annotations

import base64
import gzip
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.support.results import metric, question, result, write_result

from aigo_bridge.errors import UsageError
from aigo_report.page import sources_of, write_report


def block(page: Path, name: str) -> str:
    """Return the data of an element."""
    found = re.search(rf'id="{name}">([^<]*)<', page.read_text("ascii"))
    assert found is not None
    return gzip.decompress(base64.b64decode(found[1])).decode()


def summary(page: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(block(page, "summary"))
    return data


def test_page_contains_every_sample_unchanged(tmp_path: Path) -> None:
    log = result([question(number, "a", "a") for number in range(3)], [metric({"accuracy": 1.0})])
    path = write_result(tmp_path / "quiz.tasklog.json", log)

    report = write_report(sources_of([path]), tmp_path / "report.html")

    assert (report.samples, report.pages, report.problems) == (3, 1, ())
    lines = block(report.path, "r0p0").split("\n")
    assert [json.loads(line) for line in lines] == log["evidence"]["samples"]


def test_large_report_is_a_folder_with_each_block_once(tmp_path: Path) -> None:
    noise = random.Random(1)
    samples = [question(number, noise.randbytes(20_000).hex(), "a") for number in range(20)]
    path = write_result(tmp_path / "quiz.tasklog.json", result(samples, [metric({"accuracy": 0.0})]))

    report = write_report(sources_of([path]), tmp_path / "report.html", largest=300_000)

    assert report.path == tmp_path / "report" / "index.html"
    assert report.pages > 2
    pages = summary(report.path)["pages"]
    blocks = {name for _, name in summary(report.path)["results"][0]["parts"]}
    for name in blocks:
        holders = [page.name for page in report.path.parent.iterdir() if f'id="{name}"' in page.read_text()]
        assert holders == [pages[name]]
    assert not (tmp_path / "report.html").exists()


def test_truncated_result_is_reported_and_partially_displayed(tmp_path: Path) -> None:
    whole = write_result(tmp_path / "a.tasklog.json", result([question(0, "a", "a")], []))
    cut = tmp_path / "b.tasklog.json"
    text = json.dumps(result([question(number, "a", "a") for number in range(4)], []), sort_keys=True)
    cut.write_text(text[: text.index('"sample_id": 3')])

    report = write_report(sources_of([whole, cut]), tmp_path / "report.html")

    (problem,) = report.problems
    assert "cut off" in problem
    _, broken = summary(report.path)["results"]
    assert broken["status"] == "unreadable"
    assert len(json.loads(block(report.path, "r1t0"))) == 3


def test_file_that_is_not_a_result_is_rejected_for_a_report(tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text("[]")

    with pytest.raises(UsageError, match=r"other\.json"):
        write_report(sources_of([other]), tmp_path / "report.html")
    assert not (tmp_path / "report.html").exists()


def test_known_secrets_are_not_in_the_page(tmp_path: Path) -> None:
    from aigo_bridge.redaction.secrets import KNOWN

    log = result([question(0, "my key is hunter2-hunter2", "a")], [])
    path = write_result(tmp_path / "quiz.tasklog.json", log)
    KNOWN.learn(["hunter2-hunter2"])

    report = write_report(sources_of([path]), tmp_path / "report.html")

    for name in ("summary", "r0p0", "r0t0"):
        assert "hunter2" not in block(report.path, name)


def with_accuracy(path: Path, answers: str, **fields: Any) -> Path:
    samples = [question(number, answer, "a") for number, answer in enumerate(answers)]
    content = result(samples, [metric({"accuracy": answers.count("a") / len(answers)})], **fields)
    mean = {"type": "mean", "field": "is_correct", "name": "accuracy"}
    content["specification"]["task"]["definition"]["scorers"] = [
        {"type": "string_equals", "key": "exact", "ground_truth": "", "metrics": [mean]}
    ]
    return write_result(path, content)


def test_only_results_of_the_same_task_are_compared(tmp_path: Path) -> None:
    logs = [
        with_accuracy(tmp_path / "a.tasklog.json", "aabb"),
        with_accuracy(tmp_path / "b.tasklog.json", "aaab"),
    ]
    other = result([question(0, "a", "a")])
    other["specification"]["task"]["key"] = "other"
    logs.append(write_result(tmp_path / "c.tasklog.json", other))

    page = write_report(sources_of(logs), tmp_path / "report.html").path

    assert summary(page)["comparisons"] == [{"base": 0, "new": 1, "block": "c0-1"}]
    content = json.loads(block(page, "c0-1"))
    (metric_row,) = content["metrics"]
    assert (metric_row["base"], metric_row["new"], metric_row["scale"]) == (0.5, 0.75, [0.0, 1.0])
    assert metric_row["verdicts"] == "rrgw"
    assert content["pairing"] == [[0, 0], [1, 1], [2, 2], [3, 3]]
    assert (content["base"]["position"], content["new"]["name"]) == (0, "b.tasklog.json")


def test_a_report_without_scipy_has_no_comparisons(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    logs = [with_accuracy(tmp_path / f"{name}.tasklog.json", "aabb") for name in "ab"]
    monkeypatch.setitem(sys.modules, "scipy.special", None)

    page = write_report(sources_of(logs), tmp_path / "report.html").path

    assert summary(page)["comparisons"] == []
    assert len(summary(page)["results"]) == 2
