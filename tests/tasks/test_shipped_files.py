"""Files of shipped tasks: valid, explainable, complete, in the format of the real data, and with every feature."""

from __future__ import annotations

import json
import re
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from tests.support.commands import TASKS, Run

from aigo_bridge.reading import read
from aigo_bridge.spec import datasets, parameters, solvers
from aigo_bridge.spec.base import Filter, is_sample_data
from aigo_bridge.spec.datasets import DatasetSpec
from aigo_bridge.spec.metric import METRICS
from aigo_bridge.spec.scorers import SCORERS
from aigo_bridge.spec.task import ActionRuleSpec, SystemDefinition, TaskSpec
from aigo_bridge.spec.trials import Aggregator

SEEDS = {"hp-trivia", "jsonl-fixture", "singleturn-generic-input", "uniqueness-task"}
COMMIT = re.compile("[0-9a-f]{40}")
FOLDERS = sorted(
    path for path in TASKS.iterdir() if path.is_dir() and path.name not in SEEDS | {"__pycache__"}
)

REAL_COLUMNS = {
    "arc": {"id", "question", "choices", "answerKey"},
    "bbq": {
        "example_id", "question_index", "question_polarity", "context_condition", "category", "answer_info",
        "additional_metadata", "context", "question", "ans0", "ans1", "ans2", "label",
    },
    "boolq": {"question", "answer", "passage"},
    "commonsenseqa": {"id", "question", "question_concept", "choices", "answerKey"},
    "drop": {"section_id", "query_id", "passage", "question", "answer", "validated_answers"},
    "gsm8k": {"question", "answer"},
    "hellaswag": {
        "ind", "activity_label", "ctx_a", "ctx_b", "ctx", "endings", "source_id", "split", "split_type", "label",
    },
    "humaneval": {"task_id", "prompt", "canonical_solution", "test", "entry_point"},
    "ifeval": {"key", "prompt", "instruction_id_list", "kwargs"},
    "math-500": {"problem", "solution", "answer", "subject", "level", "unique_id"},
    "mbpp": {"source_file", "task_id", "prompt", "code", "test_imports", "test_list"},
    "mmlu": {"question", "subject", "choices", "answer"},
    "mmlu-pro": {
        "question_id", "question", "options", "answer", "answer_index", "cot_content", "category", "src",
    },
    "mt-bench": {"prompt", "reference", "category", "prompt_id"},
    "piqa": {"goal", "sol1", "sol2", "label"},
    "rag-hotpotqa": {"id", "question", "answer", "type", "level", "supporting_facts", "context"},
    "safety-refusal": {"id", "prompt", "type", "label", "focus", "note"},
    "simpleqa": {"metadata", "problem", "answer"},
    "squad-v2": {"id", "title", "context", "question", "answers"},
    "truthfulqa-generation": {
        "type", "category", "question", "best_answer", "correct_answers", "incorrect_answers", "source",
    },
    "truthfulqa-mc": {"question", "mc1_targets", "mc2_targets"},
    "winogrande": {"sentence", "option1", "option2", "answer"},
    "wmt14": {"translation"},
    "xsum": {"document", "summary", "id"},
}  # fmt: skip
"""Task → columns of its dataset on the hub. Only the tasks without a public dataset are missing."""

SEVERAL_CHOICES = {"arc", "bbq", "commonsenseqa", "hellaswag", "mmlu", "piqa", "truthfulqa-mc"}
"""Tasks whose answers are letters, read as Inspect reads them."""

WITHOUT_A_HUB = {
    "booking-dialogue", "ctf-small", "data-quality", "governance-controls", "handoff-small", "repair-small", "tool-use",
}  # fmt: skip

EXTENDED = {"ctf-small", "handoff-small", "humaneval", "mbpp", "repair-small"}
"""Tasks with `code_exec` or `agent_solver`, a scorer and a solver that the platform does not have."""

