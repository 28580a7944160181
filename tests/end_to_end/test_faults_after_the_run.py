"""Internal errors after the last model call: logs are kept, the evidence records the error, and the exit code is not 0."""

from __future__ import annotations

import functools
import importlib
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest
from tests.support.commands import Run
from typer.testing import CliRunner

from aigo_bridge.cli import app

BAD = "bad-task"
"""In everything that belongs to the task which the fault is planted in, and in nothing of the other."""

TASK = """
key: KEY
display_name: KEY
description: ""
config_spec: [{type: string, key: word, display_name: Word, default_value: KEY}]
definition:
  dataset: {key: KEY}
  solver:
    type: single_turn_solver
    input_builder: {type: chat_completion, input_messages: [{role: user, content: "{{ sample.q }}"}]}
  scorers:
    - {type: string_equals, key: KEY, ground_truth: "yes", metrics: [{type: mean, key: KEY, field: is_correct, name: KEY}]}
    - {type: string_equals, key: second, ground_truth: "yes"}
  trials: {num_trials: 2}
  actions:
    - {key: none, action: exclude_from_metrics, filter: {op: equals, expression: "{{ sample.q }}", value: KEY}}
"""

RUN = """
tasks: [{$ref: good.yaml}, {$ref: bad-task.yaml}]
models: [{key: m, display_name: M, config: {connection_type: provider_connection, provider_id: openai, model_key: m}}]
evaluation:
  key: e
  display_name: E
  description: ""
  task_specifications:
    - {task_key: good, model_key: m}
    - {task_key: bad-task, model_key: m}
policies:
  - key: p
    display_name: P
    rules:
      - {key: r, display_name: R, definition: {type: exists, metric: good}, scope: all_latest}
      - {key: bad-task, display_name: R, definition: {type: exists, metric: good}, scope: all_latest}
"""

IN_ONE_RESULT = [
    "aigo_bridge.evaluation.writing:specification_of",
    "aigo_bridge.evaluation.writing:metrics_for",
    "aigo_bridge.evaluation.writing:uncomputed",
    "aigo_bridge.evaluation.writing:doubts_of",
    "aigo_bridge.results.assembling:compute_metric",
    "aigo_bridge.results.assembling:metrics_of",
    "aigo_bridge.results.assembling:excluded",
    "aigo_bridge.results.assembling:_sample",
    "aigo_bridge.results.internal_errors:encoded_sample",
    "ADAPTER.running.evidence:trial_records",
    "ADAPTER.running.evidence:logged_plan",
]
"""Functions of ours after the last model call that know which task they work for; the fault is planted for one of two."""

IN_EVERY_RESULT = [
    "aigo_bridge.evaluation.writing:execution_of",
    "aigo_bridge.evaluation.writing:run_errors",
    "aigo_bridge.evaluation.writing:came_to_an_end",
    "aigo_bridge.evaluation.writing:encoded_frame",
    "aigo_bridge.results.assembling:aggregate_trials",
    "aigo_bridge.results.assembling:metric_keys",
    "aigo_bridge.results.specification:stored_model",
]

IN_THE_ENGINE = {
    "inspect": [
        "aigo_inspect.running.metrics:metrics_of",
        "aigo_inspect.running.metrics:aggregate_trials",
        "aigo_inspect.running.run:earlier_runs",
    ],
    "lighteval": [
        "aigo_lighteval.running.run:_usage",
        "aigo_lighteval.running.run:_summary",
        "aigo_lighteval.running.run:metrics_for",
        "aigo_lighteval.running.hosted:stored_likelihoods",
        "aigo_lighteval.running.pipeline:_columns",
    ],
}

AFTER_ALL = [
    "aigo_bridge.evaluation.policies:_verdict",
    "aigo_bridge.evaluation.summary:summary",
    "aigo_bridge.cli.summaries:summary",
    "aigo_bridge.cli.runs:write_summary",
    "aigo_bridge.cli.runs:show_evaluation",
    "aigo_bridge.cli.outcomes:metric_problems",
]

Plant = Callable[..., None]


