"""Shipped benchmarks run on made-up rows, which is shown with every metric; `--full` uses the real rows."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.support.commands import TASKS, Run

from aigo_bridge.errors import SpecError
from aigo_bridge.evaluation.shipped_tasks import ShippedTask, shipped_task
from aigo_bridge.evaluation.task import plan
from aigo_bridge.exporting.manifest import read_manifest
from aigo_bridge.exporting.packing import packed_plan
from aigo_bridge.plan.logged_plan import logged_plan
from aigo_bridge.plan.plan import PlanOrigin, bind_task
from aigo_bridge.reading import read
from aigo_bridge.reading.locating import find_dataset, find_hub_datasets, shipped_tasks
from aigo_bridge.spec.base import is_sample_data
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.parameters import resolve_config
from aigo_bridge.spec.task import TaskSpec
from aigo_inspect.logs.reader import open_log

Load = Callable[[Path], dict[str, Any]]
NOTE = "sample data, not the benchmark"
MMLU = TASKS / "mmlu"
IN_PROCESS = ("--snippets", "in-process")
MODEL = ("--model", f"scripted/{MMLU / 'answers.jsonl'}", *IN_PROCESS)


def tags_of(result: dict[str, Any]) -> list[str]:
    return [tag["value"] for tag in result["specification"]["task"]["tags"]]


@pytest.fixture
def mmlu(tmp_path: Path) -> Path:
    """Copy of the task with other keys, whose real dataset is on this disk."""
    folder = tmp_path / "mine"
    shutil.copytree(MMLU, folder)
    for name in ("task.yaml", "sample.yaml"):
        path = folder / name
        path.write_text(path.read_text("utf-8").replace("mmlu-sample", "tiny"), "utf-8")
    source = {
        "type": "huggingface",
        "path": "json",
        "split": "train",
        "load_dataset_kwargs": {
            "data_files": str(folder / "rows.jsonl"),
            "cache_dir": str(folder / "cache"),
        },
    }
    (folder / "dataset.yaml").write_text(
        yaml.safe_dump({"key": "big", "display_name": "Big", "source": source})
    )
    return folder


def test_sample_data_is_marked_on_screen_and_in_the_evidence(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    shown = aigo("run", "aigo_tasks/mmlu", *MODEL, "-n", 2)
    as_json = aigo("run", "aigo_tasks/mmlu", *MODEL, "-n", 2, "--json")

    assert shown.code == as_json.code == 0, shown.err
    assert f"{NOTE} (use --full for the real rows)" in shown.out
    assert as_json.json["sample_data"] is True
    result = result_of(tmp_path / "out" / "mmlu.tasklog.json")
    assert NOTE in tags_of(result)
    assert result["specification"]["task"]["definition"]["dataset"] == {"id": "mmlu-sample"}
    with open_log(Path(as_json.json["native_log"])) as log:
        assert NOTE in log.header["eval"]["tags"]

    again = aigo("score", "aigo_tasks/mmlu", "out/mmlu.tasklog.json", "--out", "again", *IN_PROCESS)
    assert NOTE in again.out
    assert "--full" not in again.out  # the rows are those of the log
    assert NOTE in tags_of(result_of(tmp_path / "again" / "mmlu.tasklog.json"))


@pytest.mark.parametrize("rows", [MMLU / "rows.jsonl", "own.csv"])
def test_your_own_rows_are_not_sample_data(
    aigo: Run, tmp_path: Path, rows: Path | str, result_of: Load
) -> None:
    (tmp_path / "own.csv").write_text(
        'question,subject,choices,answer\nWhat?,s,"[""a"", ""b"", ""c"", ""d""]",1\n'
    )
    given = ("--dataset", f"mmlu-sample={rows}")

    done = aigo("run", "aigo_tasks/mmlu", *MODEL, *given, "-n", 1)
    explained = aigo("explain", "aigo_tasks/mmlu", *given, "-n", 0)

    assert NOTE not in done.out
    assert NOTE not in explained.out
    assert NOTE not in tags_of(result_of(tmp_path / "out" / "mmlu.tasklog.json"))


def test_copied_task_keeps_the_sample_data_mark(aigo: Run, mmlu: Path) -> None:
    """Keys, names and folder differ: only the dataset tag is left."""
    explained = aigo("explain", mmlu, "-n", 0)

    assert "dataset: tiny" in explained.out
    assert NOTE in explained.out
    assert aigo("explain", mmlu, "-n", 0, "--json").json["sample_data"] is True


def test_the_entity_of_a_dataset_evaluation_is_also_marked(
    aigo: Run, tmp_path: Path, result_of: Load
) -> None:
    done = aigo("run", "aigo_tasks/data-quality", *IN_PROCESS)

    assert NOTE in done.out
    assert "--full" not in done.out  # there is no real dataset
    specification = result_of(tmp_path / "out" / "data-quality.tasklog.json")["specification"]
    assert [tag["value"] for tag in specification["evaluated_entity"]["tags"]] == ["sample data"]
    assert NOTE in [tag["value"] for tag in specification["task"]["tags"]]


def test_run_file_marks_each_specification_with_sample_data(aigo: Run, tmp_path: Path) -> None:
    answers = MMLU / "answers.jsonl"
    (tmp_path / "rows.jsonl").write_text((MMLU / "rows.jsonl").read_text("utf-8"))
    (tmp_path / "run.yaml").write_text(
        f"""
