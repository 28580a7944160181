"""Values of a configuration as a nested table: no raw JSON, numbers digit for digit, long parts cut off."""

from pathlib import Path
from typing import Any

from tests.support.results import question, result, write_result

from aigo_bridge.results.reading import LogReader
from aigo_bridge.results.sources import ResultSource
from aigo_bridge.results.values import MOST_MEMBERS, tree
from aigo_report.page.metrics import MetricReader
from aigo_report.page.summary import ResultTotals, result_summary


def test_tree_keeps_structure_and_digits() -> None:
    value = {"a": [1.0, 10**30, True, None, "x"], "b": {"c": {}}, "d": float("nan")}
    assert tree(value, 10) == {"a": ["1.0", str(10**30), True, None, "x"], "b": {"c": {}}, "d": "NaN"}


def test_tree_cuts_long_texts_lists_objects_and_depth() -> None:
    assert tree("x" * 20, 10) == "x" * 9 + "…"
    assert tree(list(range(MOST_MEMBERS + 5)), 10)[-1] == "… 5 more"
    assert tree({str(n): n for n in range(MOST_MEMBERS + 5)}, 10)["…"] == "5 more"
    deep: Any = "bottom"
    for _ in range(500):
        deep = [deep]
    assert len(str(tree(deep, 10))) < 100


def test_configuration_of_a_result_is_shown_without_raw_json(tmp_path: Path) -> None:
    log = result([question(0, "a", "a")], [])
    log["specification"]["config"] = {"inspect": {"eval": {"task": "t", "ids": list(range(500))}}}
    path = write_result(tmp_path / "r.tasklog.json", log)
    frame = LogReader(path).frame()
    summary = result_summary(ResultSource(path, path.name), frame, ResultTotals(), MetricReader())
    assert [text for _, text in summary["facts"] if text.startswith(("{", "["))] == []
    configuration = dict(summary["configuration"])
    assert configuration["Configuration of the task"]["inspect"]["eval"]["task"] == "t"
    assert set(configuration) >= {"Configuration of the task", "Definition of the task"}
