"""Conversion of task records to an AI GO task with a dataset, with the same prompts and scores; and back, if
the task fits.

A file of records becomes one task. Its rows keep the record's fields, with `task_id` as `sample_id`. The
task's input template inserts the few-shot examples before the prompt. Each sample has one score with the name
of its metric. Each metric of the file is the mean over the samples that use it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from aigo_bridge.codes import Code
from aigo_bridge.errors import TemplateError, UsageError
from aigo_bridge.jsonl_spec.checking import validate_task
from aigo_bridge.jsonl_spec.files import json_line
from aigo_bridge.jsonl_spec.records import METRIC_NAMES, TaskSpec
from aigo_bridge.redaction.secrets import open_clean
from aigo_bridge.spec.scorer import ScorerSpec
from aigo_bridge.spec.scorers import PythonScorer
from aigo_bridge.templates import SampleTemplate
from aigo_bridge.text.plurals import plural

PARTS = ("post_processing.py", "scores.py")
"""Modules without imports from this project."""

_HEAD = (
    "# Scores the records of a JSONL task spec: one score per sample, named after its metric.\n"
    "# bleu_4 needs the package sacrebleu, rouge_l the package rouge-score; code_exec is scored in a sandbox"
    " by another scorer.\n"
    "from __future__ import annotations"
)

_TAIL = '''

def compute_scores(sample: dict[str, Any], solver_output: Any) -> dict[str, Any]:
    """The score of one sample under its own metric, after its own post-process rule."""
    if sample["metric_name"] == "code_exec":
        return {"scores": {}, "metadata": {}}
    generation = solver_output.output.choices[0].message.content
    prediction = post_process(sample["post_process"], generation)
    score = metric_score(sample["metric_name"], prediction, sample["targets"])
    return {"scores": {sample["metric_name"]: score}, "metadata": {"prediction": prediction}}
'''


@lru_cache(maxsize=1)
def scorer_snippet() -> str:
    """Return source of `compute_scores(sample, solver_output)` without imports from this project."""
    package = files("aigo_bridge.jsonl_spec")
    parts = [_body(package.joinpath(name).read_text("utf-8")) for name in PARTS]
    return "\n\n".join([_HEAD, *parts]) + _TAIL


def is_of_records(scorer: ScorerSpec) -> bool:
    """Return whether a scorer is the generated scorer of task records (post-process rule, then metric)."""
    return isinstance(scorer, PythonScorer) and scorer.compute_scores_snippet == scorer_snippet()


def _body(source: str) -> str:
    """Return a module's source without its docstring and its `from __future__` line."""
    body = source.split('"""', 2)[2]
    return body.replace("from __future__ import annotations\n", "", 1).strip() + "\n"


PROMPT_TEMPLATE = (
    "{% for example in sample.few_shot_examples %}{{ example.prompt }} {{ example.completion }}\n\n{% "
    "endfor %}"
    "{{ sample.prompt }}"
)
"""Template over a row with the result of `few_shot.render`."""

SCORER_KEY = "task_metric"

_KEY = re.compile(r"[a-zA-Z0-9_\-]{1,240}")


@dataclass(frozen=True)
class Converted:
    """AI GO task converted from task records."""

    task: dict[str, Any]
    """Task document."""
    rows: tuple[dict[str, Any], ...]
    """Dataset of the task, one row per record."""
    gaps: tuple[str, ...]
    """Requirements of the records that the task does not meet; empty for a complete conversion."""

    @property
    def dataset_key(self) -> str:
        """Key of the task's dataset."""
        key: str = self.task["definition"]["dataset"]["key"]
        return key

    @property
    def dataset_name(self) -> str:
        """Display name of the dataset."""
        return f"{self.task['display_name']}: records"


CODE_SCORER: dict[str, Any] = {
    "type": "code_exec",
    "key": "code_exec",
    "tests": "targets",
    "post_process": "{{ sample.post_process }}",
    "when": "{{ sample.metric_name == 'code_exec' }}",
    "metrics": [{"type": "mean", "key": "code_exec", "field": "code_exec", "name": "code_exec"}],
}
"""Scorer of records with the metric `code_exec`: their code runs in a sandbox."""