models: [{{$provider: scripted/{answers}}}]
datasets: [{{key: own, display_name: Own, source: {{type: local, file_path: rows.jsonl}}}}]
evaluation:
  key: e
  display_name: E
  description: ""
  task_specifications:
    - {{key: shipped, task_key: mmlu, model_key: m, num_samples: 1}}
    - {{key: own, task_key: mmlu, model_key: m, num_samples: 1, task_config: {{dataset_key: own}}}}
"""
    )
    done = aigo("run", "run.yaml", "--model-map", f"m=scripted/{answers}", *IN_PROCESS)

    assert done.code == 0, done.err
    assert f"  shipped: {NOTE}" in done.out
    assert f"own: {NOTE}" not in done.out
    results = json.loads((tmp_path / "out" / "evaluation.json").read_text())["results"]
    assert {each["key"]: each["sample_data"] for each in results} == {"shipped": True, "own": False}


def test_logs_of_every_engine_contain_the_sample_data_mark() -> None:
    made = plan(PlanOrigin(task="aigo_tasks/mmlu"))
    header = made.header()

    assert made.tags[-1] == NOTE
    assert logged_plan(header).tags == made.tags
    # Logs of earlier releases have no tags.
    del header["dataset"]["tags"]
    assert NOTE not in logged_plan(header).tags


def test_exported_task_keeps_the_sample_data_mark(aigo: Run, tmp_path: Path) -> None:
    done = aigo("export", "aigo_tasks/mmlu", "--to", "inspect", "--out", "over")

    assert done.code == 0, done.err
    assert f"Its rows: {NOTE}." in (tmp_path / "over" / "README.md").read_text("utf-8")
    folder = tmp_path / "over" / "mmlu"
    assert packed_plan(folder, read_manifest(folder).config).tags[-1] == NOTE


def test_task_exported_as_code_keeps_the_sample_data_mark(aigo: Run, tmp_path: Path, mmlu: Path) -> None:
    """With a scorer that can be exported; Python scorers cannot."""
    task = mmlu / "task.yaml"
    scorer = "  scorers:\n    - {type: string_equals, ground_truth: \"{{ 'ABCD'[sample.answer] }}\"}\n"
    task.write_text(task.read_text("utf-8").partition("  scorers:\n")[0] + scorer, "utf-8")

    done = aigo("export", mmlu, "--to", "inspect", "--out", "over", "--native")

    assert done.code == 0, done.err
    assert f"Its rows: {NOTE}." in (tmp_path / "over" / "README.md").read_text("utf-8")


@pytest.mark.parametrize("file", shipped_tasks().values(), ids=shipped_tasks())
def test_list_agrees_with_the_specification_and_its_dataset(file: Path) -> None:
    document = read(TaskSpec, file)
    spec = document.spec
    dataset: Path | None = None
    with suppress(SpecError):  # A parameter without a default.
        definition = bind_task(document.data, resolve_config(spec.config_spec, {})).definition
        if definition.type == "benchmark_task" and definition.dataset is not None and definition.dataset.key:
            dataset = find_dataset(definition.dataset.key, {}, file)
    is_sample = (
        dataset is not None
        and dataset.suffix == ".yaml"
        and is_sample_data(read(DatasetSpec, dataset).spec.tags)
    )

    assert shipped_task(file) == ShippedTask(
        spec.key,
        spec.display_name,
        spec.description,
        spec.tags,
        tuple(parameter.key for parameter in spec.config_spec),
        is_sample,
        tuple(find_hub_datasets(file)) if is_sample else (),
    )


def test_list_marks_sample_data_and_names_the_option(aigo: Run) -> None:
    lines = {
        line.split()[0]: line for line in aigo("list").out.splitlines() if line.startswith("aigo_tasks/")
    }
    rows = {row["name"]: row for row in aigo("list", "--json").json}

    assert "sample, --full" in lines["aigo_tasks/mmlu"]
    assert "sample  " in lines["aigo_tasks/tool-use"]
    assert "sample" not in lines["aigo_tasks/hp-trivia"].split()
    assert NOTE in aigo("list").out.splitlines()[-1]
    assert (rows["aigo_tasks/arc"]["sample_data"], rows["aigo_tasks/arc"]["full_data"]) == (
        True,
        ["arc-challenge", "arc-easy"],
    )
    assert (rows["aigo_tasks/hp-trivia"]["sample_data"], rows["aigo_tasks/hp-trivia"]["full_data"]) == (
        False,
        [],
    )


# --- the real rows


def test_full_uses_the_rows_of_the_hub(aigo: Run, mmlu: Path, tmp_path: Path, result_of: Load) -> None:
    done = aigo("run", mmlu, *MODEL, "--full")

    assert done.code == 0, done.err
    assert NOTE not in done.out
    result = result_of(tmp_path / "out" / "mmlu.tasklog.json")
    assert NOTE not in tags_of(result)
    assert result["specification"]["config"]["dataset_key"] == "big"
    assert result["specification"]["task"]["definition"]["dataset"] == {"id": "big"}


def test_full_finds_the_real_rows_in_a_copy_on_disk(aigo: Run) -> None:
    rows = MMLU / "rows.jsonl"
    done = aigo("explain", "aigo_tasks/mmlu", "--full", "--dataset", f"mmlu={rows}", "-n", 0)

    assert done.code == 0, done.err
    assert "dataset: mmlu, 10 samples" in done.out


def test_chosen_full_dataset_is_used(aigo: Run) -> None:
    rows = TASKS / "arc" / "rows.jsonl"
    chosen = ("--config", "dataset_key=arc-easy", "--dataset", f"arc-easy={rows}")
    done = aigo("explain", "aigo_tasks/arc", "--full", *chosen, "-n", 0)

    assert done.code == 0, done.err
    assert "dataset: arc-easy" in done.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["aigo_tasks/arc"],
            "2 full datasets; choose one with --config dataset_key=arc-challenge or --config dataset_key=arc-easy",
        ),
        (["aigo_tasks/tool-use"], "does not have a dataset file with a source of type 'huggingface'"),
        (["aigo_tasks/tool-use"], "--dataset tool-use-sample=FILE"),
        (["aigo_tasks/hp-trivia"], "does not have a dataset file with a source of type 'huggingface'"),
        (["aigo_tasks/governance-controls"], "does not have a dataset"),
        (["aigo_tasks/uniqueness-task", "--config", "field=x"], "does not have a dataset"),
        (["aigo_tasks/mmlu", "--dataset", "mmlu-sample=x.csv"], "use one of them"),
        (["run.yaml"], "name the dataset in the run file"),
        (["inspect:mine.py"], "--full: not for engine benchmarks"),
    ],
)
def test_full_without_real_rows_reports_the_reason(
    aigo: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    (tmp_path / "run.yaml").write_text(
        "evaluation: {key: e, display_name: E, description: '', task_specifications: []}\n"
    )
    done = aigo("run", *arguments, "--full", "--model", "mockllm/model")

    assert done.code == 2
    assert message in done.err


def test_a_task_with_its_own_dataset_names_the_option(aigo: Run, mmlu: Path) -> None:
    task = mmlu / "task.yaml"
    task.write_text(task.read_text("utf-8").replace("key: << config.dataset_key >>", "key: tiny"), "utf-8")

    done = aigo("run", mmlu, *MODEL, "--full")

    assert done.code == 2
    assert f"--dataset tiny={mmlu / 'dataset.yaml'}" in done.err
    assert aigo("explain", mmlu, "--dataset", f"tiny={mmlu / 'dataset.yaml'}", "-n", 0).code == 0


@pytest.mark.parametrize("option", [[], ["--full"]])
def test_full_leaves_other_faults_to_planning(aigo: Run, mmlu: Path, option: list[str]) -> None:
    """A value of the wrong type is reported with its position and the same message."""
    task = mmlu / "task.yaml"
    text = task.read_text("utf-8").replace(
        "config_spec:\n", "config_spec:\n  - {type: int, key: n, display_name: N}\n"
    )
    task.write_text(f"{text}  trials: {{num_trials: << config.n >>}}\n", "utf-8")

    done = aigo("run", mmlu, *MODEL, "--config", "n=-1", *option)

    assert done.code == 2
    assert "task.yaml:" in done.err
    assert "num_trials" in done.err


def test_full_without_the_library_names_the_package(aigo: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)

    done = aigo("run", "aigo_tasks/gsm8k", "--full", "--model", "mockllm/model")

    assert done.code == 2
    assert "run: pip install 'datasets" in done.err
    assert "--dataset gsm8k=FILE" in done.err


def test_offline_full_names_the_copy_on_disk(aigo: Run, mmlu: Path) -> None:
    """The file is missing; the library reports an unreachable hub in the same way."""
    (mmlu / "rows.jsonl").unlink()

    done = aigo("run", mmlu, *MODEL, "--full")

    assert done.code == 2
    assert "cannot be loaded" in done.err
    assert "--dataset big=FILE" in done.err
