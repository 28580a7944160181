"""Test of a third engine, which is found by its entry point. It runs the basic features, and every command
reports unsupported features.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.conformance.comparing import comparable
from tests.conformance.expecting import mismatches
from tests.conformance.features import Feature, features, ready
from tests.support.commands import Run
from tests.support.jobs import run_job
from tests.support.recipes import single_turn

from aigo_bridge.engine.registry import engine_names, load_engine, require_exact
from aigo_bridge.errors import UnsupportedPlanError
from aigo_bridge.snippets import run_in_process

AREAS = ("solvers", "scorers", "judges", "metrics", "trials", "rules")
REFUSED = {
    "solvers: post-processor": "solver.postprocessor: a sample stays one sample here",
    "solvers: system tasks": "definition (system_task): has no samples",
    "scorers: string_equals_mcqa with log-likelihoods": "which this engine's models do not return",
    "solvers: agent_solver": "solver (agent_solver): no sandbox is available here",
    "scorers: code_exec": "scorers (code_exec): no sandbox is available here",
    "trials: labels and post-processor rows over trials": "solver.postprocessor",
    "rules: rules for post-processor rows": "solver.postprocessor",
}
"""Features that the echo engine does not support → error message."""
OTHER = ("scorers: function_call_coverage",)
"""Features that need function calls, which its models do not support."""
ALL = [feature for feature in features() if feature.area in AREAS and feature.id not in OTHER]
BASIC = [feature for feature in ALL if feature.id not in REFUSED]


def without_calls(sample: Mapping[str, Any]) -> dict[str, Any]:
    """Return the expectation for a sample without calls, because the echo engine does not record them."""
    return {name: value for name, value in sample.items() if name != "calls"}


TASK = single_turn({"type": "string_equals", "ground_truth": "b"})


@pytest.fixture(autouse=True)
def installed(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Add the metadata of an installed distribution to the path."""
    folder = tmp_path_factory.mktemp("site")
    metadata = folder / "echo_engine-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: echo-engine\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text(
        "[aigo_bridge.engines]\necho = tests.support.plugin.aigo_bridge_words.echo:EchoEngine\n"
    )
    monkeypatch.syspath_prepend(str(folder))


@pytest.fixture
def in_process() -> Iterator[None]:
    run_in_process(True)
    yield
    run_in_process(False)


@pytest.fixture
def task(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text('{"text": "a"}\n{"text": "b"}\n')
    path = tmp_path / "task.yaml"
    path.write_text(yaml.safe_dump(TASK))
    return path


def test_the_echo_engine_is_found_by_its_entry_point() -> None:
    assert engine_names() == ["echo", "inspect", "lighteval"]
    assert load_engine("echo").name == "echo"


def test_the_echo_engine_has_at_most_150_lines() -> None:
    assert (
        len(Path(sys.modules[type(load_engine("echo")).__module__].__file__ or "").read_text().splitlines())
        <= 150
    )


@pytest.mark.parametrize("feature", BASIC, ids=[each.id for each in BASIC])
@pytest.mark.usefixtures("in_process")
def test_the_echo_engine_runs_the_basic_features(feature: Feature, tmp_path: Path) -> None:
    engine = load_engine("echo")
    made = ready(feature, tmp_path / "task")
    log = run_job(engine, made.plan, tmp_path, **made.settings)
    outcome = comparable(engine.read(log.path), tmp_path / "result.json", made.plan)
    samples = [without_calls(sample) for sample in feature.expect.get("samples", [])]
    assert mismatches({**feature.expect, "samples": samples}, outcome) == []


@pytest.mark.parametrize("name", REFUSED)
def test_unsupported_features_are_refused(name: str, tmp_path: Path) -> None:
    (feature,) = [each for each in ALL if each.id == name]
    engine = load_engine("echo")
    with pytest.raises(UnsupportedPlanError, match=re.escape(REFUSED[name])):
        require_exact(engine.gaps(ready(feature, tmp_path / "task").plan), engine="echo")


def test_echo_runs_are_compared_with_runs_of_other_engines(aigo: Run, task: Path, tmp_path: Path) -> None:
    rules = tmp_path / "model.rules"
    rules.write_text('{"default": true, "reply": "b"}\n')
    out = tmp_path / "out"
    run = aigo("run", task, "--engine", "inspect,echo", "--model", f"scripted/{rules}", "--out", out)
    assert run.code == 0, run.err
    assert "accuracy" in run.out


def test_echo_results_can_be_validated_and_rescored(aigo: Run, task: Path, tmp_path: Path) -> None:
    run = aigo("run", task, "--engine", "echo", "--model", "echo", "--out", tmp_path / "out", "--json")
    assert run.code == 0, run.err
    (result,) = (tmp_path / "out").glob("*.tasklog.json")
    evidence = json.loads(result.read_bytes())["evidence"]
    assert [metric["values"] for metric in evidence["metrics"]] == [{"accuracy": 0.5}]
    assert aigo("validate", result).code == 0
    again = aigo("score", task, result, "--engine", "echo", "--out", tmp_path / "again")
    assert again.code == 0, again.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("import", "LOG", "--engine", "echo"), "logs of engine 'echo' cannot be imported"),
        (("export", "TASK", "--to", "echo"), "engine 'echo' cannot be given tasks as files"),
        (("export", "LOG", "--to", "echo-log"), "results cannot be written as logs of engine 'echo'"),
        (("list", "echo"), "engine 'echo' has no benchmarks"),
        (("run", "echo:arc"), "engine 'echo' has no benchmarks"),
        (("convert", "echo:arc"), "engine 'echo' has no benchmarks"),
        (
            ("run", "TASK", "--engine", "echo", "--model", "gpt"),
            "engine 'echo' has the models echo and scripted/FILE",
        ),
        (("run", "TASK", "--engine", "echo", "--model", "echo", "--time-limit", "1"), "knows no limits"),
    ],
    ids=lambda value: " ".join(value[:4]) if isinstance(value, tuple) else "",
)
def test_every_command_reports_missing_engine_features(
    arguments: tuple[str, ...], message: str, aigo: Run, task: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log.json"
    log.write_text("{}")
    files = {"TASK": str(task), "LOG": str(log)}
    out = () if arguments[0] == "list" else ("--out", tmp_path / "out")
    said = aigo(*(files.get(each, each) for each in arguments), *out)
    assert said.code == 2
    assert message in said.err
    assert "Traceback" not in said.err


def test_doctor_lists_the_echo_engine(aigo: Run) -> None:
    said = aigo("doctor")
    assert "engine echo" in said.out