def write_project(folder: Path) -> Path:
    for key in ("good", BAD):
        (folder / f"{key}.yaml").write_text(TASK.replace("KEY", key))
        rows = [{"q": f"{key} {number}", "sample_id": f"{key}-{number}"} for number in range(2)]
        (folder / f"{key}.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    (folder / "run.yaml").write_text(RUN)
    (folder / "m.jsonl").write_text('{"default": true, "reply": "yes"}\n')
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return write_project(tmp_path)


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Plant:
    """Make a function fail for the task with the planted fault."""

    def plant(target: str, mark: str = BAD) -> None:
        module, _, name = target.partition(":")
        holder = importlib.import_module(module)
        real = getattr(holder, name)

        @functools.wraps(real)
        def failing(*args: Any, **kwargs: Any) -> Any:
            if mark in repr((args, kwargs)):
                raise ZeroDivisionError("planted")
            return real(*args, **kwargs)

        monkeypatch.setattr(holder, name, failing)

    return plant


def result(folder: Path, key: str) -> dict[str, Any]:
    from aigo_bridge.results.validating import validate_log

    path = folder / "out" / f"{key}.tasklog.json"
    assert validate_log(path) == []
    found: dict[str, Any] = orjson.loads(path.read_bytes())
    return found


def metrics(log: dict[str, Any]) -> list[dict[str, float]] | None:
    found = log["evidence"]["metrics"]
    return None if found is None else [metric["values"] for metric in found]


def complaints(log: dict[str, Any]) -> str:
    """Return all problems recorded in a result."""
    samples = log["evidence"].get("samples") or []
    trials = [trial for sample in samples for trial in sample.get("trials") or []]
    errors = [
        error for part in (log, log["evidence"], *samples, *trials) for error in part.get("errors") or []
    ]
    return " ".join(error["message"] for error in errors)


def native_logs(folder: Path) -> int:
    return len([*folder.glob("out/*.eval"), *folder.glob("out/results/*/*.json")])


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, Path], None]:
    """Copy a finished project into a folder; a repeated run calls no model and builds the evidence from the logs."""
    done: dict[str, Path] = {}

    def copy(engine: str, folder: Path) -> None:
        if engine not in done:
            done[engine] = write_project(tmp_path_factory.mktemp(engine))
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(done[engine])
                assert CliRunner().invoke(app, command(engine)).exit_code == 0
        shutil.copytree(done[engine], folder, dirs_exist_ok=True)
        for written in folder.glob("out/*.json"):
            written.unlink()

    return copy


def command(engine: str, *more: str) -> list[str]:
    return ["run", "run.yaml", "--engine", engine, "--model-map", "m=scripted/m.jsonl", *more]