NOT_SHOWN = {
    "StringEqualsMCQAScorer": "no published definition takes the first character of an answer as its letter",
    "TaskResultParameter": "a task over an earlier result needs that result",
    "TaskResult": "as above",
    "OpenTelemetrySource": "our extension; the platform knows no such source",
}
"""Features without an example, and why."""


@cache
def specs() -> dict[str, TaskSpec]:
    return {path.parent.name: read(TaskSpec, path).spec for path in sorted(TASKS.glob("*/task.yaml"))}


@cache
def entities() -> dict[Path, Any]:
    return {
        path: read(DatasetSpec, path).spec
        for path in sorted(TASKS.glob("*/*.yaml"))
        if path.name != "task.yaml"
    }


def models_in(value: Any) -> Iterator[type[BaseModel]]:
    """Return the class of every model in a value."""
    if isinstance(value, BaseModel):
        yield type(value)
        for name in type(value).model_fields:
            yield from models_in(getattr(value, name))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from models_in(item)


def members(union: Any) -> set[type[BaseModel]]:
    """Return the models of an annotated union."""
    parts = typing.get_args(union)
    direct = {part for part in parts if isinstance(part, type) and issubclass(part, BaseModel)}
    return direct.union(*(members(part) for part in parts))


def test_every_file_is_valid_by_the_strict_platform_rules(aigo: Run) -> None:
    """Without warnings; the two older examples keep the deprecated syntax of the seed page."""
    done = aigo(
        "validate",
        "--strict",
        "--dialect",
        "aigo-3.17",
        *(each for each in FOLDERS if each.name not in EXTENDED),
    )

    assert done.code == 0, done.out


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_task_is_explained(aigo: Run, folder: Path) -> None:
    """Prompts of the first sample are rendered without a model."""
    done = aigo("explain", f"aigo_tasks/{folder.name}", "-n", 1)

    assert done.code == 0, done.err
    assert read(TaskSpec, folder / "task.yaml").spec.display_name in done.out


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_every_folder_describes_its_measurement(folder: Path) -> None:
    """The README (also the long description) has data, licence or terms, score and pitfalls; tags and the key match."""
    spec, readme = read(TaskSpec, folder / "task.yaml").spec, (folder / "README.md").read_text("utf-8")

    assert spec.key == folder.name
    assert spec.tags
    assert spec.long_description == readme.strip()
    for part in ("Measures ", "- Data: ", "- Score: ", "Known pitfalls"):
        assert part in readme
    if folder.name in REAL_COLUMNS:
        assert "huggingface.co/datasets/" in readme
        assert "http" in readme.partition("- Paper")[2]


@pytest.mark.parametrize("name", REAL_COLUMNS)
def test_sample_rows_have_the_columns_of_the_real_dataset(name: str) -> None:
    """A task that runs on them reads no column that the real dataset lacks."""
    rows = [json.loads(line) for line in (TASKS / name / "rows.jsonl").read_text("utf-8").splitlines()]

    assert 3 <= len(rows) <= 20
    assert all(set(row) == REAL_COLUMNS[name] for row in rows)


def test_every_benchmark_names_its_real_source() -> None:
    """Path and split on the hub; the default is the sample, so nothing is downloaded."""
    by_folder: dict[str, list[Any]] = {}
    for path, entity in entities().items():
        by_folder.setdefault(path.parent.name, []).append(entity)
    assert {folder.name for folder in FOLDERS} == set(REAL_COLUMNS) | WITHOUT_A_HUB
    for name in REAL_COLUMNS:
        hub = [each for each in by_folder[name] if isinstance(each.source, datasets.HuggingFaceSource)]
        assert hub, name
        for entity in hub:
            assert "/" in entity.source.path
        (parameter,) = [each for each in specs()[name].config_spec if each.key == "dataset_key"]
        assert parameter.default_value == f"{name}-sample"


