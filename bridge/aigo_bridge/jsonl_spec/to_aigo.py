"""Task records as an AI GO task with a data set that gives the same prompts and the same scores.

One file of records is one task. Its rows keep the record's fields, with `task_id` as `sample_id`; the few-shot examples are put in
front of the prompt by the task's input template. Each sample has one score, named after its metric, and each metric of the file is the
mean over the samples that use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.errors import UsageError
from aigo_bridge.jsonl_spec.files import json_line
from aigo_bridge.jsonl_spec.records import TaskSpec
from aigo_bridge.jsonl_spec.snippet import scorer_snippet
from aigo_bridge.jsonl_spec.vocabulary import METRIC_NAMES

PROMPT_TEMPLATE = (
    "{% for example in sample.few_shot_examples %}{{ example.prompt }} {{ example.completion }}\n\n{% endfor %}"
    "{{ sample.prompt }}"
)
"""What `few_shot.render` does, as a template over a row."""

SCORER_KEY = "task_metric"

_KEY = re.compile(r"[a-zA-Z0-9_\-]{1,240}")


@dataclass(frozen=True)
class Converted:
    """An AI GO task made of task records."""

    task: dict[str, Any]
    """The task document."""
    rows: tuple[dict[str, Any], ...]
    """Its data set, one row per record."""
    gaps: tuple[str, ...]
    """What the task cannot do that the records ask for; empty when it does it all."""

    @property
    def dataset_key(self) -> str:
        """Key of the data set that the task names."""
        key: str = self.task["definition"]["dataset"]["key"]
        return key

    @property
    def dataset_name(self) -> str:
        """Shown name of that data set."""
        return f"{self.task['display_name']}: records"


CODE_SCORER: dict[str, Any] = {
    "type": "code_exec",
    "key": "code_exec",
    "tests": "targets",
    "post_process": "{{ sample.post_process }}",
    "when": "{{ sample.metric_name == 'code_exec' }}",
    "metrics": [{"type": "mean", "key": "code_exec", "field": "code_exec", "name": "code_exec"}],
}
"""The scorer of records with the metric `code_exec`: their code runs in a sandbox."""


def to_aigo(
    tasks: Iterable[TaskSpec],
    *,
    key: str = "jsonl-tasks",
    display_name: str | None = None,
    description: str = "",
) -> Converted:
    """The AI GO task and the rows for task records.

    Tasks with the metric `code_exec` get a scorer that AI GO does not have (see `spec.scorers.CodeExecScorer`), and `gaps` says so.

    Args:
        tasks: valid records with ids of their own.
        key: key of the AI GO task, 1 to 240 letters, digits, `_` or `-`; the data set's is `{key}-records`.
        display_name: shown name; `None` takes the key.
        description: shown description.

    Raises:
        UsageError: the key is none, or there are no records.
    """
    if not _KEY.fullmatch(key):
        raise UsageError(f"found the key {key!r}, expected 1 to 240 letters, digits, '_' or '-'")
    rows = tuple(_row(task) for task in tasks)
    if not rows:
        raise UsageError("there are no task records to convert")
    used = {row["metric_name"] for row in rows}
    scored = [name for name in METRIC_NAMES if name in used and name != "code_exec"]
    task = {
        "key": key,
        "display_name": display_name or key,
        "description": description,
        "definition": {
            "type": "benchmark_task",
            "dataset": {"key": f"{key}-records"},
            "solver": {
                "type": "single_turn_solver",
                "input_builder": {
                    "type": "chat_completion",
                    "input_messages": [{"role": "user", "content": PROMPT_TEMPLATE}],
                },
            },
            "scorers": [
                {
                    "type": "python",
                    "key": SCORER_KEY,
                    "compute_scores_snippet": scorer_snippet(),
                    "metrics": [
                        {"type": "mean", "key": name, "field": name, "name": name} for name in scored
                    ],
                },
                *([CODE_SCORER] if "code_exec" in used else []),
            ],
        },
    }
    return Converted(task, rows, tuple(_gaps(rows)))


def write_aigo(converted: Converted, folder: Path) -> Path:
    """Write a converted task as `task.yaml`, with its data set (`KEY-records.yaml` and `.jsonl`) beside it.

    Existing files of these names are replaced.

    Returns:
        The task file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = converted.dataset_key
    with (folder / f"{key}.jsonl").open("wb") as file:
        for row in converted.rows:
            file.write(json_line(row))
    dataset = {
        "key": key,
        "display_name": converted.dataset_name,
        "source": {"type": "local", "file_path": f"{key}.jsonl"},
    }
    (folder / f"{key}.yaml").write_text(task_yaml(dataset), encoding="utf-8")
    path = folder / "task.yaml"
    path.write_text(task_yaml(converted.task), encoding="utf-8")
    return path


def _row(task: TaskSpec) -> dict[str, Any]:
    # Every row has every column: a column that is missing somewhere would be NaN there.
    return {
        "sample_id": task.task_id,
        "category": task.category,
        "prompt": task.prompt,
        "targets": list(task.targets),
        "metric_name": task.metric_name,
        "few_shot_examples": [
            {"prompt": example.prompt, "completion": example.completion} for example in task.few_shot_examples
        ],
        "post_process": task.post_process,
        "metadata": dict(task.metadata),
    }


def _gaps(rows: tuple[dict[str, Any], ...]) -> list[str]:
    number = sum(row["metric_name"] == "code_exec" for row in rows)
    if not number:
        return []
    noun = "sample uses" if number == 1 else "samples use"
    return [
        f"{number} {noun} the metric 'code_exec', whose scorer is an extension of ours: the AI GO platform refuses it"
    ]


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that code can be read."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def task_yaml(document: dict[str, Any]) -> str:
    """A document as the YAML that is written."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text