def to_aigo(
    tasks: Iterable[TaskSpec],
    *,
    key: str = "jsonl-tasks",
    display_name: str | None = None,
    description: str = "",
) -> Converted:
    """Convert task records to an AI GO task and its rows.

    Tasks with the metric `code_exec` get a scorer that AI GO lacks (see
    `spec.scorers.CodeExecScorer`), and `gaps` reports it.

    Args:
        tasks: valid records with unique IDs.
        key: key of the AI GO task, 1 to 240 letters, digits, `_` or `-`; the dataset's is `{key}-records`.
        display_name: display name; `None`: the key.
        description: displayed description.

    Raises:
        UsageError: the key is invalid, or there are no records.
    """
    if not _KEY.fullmatch(key):
        raise UsageError(
            f"found the key {key!r}, expected 1 to 240 letters, digits, '_' or '-'", code=Code.WRONG_OPTION
        )
    rows = tuple(_row(task) for task in tasks)
    if not rows:
        raise UsageError("no task records to convert", code=Code.NO_ROWS)
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
    """Write a converted task as `task.yaml`, with its dataset (`KEY-records.yaml` and `.jsonl`) next to it.

    Existing files of these names are replaced.

    Returns:
        Path of the task file.
    """
    folder.mkdir(parents=True, exist_ok=True)
    key = converted.dataset_key
    with open_clean(folder / f"{key}.jsonl") as file:
        for row in converted.rows:
            file.write(json_line(row))
    dataset = {
        "key": key,
        "display_name": converted.dataset_name,
        "source": {"type": "local", "file_path": f"{key}.jsonl"},
    }
    path = folder / "task.yaml"
    for place, content in ((folder / f"{key}.yaml", dataset), (path, converted.task)):
        with open_clean(place) as file:
            file.write(task_yaml(content).encode())
    return path


def _row(task: TaskSpec) -> dict[str, Any]:
    # Every row has every column, because a column that is missing in some rows would be NaN there.
    return {
        "sample_id": task.task_id,
        "category": task.category,
        "prompt": task.prompt,
        "targets": list(task.targets),
        "metric_name": task.metric_name,
        "few_shot_examples": [example._asdict() for example in task.few_shot_examples],
        "post_process": task.post_process,
        "metadata": dict(task.metadata),
    }


def _gaps(rows: tuple[dict[str, Any], ...]) -> list[str]:
    number = sum(row["metric_name"] == "code_exec" for row in rows)
    if not number:
        return []
    noun = "sample uses" if number == 1 else "samples use"
    scorer = "whose scorer is an aigo-bridge extension that the AI GO platform does not support"
    return [f"{number} {noun} the metric 'code_exec', {scorer}"]


