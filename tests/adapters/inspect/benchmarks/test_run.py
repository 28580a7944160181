"""`aigo-bridge run inspect:…` and `aigo-bridge list inspect`."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import pytest
from tests.support.commands import Run

MODEL = ("--model", "scripted/answers.jsonl")


def test_a_failed_sample_does_not_fail_the_others(
    aigo: Run, benchmarks: Path, result_of: Callable[[Path], dict[str, Any]]
) -> None:
    done = aigo("run", f"inspect:{benchmarks / 'others.py'}@fails_once", *MODEL, "--json")

    assert done.code == 1
    (outcome,) = done.json
    assert {name: number for name, number in outcome["samples"].items() if number} == {
        "planned": 2,
        "samples": 2,
        "scored": 1,
        "failed": 1,
        "trials": 2,
        "scored_trials": 1,
        "failed_trials": 1,
        "with_failed_trials": 1,
    }
    number = {"scorer": "includes", "name": "accuracy", "value": 1.0, "num_scored": 1}
    assert number.items() <= outcome["metrics"][0].items()
    assert outcome["metrics"][0]["interval"] == pytest.approx([0.2065493, 1.0])
    assert [error["sample_id"] for error in outcome["errors"]] == ["bad"]
    result = result_of(Path(outcome["result"]))
    assert [sample["sample_id"] for sample in result["evidence"]["samples"]] == ["good", "bad"]


def test_failed_samples_can_be_allowed(aigo: Run, benchmarks: Path) -> None:
    name = f"inspect:{benchmarks / 'others.py'}@fails_once"
    assert aigo("run", name, *MODEL, "--fail-on-error", "0.5").code == 0


def test_a_relative_path_with_a_space_and_an_argument_is_run(aigo: Run, benchmarks: Path) -> None:
    done = aigo("run", "inspect:my tasks/others.py@fails_once", "-T", "word=never", "-n", 1, *MODEL, "--json")

    assert done.code == 0, done.err
    assert done.json[0]["metrics"][0]["value"] == 0.0


def test_every_task_in_a_file_has_its_own_result(aigo: Run, benchmarks: Path) -> None:
    done = aigo("run", f"inspect:{benchmarks / 'converted.py'}", "-n", 2, "-T", "cot=true", *MODEL)

    assert done.code == 0, done.err
    names = {"matching", "numbers", "choices", "several_correct", "few_shot"}
    assert {path.name for path in Path("out").glob("*.tasklog.json")} == {
        f"{name}.tasklog.json" for name in names
    }


def test_a_task_without_model_calls_needs_no_model(aigo: Run, benchmarks: Path) -> None:
    done = aigo("run", f"inspect:{benchmarks / 'others.py'}@no_model", "--json")

    assert done.code == 0, done.err
    assert done.json[0]["model"] is None


def test_a_task_that_calls_a_model_is_refused_without_a_model(aigo: Run, benchmarks: Path) -> None:
    done = aigo("run", f"inspect:{benchmarks / 'others.py'}@fails_once")

    assert done.code == 2
    assert "--model" in done.err


def test_an_unknown_parameter_is_reported_with_the_known_ones(aigo: Run, benchmarks: Path) -> None:
    done = aigo("run", f"inspect:{benchmarks / 'others.py'}@fails_once", "-T", "words=no", *MODEL)

    assert done.code == 2
    assert "'words'" in done.err
    assert "parameters: word" in done.err


@pytest.mark.usefixtures("inspect_evals")
def test_unknown_names_are_reported_with_similar_ones(aigo: Run, benchmarks: Path) -> None:
    assert "inspect_evals/gsm8k" in aigo("run", "inspect:gsm8", *MODEL).err
    assert "'no_model'" in aigo("run", f"inspect:{benchmarks / 'others.py'}@no_modle", *MODEL).err
    assert "file 'nowhere.py' does not exist" in aigo("run", "inspect:nowhere.py@x", *MODEL).err


def test_a_file_that_cannot_be_loaded_is_reported(aigo: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text(
        "from inspect_ai import task\n@task\ndef a(): ...\nraise KeyError('no')\n"
    )
    done = aigo("run", "inspect:broken.py")

    assert done.code == 2
    assert "KeyError" in done.err


def test_options_of_ai_go_tasks_are_refused(aigo: Run, benchmarks: Path) -> None:
    done = aigo("run", f"inspect:{benchmarks / 'others.py'}@no_model", "--config", "a=1")

    assert done.code == 2
    assert "-T" in done.err


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_an_empty_list_explains_how_to_install_benchmarks(
    aigo: Run, monkeypatch: pytest.MonkeyPatch, options: list[str]
) -> None:
    """In an installation without extras, only this package registers with Inspect."""
    own = [each for each in entry_points(group="inspect_ai") if each.name == "aigo_bridge"]
    assert own
    monkeypatch.setattr("aigo_inspect.benchmarks.tasks.entry_points", lambda **_: own)

    done = aigo("list", "inspect", *options)

    assert done.code == 0
    assert "no package with benchmarks for inspect is installed" in done.err
    assert "pip install inspect-evals" in done.err
    assert "aigo-bridge run inspect:FILE.py" in done.err
    assert done.out.strip() == ("[]" if options else "")


def test_a_missing_benchmark_is_reported_with_the_list_command(aigo: Run) -> None:
    done = aigo("run", "inspect:nothing_like_it", "--model", "mockllm/model")

    assert done.code == 2
    assert "`aigo-bridge list inspect` names them" in done.err


@pytest.mark.usefixtures("inspect_evals")
def test_installed_benchmarks_are_listed(aigo: Run) -> None:
    done = aigo("list", "inspect", "--json")

    assert done.code == 0, done.err
    found = {row["name"]: row for row in done.json}
    assert found["inspect:inspect_evals/gsm8k"]["parameters"] == [
        "fewshot",
        "fewshot_seed",
        "shuffle_fewshot",
    ]
    assert found["inspect:inspect_evals/arc_easy"]["description"].startswith("Inspect task implementing")
    assert "inspect:aigo_bridge/task" not in found
