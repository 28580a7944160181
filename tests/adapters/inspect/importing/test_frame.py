"""An unusual value in a header or in the reductions loses only itself, and is reported."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.support.inspect_logs.malformed import zipped
from tests.support.inspect_logs.small import imported, log, said, sample, written

from aigo_bridge.codes import Code
from aigo_bridge.dtypes import TaskResultLog
from aigo_bridge.errors import code_of_kind
from aigo_bridge.importing.log_import import Damage, ImportReport, LossReport
from aigo_inspect import import_log
from aigo_inspect.importing.frame import LogTotals, frame_of
from aigo_inspect.logs.shapes import lift_header

HUGE = 10**400
SPEC: dict[str, Any] = {
    "task": "t",
    "model": "openai/m",
    "created": "2026-01-02T03:04:05+00:00",
    "tags": ["a", "b"],
    "scorers": [{"name": "s"}, {"name": "z"}],
    "dataset": {"name": "d", "sample_ids": ["s0", "s1", "s2"]},
    "config": {"epochs": 2},
}


def head(**parts: Any) -> dict[str, Any]:
    metrics = {"mean": {"name": "mean", "value": 0.5}, "stderr": {"name": "stderr", "value": 0.1}}
    scores = [{"name": n, "scorer": n, "metrics": metrics} for n in ("s", "z")]
    results = {"total_samples": 6, "completed_samples": 6, "scores": scores}
    whole = {"version": 2, "status": "success", "eval": SPEC, "results": results, "tags": ["a", "c"]}
    return {**json.loads(json.dumps(whole)), **parts}


def reductions() -> list[Any]:
    return [
        {"scorer": name, "reducer": "mean", "samples": [{"sample_id": f"s{n}", "value": 1} for n in range(3)]}
        for name in ("s", "z")
    ]


def parts(header: dict[str, Any], reduced: Any = None) -> dict[str, bytes]:
    return {
        **log(),
        **{f"samples/s{n}_epoch_2.json": sample(f"s{n}", 2) for n in range(3)},
        "reductions.json": json.dumps(reductions() if reduced is None else reduced).encode(),
        "header.json": json.dumps(header).encode(),
    }


def document(header: dict[str, Any], reduced: Any = None) -> bytes:
    samples = [json.loads(sample(f"s{n}", epoch)) for epoch in (1, 2) for n in range(3)]
    reduced = reductions() if reduced is None else reduced
    return json.dumps({**header, "samples": samples, "reductions": reduced}, indent=2).encode()


def found(result: ImportReport) -> tuple[int, int, int]:
    """Return the number of written trials, metrics and reduced scores; they equal the counts of the report."""
    whole = TaskResultLog.model_validate(written(result))
    assert whole.evidence is not None
    samples = whole.evidence.samples or []
    metrics, reduced = len(whole.evidence.metrics or []), sum(len(item.scores or []) for item in samples)
    kept = result.loss.kept
    assert (kept["metric"], kept["reduced score"]) == (metrics, reduced)
    assert sum(len(item.trials) for item in samples) == result.trials
    return result.trials, metrics, reduced


def changed(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    header = head()
    node: Any = header
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = value
    return header


def test_a_valid_header_is_not_damage(tmp_path: Path) -> None:
    for data in (zipped(parts(head())), document(head())):
        result = imported(data, tmp_path)
        assert (result.exit_code, found(result)) == (0, (6, 4, 6))


SCORES = ("results", "scores")
ODD: dict[tuple[Any, ...], tuple[tuple[Any, ...], int]] = {
    (*SCORES, 0): (([1], 5, "x", None), 2),
    (*SCORES, 0, "metrics"): ((5, [1], "x", True), 2),
    (*SCORES, 0, "metrics", "mean"): ((HUGE, "x", [1], True), 3),
    (*SCORES, 0, "metrics", "mean", "value"): ((HUGE, -HUGE, "0.5", [0.5], {}, True), 3),
    SCORES: ((5, "x", {"a": 1}), 0),
    ("results",): ((5, [1], "x"), 0),
    ("tags",): ((5, "x", {"a": 1}), 4),
    ("tags", 0): (([["x"]], {"a": 1}, None), 4),
    ("eval", "tags", 1): (([["x"]], {"a": 1}, None), 4),
    ("eval", "scorers", 0): (([1], "x", 5), 4),
    ("eval", "created"): ((5, [1]), 4),
    ("eval", "model"): ((5, [1]), 4),
    ("eval", "task_args"): ((5, "x"), 4),
}


@pytest.mark.parametrize("place", ODD, ids=str)
@pytest.mark.parametrize("layout", ["eval", "json"])
def test_an_unusual_value_loses_only_itself(place: tuple[Any, ...], layout: str, tmp_path: Path) -> None:
    values, metrics = ODD[place]
    for value in values:
        header = changed(place, value)
        result = imported(zipped(parts(header)) if layout == "eval" else document(header), tmp_path)
        assert found(result) == (6, metrics, 6), value
        assert (result.exit_code, len(result.damage)) == (3, 1), (value, said(result))
        evidence = written(result)
        assert evidence["status"] == "failure"
        assert [e["message"] for e in evidence["errors"]] == [said(result)]
        assert evidence["specification"]["display_name"] == "t"
        # The report lists the same damage as the file.
        assert result.loss_file is not None
        report = json.loads(result.loss_file.read_text())
        assert [item["reason"] for item in report["damage"]] == [result.damage[0].reason]
        assert said(result) in "\n".join(result.lines)
        typed = import_log(tmp_path / "log.eval")
        assert typed.status == "failure"
        assert [error.message for error in typed.errors] == [said(result)]


def test_unusual_header_fields_are_reported_and_kept(tmp_path: Path) -> None:
    header = changed((*SCORES, 1, "metrics"), [7])
    header["tags"] = ["a", ["odd"]]
    result = imported(zipped(parts(header)), tmp_path)
    assert said(result).splitlines() == [
        "header: tags[1]: expected a text, found a list",
        "header: results.scores[1].metrics: expected an object, found a list",
    ]
    specification = written(result)["specification"]
    assert [tag["value"] for tag in specification["task"]["tags"]] == ["a", "b"]
    assert specification["config"]["inspect"]["results"]["scores"][1]["metrics"] == [7]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), None])
def test_metrics_without_samples_are_not_damage(value: float | None, tmp_path: Path) -> None:
    result = imported(zipped(parts(changed((*SCORES, 0, "metrics", "mean", "value"), value))), tmp_path)
    assert (result.exit_code, found(result)) == (0, (6, 3, 6))
    assert [e["error_type"] for e in written(result)["evidence"]["errors"]] == ["MetricWithoutValue"]


def test_a_mapping_bug_is_reported_and_loses_one_part(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def breaks(arguments: dict[str, Any]) -> list[Any]:
        if arguments:
            raise TypeError("odd")
        return []

    monkeypatch.setattr("aigo_inspect.importing.frame._parameters", breaks)
    result = imported(zipped(parts(changed(("eval", "task_args"), {"x": 1}))), tmp_path)
    assert (result.exit_code, found(result)) == (3, (6, 4, 6))
    evidence = written(result)
    assert evidence["status"] == "failure"
    (error,) = evidence["errors"]
    assert error["error_type"] == "UnmappedLog"
    assert code_of_kind(error["error_type"]) == Code.UNMAPPED_LOG
    assert error["message"].startswith("header: aigo-bridge failed to map the header at ")
    assert "TypeError: odd" in error["message"]
    assert "report this error in aigo-bridge" in error["message"]
    # The terminal and the loss report name it as a bug.
    assert error["message"] in "\n".join(result.lines)
    assert result.loss_file is not None
    report = json.loads(result.loss_file.read_text())
    assert [item["kind"] for item in report["damage"]] == ["UnmappedLog"]


ARGUMENTS: dict[str, Any] = {
    "none": None,
    "list": ["a", {"b": 1}],
    "empty": [],
    "object": {"a": {"b": [None]}},
    "text": "x",
    "number": 3,
    "share": 0.5,
    "switch": True,
    "": "of no name",
}


@pytest.mark.parametrize("last", ARGUMENTS, ids=repr)
@pytest.mark.parametrize("alone", [True, False], ids=["only", "last"])
def test_arguments_of_every_type_are_not_damage(last: str, alone: bool, tmp_path: Path) -> None:
    others = {} if alone else {name: value for name, value in ARGUMENTS.items() if name != last}
    arguments = {**others, last: ARGUMENTS[last]}
    for layout in (zipped(parts(changed(("eval", "task_args"), arguments))), None):
        data = layout or document(changed(("eval", "task_args"), arguments))
        result = imported(data, tmp_path)
        assert (result.exit_code, found(result), said(result)) == (0, (6, 4, 6), "")
        evidence = written(result)
        assert (evidence["status"], evidence["errors"]) == ("success", [])
        task = evidence["specification"]["task"]
        assert [tag["value"] for tag in task["tags"]] == ["a", "b", "c"]
        assert task["created_at"] == 1767323045
        types = {"text": "string", "number": "int", "share": "float", "switch": "boolean", "": "string"}
        assert [(item["key"], item["type"]) for item in task["config_spec"]] == [
            (name, types[name]) for name in arguments if name in types
        ]
        config = evidence["specification"]["config"]
        assert {name: config[name] for name in arguments} == arguments


# Reductions


@pytest.mark.parametrize("odd", [5, "x", None, [1]])
@pytest.mark.parametrize("layout", ["eval", "json"])
def test_an_invalid_reduction_is_reported(odd: Any, layout: str, tmp_path: Path) -> None:
    for reduced, left in (([*reductions(), odd], 6), ([odd, reductions()[1]], 3)):
        data = zipped(parts(head(), reduced)) if layout == "eval" else document(head(), reduced)
        result = imported(data, tmp_path)
        assert (result.exit_code, found(result)) == (3, (6, 4, left))
        assert result.damage[0].member == ("reductions.json" if layout == "eval" else "reductions")
        assert "expected an object, found" in said(result)
        assert sum(n for kind, n in result.loss.dropped.items() if "reduced" in kind) == 1


@pytest.mark.parametrize("odd", ["nobody", ["s0"], 7, None])
@pytest.mark.parametrize("layout", ["eval", "json"])
def test_a_reduced_score_without_a_sample_is_reported(odd: Any, layout: str, tmp_path: Path) -> None:
    reduced = reductions()
    reduced[1]["samples"][2]["sample_id"] = odd
    data = zipped(parts(head(), reduced)) if layout == "eval" else document(head(), reduced)
    result = imported(data, tmp_path)
    assert (result.exit_code, found(result), len(result.damage)) == (3, (6, 4, 5), 1)
    reason = "does not have a sample id" if odd is None else "belongs to a sample that is not in the log"
    assert f"entry 1: score 2 {reason}" in said(result)
    assert result.loss.dropped["reduced score of an unexpected shape, or without a sample"] == 1


@pytest.mark.parametrize("reduced", [5, "x", {"a": []}])
@pytest.mark.parametrize("layout", ["eval", "json"])
@pytest.mark.parametrize("epochs", [1, 2])
def test_reductions_that_are_not_a_list_are_reported(
    reduced: Any, layout: str, epochs: int, tmp_path: Path
) -> None:
    header = changed(("eval", "config", "epochs"), epochs)
    data = zipped(parts(header, reduced)) if layout == "eval" else document(header, reduced)
    result = imported(data, tmp_path)
    assert (result.exit_code, found(result), len(result.damage)) == (3, (6, 4, 0), 1)


def test_thousands_of_invalid_reductions_are_reported_in_a_hundred_lines(tmp_path: Path) -> None:
    result = imported(zipped(parts(head(), [*reductions(), *[5] * 20_000])), tmp_path)
    assert (found(result), len(result.damage)) == ((6, 4, 6), 101)


def test_a_log_without_samples_may_have_reductions(tmp_path: Path) -> None:
    header = changed(("eval", "config", "log_samples"), False)
    data = {"header.json": json.dumps(header).encode(), "reductions.json": parts(head())["reductions.json"]}
    result = imported(zipped(data), tmp_path)
    assert (result.exit_code, found(result)) == (0, (0, 4, 0))


# Every position in a header


RICH: dict[str, Any] = {
    "version": 2,
    "status": "error",
    "invalidated": False,
    "error": {"message": "m", "traceback": "t"},
    "tags": ["c"],
    "log_updates": [{"edits": [{"type": "tags"}]}],
    "eval": {
        **SPEC,
        "task_id": "i",
        "task_args": {"a": None, "b": [1], "c": "x"},
        "task_display_name": "T",
        "task_description": "d",
        "solver": "s",
        "sandbox": ["docker", "compose.yaml"],
        "packages": {"inspect_ai": "0.3.285"},
        "dataset": {"name": "d", "location": "l", "samples": 3, "sample_ids": ["s0"]},
        "config": {"epochs": 2, "limit": [0, 3], "sample_shuffle": True, "log_samples": True},
        "scorers": [{"name": "s", "options": {"a": 1}, "metrics": [{"name": "mean"}]}],
    },
    "plan": {"steps": [{"solver": "generate", "params": {}}]},
    "stats": {
        "started_at": "2026-01-02T03:04:05+00:00",
        "completed_at": "2026-01-02T03:04:06+00:00",
        "model_usage": {"openai/m": {"input_tokens": 1, "output_tokens": 2}},
    },
    "results": {
        "scores": [
            {
                "name": "s",
                "scorer": "s",
                "reducer": "mean",
                "unscored_samples": 1,
                "metrics": {"mean": {"name": "mean", "value": 0.5, "group": "g", "options": {}}},
            }
        ]
    },
}


def places(node: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if path:
        yield path
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in items:
        yield from places(value, (*path, key))


@pytest.mark.parametrize(
    "odd", [None, 5, -1, True, 0.5, float("nan"), "", "x", HUGE, [], [1], {}, {"a": {"b": 1}}], ids=repr
)
def test_unusual_values_never_cause_an_internal_error(odd: Any) -> None:
    """Unusual values are set aside before mapping. A failure in the mapping would be reported as a bug."""
    for path in places(RICH):
        header = copy.deepcopy(RICH)
        node: Any = header
        for key in path[:-1]:
            node = node[key]
        node[path[-1]] = copy.deepcopy(odd)
        damage: list[Damage] = []
        frame = frame_of(lift_header(header), LogTotals(), damage, LossReport())
        assert [str(item) for item in damage if item.kind == "UnmappedLog"] == [], path
        TaskResultLog.model_validate({**frame, "evidence": {**frame["evidence"], "samples": []}})