class _Dumper(yaml.SafeDumper):
    """YAML dumper that writes multi-line texts as blocks, for readable code."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)


def task_yaml(document: dict[str, Any]) -> str:
    """Return a document as YAML text."""
    text: str = yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=120)
    return text


_MOST_REASONS = 20
_SCORERS: Mapping[str, tuple[str, str, str]] = {
    "string_equals": ("classification", "exact_match", "is_correct"),
    "bleu": ("summary", "bleu_4", "bleu_score"),
}
"""AI GO scorer → category, metric, name of its score. The multiple-choice scorer is missing because it
only reads the first character of the answer, unlike every post-process rule.
"""

_SCORING_COLUMNS = ("category", "targets", "metric_name", "post_process")


@dataclass(frozen=True)
class Recovered:
    """Task records converted from an AI GO task, or the reasons why this is not possible."""

    tasks: tuple[TaskSpec, ...]
    """Task records, one per row; empty if there are reasons against the conversion."""
    reasons: tuple[str, ...]
    """Properties that the record format cannot express; empty if the task fits."""


def from_aigo(document: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Recovered:
    """Convert an AI GO task to task records: the exact original for results of `to_aigo`, and other simple
    single-turn tasks.

    A task fits if it sends one user message to the model once, and has one scorer: that of converted tasks,
    `string_equals` or `bleu` of the model's answer. Prompts and targets of other tasks are rendered. Columns
    that they do not use are dropped. Their category is `classification` or `summary`, depending on the
    scorer. Every resulting record must be valid.

    Args:
        document: valid task as plain data, with includes resolved.
        rows: dataset rows; IDs are from `sample_id`, otherwise built from the task's key and the row number.
    """
    reasons = list(_structure(document))
    if reasons:
        return Recovered((), tuple(reasons))
    if not rows:
        return Recovered((), ("the dataset is empty",))
    definition = document["definition"]
    template = definition["solver"]["input_builder"]["input_messages"][0]["content"]
    scorer = definition["scorers"][0]
    tasks: list[TaskSpec] = []
    taken: set[str] = set()
    for number, row in enumerate(rows):
        where = f"row {number + 1}"
        sample_id = row.get("sample_id")
        named = isinstance(sample_id, str | int) and not isinstance(sample_id, bool)
        task_id = str(sample_id) if named else f"{document['key']}_{number}"
        try:
            record = {"task_id": task_id, **_prompt(template, row), **_scoring(scorer, row)}
        except TemplateError as error:
            reasons.append(f"{where}: {error}")
            continue
        task, errors = validate_task(record)
        reasons += [f"{where}: {error}" for error in errors]
        if task_id in taken:
            reasons.append(f"{where}: the id {task_id!r} occurs twice")
        taken.add(task_id)
        if task is not None:
            tasks.append(task)
    if reasons:
        more = len(reasons) - _MOST_REASONS
        shown = reasons if more <= 0 else [*reasons[:_MOST_REASONS], f"and {more:,} more reasons"]
        return Recovered((), tuple(shown))
    return Recovered(tuple(tasks), ())


def _prompt(template: str, row: Mapping[str, Any]) -> dict[str, Any]:
    if template != PROMPT_TEMPLATE:
        return {"prompt": SampleTemplate(template).render(sample=row)}
    record: dict[str, Any] = {"prompt": row.get("prompt")}
    for name in ("few_shot_examples", "metadata"):
        if row.get(name):
            record[name] = row[name]
    return record


def _scoring(scorer: Mapping[str, Any], row: Mapping[str, Any]) -> dict[str, Any]:
    if scorer["type"] == "python":
        return {name: row[name] for name in _SCORING_COLUMNS if name in row}
    category, metric_name, _ = _SCORERS[scorer["type"]]
    target = SampleTemplate(scorer["ground_truth"]).render(sample=row)
    return {"category": category, "targets": [target], "metric_name": metric_name, "post_process": "none"}


def _structure(document: Mapping[str, Any]) -> Iterator[str]:
    definition = document["definition"]
    if document.get("config_spec"):
        yield "it has parameters (config_spec), which records do not support"
    if definition.get("type") == "system_task":
        yield "it is a system task; records call a model"
        return
    if (definition.get("dataset") or {}).get("source", "dataset") != "dataset":
        yield "it runs on an earlier task result; records contain their own prompts"
    if (definition.get("trials") or {}).get("num_trials", 1) != 1:
        yield "it has several trials; records are run once"
    if definition.get("actions"):
        yield "it has action rules, which would be lost"
    yield from _solver(definition.get("solver"))
    yield from _scorer([scorer for scorer in definition.get("scorers") or [] if scorer != CODE_SCORER])


def _solver(solver: Mapping[str, Any] | None) -> Iterator[str]:
    if solver is None:
        yield "it does not define a solver; records always call a model"
        return
    if solver.get("postprocessor"):
        yield "its solver has a postprocessor, which would be lost"
    if solver["type"] != "single_turn_solver":
        yield f"its solver is a {solver['type']!r}; records call the model once"
        return
    builder = solver["input_builder"]
    if builder["type"] != "chat_completion":
        yield f"its input builder is {builder['type']!r}; records have a prompt as plain text"
        return
    roles = [message["role"] for message in builder["input_messages"]]
    if roles != ["user"]:
        yield f"it sends messages with the roles {', '.join(roles) or 'none'}; records have one user message"


def _scorer(scorers: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if len(scorers) != 1:
        yield f"it has {plural(len(scorers), 'scorer')}; records have one metric"
        return
    (scorer,) = scorers
    kind = scorer["type"]
    if scorer.get("purpose", "score") != "score":
        yield "its scorer checks quality (purpose 'qa'), which records do not support"
    if kind == "python":
        if scorer["compute_scores_snippet"] != scorer_snippet():
            yield "its scorer runs its own code; records name a metric"
        return
    if kind not in _SCORERS:
        yield f"the record format does not have a metric for scorer {kind!r}"
        return
    if scorer.get("value") is not None:
        yield f"its scorer {kind!r} compares its own `value`; records compare the answer"
    field = _SCORERS[kind][2]
    for metric in scorer.get("metrics") or ():
        if (metric["type"], metric.get("field")) != ("mean", field):
            yield f"its metric {metric['type']!r} would be lost; records have the mean of {field!r}"
