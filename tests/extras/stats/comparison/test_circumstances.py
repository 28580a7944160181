"""One difference between two runs is one line, even if several fields show it."""

from __future__ import annotations

import copy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run
from tests.support.results import metric, question, result, write_result

from aigo_stats.comparison.circumstances import divergences
from aigo_stats.comparison.columns import read_columns

Json = dict[str, Any]
SCORERS = [{"type": "string_equals", "key": name, "ground_truth": "{{ sample.gold }}"} for name in "abc"]


def _base() -> Json:
    log = result([question(number, "x", "x") for number in range(3)])
    definition = log["specification"]["task"]["definition"]
    definition["scorers"] = copy.deepcopy(SCORERS)
    definition["solver"]["input_builder"]["input_messages"] = [
        {"role": "user", "content": "{{ sample.question }}"}
    ]
    log["app_version"] = "aigo-bridge 1.0 (inspect_ai 0.3)"
    return log


def _model(log: Json) -> None:
    entity = log["specification"]["evaluated_entity"]
    entity |= {"id": "n", "key": "n", "display_name": "openai/gpt"}
    entity["config"] = {"connection_type": "provider_connection", "provider_id": "openai", "model_key": "gpt"}


def _engine(log: Json) -> None:
    entity = log["specification"]["evaluated_entity"]
    entity["adapter_id"] = entity["config"]["adapter_id"] = "lighteval"
    entity["config"]["url"] = "lighteval://some/model"
    log["app_version"] = "aigo-bridge 1.0 (lighteval 0.13)"


def _data(log: Json) -> None:
    log["specification"]["config"]["dataset_key"] = "others"
    log["specification"]["task"]["definition"]["dataset"] = {"id": "others"}


def _name(log: Json) -> None:
    log["specification"]["display_name"] = "Towns"
    log["specification"]["task"] |= {"id": "towns", "key": "towns", "display_name": "Towns"}


def _limit(log: Json) -> None:
    log["specification"]["run_config"] |= {"num_samples": 2, "subsampling": "random"}


def _trials(log: Json) -> None:
    log["specification"]["run_config"]["trials_config"] = {"num_trials": 2}
    for sample in log["evidence"]["samples"]:
        sample["trials"].append({**sample["trials"][0], "index": 1})


def _new_scorer(log: Json) -> None:
    log["specification"]["task"]["definition"]["scorers"].insert(0, {**SCORERS[0], "key": "first"})


def _scorer_type(log: Json) -> None:
    scorers = log["specification"]["task"]["definition"]["scorers"]
    scorers[1] = {"type": "bleu", "key": "b", "reference": "{{ sample.gold }}", "max_order": 2}


def _inspect_log(log: Json, number: int, temperature: float) -> None:
    steps = [{"solver": "generate", "params": {"temperature": temperature}}]
    log["specification"]["task"]["definition"]["solver"]["steps"] = steps
    log["specification"]["config"]["inspect"] = {
        "eval": {
            "eval_id": f"e{number}",
            "run_id": f"r{number}",
            "task_id": f"t{number}",
            "created": f"c{number}",
        },
        "plan": {"steps": steps},
        "stats": {"started_at": f"s{number}"},
    }


CASES: dict[str, tuple[Callable[[Json], None], list[str]]] = {
    "model": (_model, ["model: some/model → openai/gpt"]),
    "engine": (_engine, ["engine: inspect → lighteval"]),
    "data": (_data, ["config: not there → 'others'"]),
    "name": (_name, ["task: 'quiz' → 'towns'"]),
    "limit": (_limit, ["amount of evaluated data: not there → 2"]),
    "trials": (_trials, ["amount of evaluated data: 1 → 2"]),
    "new scorer": (_new_scorer, ["scorers: not there → "]),
    "type of a scorer": (_scorer_type, ["scorers: 'string_equals' → 'bleu'"]),
}


def _lines(folder: Path, change: Callable[[Json], None]) -> list[str]:
    new = _base()
    change(new)
    files = [
        write_result(folder / f"{name}.tasklog.json", log) for name, log in (("base", _base()), ("new", new))
    ]
    both = [read_columns(file) for file in files]
    return [f"{one.kind}: {one.base} → {one.new}" for one in divergences(*both)]


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES)
def test_one_difference_between_runs_is_one_line(
    tmp_path: Path, change: Callable[[Json], None], expected: list[str]
) -> None:
    lines = _lines(tmp_path, change)
    assert len(lines) == len(expected) == 1, lines
    assert lines[0].startswith(expected[0])


@pytest.mark.parametrize(("temperature", "expected"), [(0.0, []), (0.5, ["prompt and solver: 0.0 → 0.5"])])
def test_imported_logs_are_compared_by_their_settings_only(
    tmp_path: Path, temperature: float, expected: list[str]
) -> None:
    logs = _base(), _base()
    for number, (log, value) in enumerate(zip(logs, (0.0, temperature), strict=True)):
        _inspect_log(log, number, value)
    both = [read_columns(write_result(tmp_path / f"{n}.tasklog.json", log)) for n, log in enumerate(logs)]
    assert [f"{one.kind}: {one.base} → {one.new}" for one in divergences(*both)] == expected


def test_two_differences_between_runs_are_two_lines(tmp_path: Path) -> None:
    def change(log: Json) -> None:
        _engine(log)
        log["specification"]["evaluated_entity"]["display_name"] = "other/model"

    assert _lines(tmp_path, change) == ["model: some/model → other/model", "engine: inspect → lighteval"]


def test_equal_changes_of_two_fields_are_two_lines(tmp_path: Path) -> None:
    def change(log: Json) -> None:
        for scorer in log["specification"]["task"]["definition"]["scorers"][:2]:
            scorer["ground_truth"] = "{{ sample.other }}"

    assert len(_lines(tmp_path, change)) == 2


def test_models_with_equal_names_are_distinguished_by_settings(tmp_path: Path) -> None:
    def change(log: Json) -> None:
        log["specification"]["evaluated_entity"]["config"]["model_key"] = "some/other"

    assert _lines(tmp_path, change) == ["model: 'some/model' → 'some/other'"]


def _pair(folder: Path, *, other_rows: bool) -> tuple[Path, Path]:
    values = [metric({"accuracy": 1.0})]
    base = result([question(number, "x", "x") for number in range(4)], values)
    new = copy.deepcopy(base)
    for number, sample in enumerate(new["evidence"]["samples"]):
        if other_rows:
            sample["trials"][0]["sample"]["data"]["gold"] = "y"
        if number < 2:
            sample["trials"][0]["scores"][0]["values"]["is_correct"] = 0.0
    paths = folder / "base.tasklog.json", folder / "new.tasklog.json"
    return write_result(paths[0], base), write_result(paths[1], new)


@pytest.mark.parametrize("other_rows", [True, False])
def test_by_id_is_suggested_if_ids_match_but_rows_differ(aigo: Run, tmp_path: Path, other_rows: bool) -> None:
    files = _pair(tmp_path, other_rows=other_rows)
    hint = "4 samples have the same id and another row; --by-id pairs them by id"
    assert (hint in aigo("compare", *files).out) == other_rows
    paired = aigo("compare", *files, "--by-id").out
    assert "4 samples are in both" in paired
    assert "--by-id" not in paired