def test_hub_datasets_are_pinned_to_a_commit() -> None:
    """A branch changes, so two runs with one name could have different rows."""
    revisions = {
        path: (entity.source.load_dataset_kwargs or {}).get("revision")
        for path, entity in entities().items()
        if isinstance(entity.source, datasets.HuggingFaceSource)
    }

    assert len(revisions) >= len(REAL_COLUMNS)
    assert [path for path, revision in revisions.items() if not COMMIT.fullmatch(revision or "")] == []


def test_sample_datasets_are_marked() -> None:
    """In the dataset file, so that copies of a task keep the mark."""
    samples = {
        entity.key: is_sample_data(entity.tags)
        for entity in entities().values()
        if entity.key.endswith("-sample")
    }

    assert {f"{folder.name}-sample" for folder in FOLDERS} - {"governance-controls-sample"} == set(samples)
    assert all(samples.values())
    assert not any(is_sample_data(each.tags) for each in entities().values() if each.key not in samples)


def test_every_feature_is_used_by_a_task() -> None:
    """Every solver, builder, scorer, metric, aggregator, filter, parameter and data source of the format."""
    shown = {model for value in [*specs().values(), *entities().values()] for model in models_in(value)}
    wanted: set[type[BaseModel]] = set().union(
        set[type[BaseModel]](solvers.SOLVERS.values()),
        members(solvers.InputBuilder),
        members(solvers.MessageBuilder),
        set[type[BaseModel]](SCORERS.values()),
        set[type[BaseModel]](METRICS.values()),
        members(Aggregator),
        members(Filter),
        members(parameters.Parameter),
        members(datasets.DatasetSource),
        {solvers.Postprocessor, solvers.TerminateIf, ActionRuleSpec, SystemDefinition},
    )

    missing = {model.__name__ for model in wanted - shown}
    assert len(wanted) > 45
    assert missing <= set(NOT_SHOWN), missing


def test_letter_extraction_is_identical_in_all_tasks() -> None:
    """Folders are copied alone, so each has a copy of the function."""
    heads = {
        name: source.partition("\n\n\ndef letter_of")[2].partition("\n\n\n")[0]
        for name in SEVERAL_CHOICES
        if (source := (TASKS / name / "scorer.py").read_text("utf-8"))
    }

    assert len(set(heads.values())) == 1
    assert "ON_A_LINE.findall(answer)" in heads["arc"]


def test_code_is_valid_python_before_config_is_inserted() -> None:
    """Installers compile every file of a package, so parameters are inside string literals."""
    for path in TASKS.glob("*/*.py"):
        compile(path.read_text("utf-8"), path.name, "exec")


def test_the_page_lists_every_task() -> None:
    page = (TASKS.parents[1] / "docs" / "reference" / "task-library.md").read_text("utf-8")

    listed = {
        line.split("`")[1] for line in page.splitlines() if line.startswith("| `") and line.count("|") == 4
    }
    assert {folder.name for folder in FOLDERS} <= listed


def test_the_real_rows_can_come_from_a_file(aigo: Run) -> None:
    """A local copy replaces the hub, with the key of the real dataset."""
    rows = TASKS / "arc" / "rows.jsonl"
    done = aigo(
        "explain",
        "aigo_tasks/arc",
        "--config",
        "dataset_key=arc-easy",
        "--dataset",
        f"arc-easy={rows}",
        "-n",
        1,
    )

    assert done.code == 0, done.err
    assert "arc-easy" in done.out


def test_no_shipped_file_names_a_secret_or_a_path() -> None:
    for path in TASKS.glob("*/*"):
        if path.is_file() and path.suffix in (".yaml", ".py", ".md", ".jsonl", ".csv"):
            text = path.read_text("utf-8")
            assert "/home/" not in text, path
            assert "sk-" not in text.replace("risk-", "").replace("task-", ""), path
            if path.suffix == ".yaml":
                yaml.compose(text)