Ran = Callable[[str, Path], None]
ENGINES = ["inspect", "lighteval"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("target", IN_ONE_RESULT)
def test_fault_in_one_result_leaves_the_other_complete(
    aigo: Run, tmp_path: Path, ran: Ran, plant: Plant, engine: str, target: str
) -> None:
    ran(engine, tmp_path)
    plant(target.replace("ADAPTER", f"aigo_{engine}"))

    done = aigo(*command(engine))

    assert done.code == 1
    assert "planted" in done.out
    assert "Traceback" not in done.out + done.err
    good, bad = result(tmp_path, "good"), result(tmp_path, BAD)
    assert (good["status"], metrics(good)) == ("success", [{"good": 1.0}, {"accuracy": 1.0}])
    assert len(good["evidence"]["samples"]) == 2
    assert native_logs(tmp_path) == 2
    if "uncomputed" not in target and "doubts_of" not in target:  # by then the evidence is complete
        assert "planted" in complaints(bad)
    if "ADAPTER" not in target and "encoded_sample" not in target:
        assert [sample["sample_id"] for sample in bad["evidence"]["samples"]] == [f"{BAD}-0", f"{BAD}-1"]


@pytest.mark.parametrize("target", IN_EVERY_RESULT)
def test_fault_in_every_result_is_reported(
    aigo: Run, tmp_path: Path, ran: Ran, plant: Plant, target: str
) -> None:
    ran("inspect", tmp_path)
    plant(target, mark="")

    if target.endswith("encoded_frame"):
        # No evidence can be written: this is reported, and only the native logs are left.
        done = aigo(*command("inspect"))
        assert done.code == 1
        assert native_logs(tmp_path) == 2
        return
    done = aigo(*command("inspect"))

    assert done.code == 1
    for key in ("good", BAD):
        log = result(tmp_path, key)
        assert "planted" in complaints(log)
        assert len(log["evidence"]["samples"]) == 2


@pytest.mark.parametrize(
    ("engine", "target"),
    [(engine, target) for engine, targets in IN_THE_ENGINE.items() for target in targets],
)
def test_fault_in_engine_extras_leaves_the_evidence_complete(
    aigo: Run, project: Path, plant: Plant, engine: str, target: str
) -> None:
    """The evidence has all samples and correct metrics, even if the engine cannot show them."""
    plant(target)

    aigo("run", "run.yaml", "--engine", engine, "--model-map", "m=scripted/m.jsonl")

    for key in ("good", BAD):
        log = result(project, key)
        assert len(log["evidence"]["samples"]) == 2
        assert metrics(log) == [{key: 1.0}, {"accuracy": 1.0}]


@pytest.mark.parametrize("target", AFTER_ALL)
@pytest.mark.parametrize("as_json", [False, True])
def test_fault_after_writing_is_reported_without_a_traceback(
    aigo: Run, tmp_path: Path, ran: Ran, plant: Plant, target: str, *, as_json: bool
) -> None:
    ran("inspect", tmp_path)
    plant(target)

    done = aigo(*command("inspect", *(["--json"] if as_json else [])))

    unused = (as_json and target.endswith(("show_evaluation", "metric_problems"))) or (
        not as_json and target.endswith("summaries:summary")
    )
    assert done.code == (0 if unused else 1)
    assert unused or "planted" in done.out + done.err
    assert "Traceback" not in done.out + done.err
    for key in ("good", BAD):
        assert metrics(result(tmp_path, key)) == [{key: 1.0}, {"accuracy": 1.0}]


@pytest.mark.parametrize("engine", ["inspect", "lighteval"])
@pytest.mark.parametrize(
    "target",
    [
        "aigo_bridge.evaluation.writing:specification_of",
        "aigo_bridge.evaluation.writing:uncomputed",
        "aigo_bridge.cli.metric_tables:shown_rows",
        "ADAPTER.running.evidence:logged_plan",
    ],
)
def test_fault_in_a_single_task_run_is_reported(
    aigo: Run, project: Path, plant: Plant, engine: str, target: str
) -> None:
    plant(target.replace("ADAPTER", f"aigo_{engine}"))

    done = aigo("run", f"{BAD}.yaml", "--engine", engine, "--model", "scripted/m.jsonl")

    assert done.code == 1
    assert "planted" in done.out + done.err
    assert native_logs(project) == 1
    log = result(project, BAD)
    if "metric_tables" in target or "uncomputed" in target:
        assert log["status"] == "success"
    else:
        assert log["status"] == "failure"
        assert "planted" in complaints(log)


def test_fault_in_a_repeated_result_keeps_every_run(aigo: Run, project: Path, plant: Plant) -> None:
    plant("aigo_bridge.evaluation.repeating:specification_of")
    run = (project / "run.yaml").read_text()
    (project / "run.yaml").write_text(
        run.replace("{task_key: bad-task,", "{task_key: bad-task, repeatability: {num_runs: 2},")
    )

    done = aigo("run", "run.yaml", "--model-map", "m=scripted/m.jsonl")

    assert done.code == 1
    assert "planted" in done.out
    log = result(project, BAD)
    assert [len(run["samples"]) for run in log["evidence"]["runs"]] == [2, 2]
    assert "planted" in complaints(log)


PARAMETERS = [
    "{type: task_result, default_value: earlier}",
    "{type: categorical, allowed_values: [a, b], multiple: true, default_value: [a, b]}",
    "{type: string, string_kind: jinja, default_value: x, examples: [{value: v, display_name: ''}], default_file_content: x}",
    "{type: model, usage: judge_model, default_value: m}",
]


@pytest.mark.parametrize("parameter", PARAMETERS)
def test_every_parameter_is_in_the_evidence(aigo: Run, project: Path, parameter: str) -> None:
    """Task files allow more parameter fields than AI GO's own type."""
    task = (project / "good.yaml").read_text()
    written = parameter.replace("{", "{key: p, display_name: P, ", 1)
    (project / "good.yaml").write_text(
        task.replace("config_spec: [", f"config_spec: [{written}, ").replace(
            'description: ""', "description: << config.p >>"
        )
    )

    done = aigo("run", "good.yaml", "--model", "scripted/m.jsonl")

    assert done.code == 0, done.out + done.err
    spec = result(project, "good")["specification"]["task"]["config_spec"]
    assert spec[0]["type"] == parameter.split(",", maxsplit=1)[0].removeprefix("{type: ")
    assert ("string_kind" in parameter) == (spec[0].get("string_kind") == "jinja")
