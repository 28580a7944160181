"""Export to `eval.yaml`: a task as a Hugging Face Hub dataset for `inspect eval hf/ORG/NAME`.

Inspect accepts only a fixed list of solvers and scorers there. An unmodified task that was converted from an
`eval.yaml` becomes that file again. For other tasks, the rendered prompts are stored in columns of the rows.
Scorers that Inspect cannot express exactly are refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from aigo_bridge.codes import Code
from aigo_bridge.engine.engine import ExportedFiles, ExportOptions
from aigo_bridge.engine.protocol import Gap
from aigo_bridge.errors import SampleError, TemplateError, UsageError
from aigo_bridge.exporting.folders import MARK, check_free, draft_near, refuse_secrets, write_text
from aigo_bridge.exporting.native import (
    InexactExportError,
    actions_part,
    answer_methods,
    expected,
    metrics_of,
    part,
    reads_sample_only,
    refuse_inexact,
    samples_part,
    unsupported,
)
from aigo_bridge.exporting.packing import write_rows
from aigo_bridge.jsonl_spec.conversion import task_yaml
from aigo_bridge.models.protocol import ModelRequest
from aigo_bridge.plan.plan import TaskPlan
from aigo_bridge.solving.conversation import compile_input
from aigo_bridge.spec.task import BenchmarkDefinition
from aigo_formats.conversions import ConvertedTask
from aigo_formats.definitions import Definition
from aigo_formats.inspect_hub import HUB
from aigo_formats.inspect_hub.conversion import RowSource, convert
from aigo_formats.inspect_hub.scorers import carried_entry

Json = dict[str, Any]

FILES = ("rows.jsonl", "README.md", "eval.yaml")
"""Files that an export writes. Inspect looks for the last one."""

_SETTINGS = {
    "temperature": "temperature",
    "top_p": "top_p",
    "max_tokens": "max_tokens",
    "stop": "stop_seqs",
    "seed": "seed",
}
"""Arguments of Inspect's `generate` by request option."""
_PATTERNS = {
    ("string_equals", ()): (r"\A([\s\S]*)\Z", False),
    ("string_equals", ("trim",)): (r"\A\s*([\s\S]*?)\s*\Z", False),
    ("string_equals_mcqa", ()): (r"\A([\s\S]?)", False),
}
"""Pattern for Inspect's `pattern` scorer and whether it ignores case, by scorer and answer filters."""


class HubTasks:
    """Exporter of tasks as Hub datasets."""

    def export(self, plan: TaskPlan, out: Path, options: ExportOptions) -> ExportedFiles:
        """Write `eval.yaml`, the rows and the dataset card.

        Raises:
            InexactExportError: a part of the task cannot be expressed exactly.
            UsageError: the folder is not empty.
        """
        if options.native:
            message = f"--native: --to {HUB} only writes files for the Hub"
            raise UsageError(message, code=Code.OPTIONS_APART)
        check_free(out, force=options.force)
        target = Path(os.path.realpath(out))
        if target.exists() and any(target.iterdir()) and not _is_ours(target):
            message = (
                f"--out: folder {str(out)!r} contains files that an export did not write; choose"
                " another folder"
            )
            raise UsageError(message, code=Code.ALREADY_THERE)
        entry, rows = _hub_task(plan)
        with draft_near(target) as draft:
            write_rows(rows, draft / FILES[0])
            write_text(draft / FILES[1], _card(plan, entry))
            write_text(draft / FILES[2], _document(plan, entry))
            refuse_secrets(draft)
            target.mkdir(parents=True, exist_ok=True)
            for name in FILES:
                (draft / name).replace(target / name)
        return ExportedFiles(
            target,
            tuple(reversed(FILES)),
            ("hf upload --repo-type dataset ORG/NAME .", "inspect eval hf/ORG/NAME --model MODEL"),
        )


def _is_ours(folder: Path) -> bool:
    try:
        with (folder / FILES[-1]).open("rb") as file:
            return MARK.encode() in file.read(200)
    except OSError:
        return False


def _document(plan: TaskPlan, entry: Json) -> str:
    document = {
        "name": plan.task.display_name,
        "description": (plan.task.description or plan.task.display_name).strip(),
        "evaluation_framework": "inspect-ai",
        "tasks": [entry],
    }
    return f"# Written by {MARK} (plan {plan.digest[:12]}).\n{task_yaml(document)}"


def _card(plan: TaskPlan, entry: Json) -> str:
    files = [{"split": entry["split"], "path": FILES[0]}]
    front = task_yaml({"configs": [{"config_name": entry["config"], "data_files": files}]})
    title = " ".join(plan.task.display_name.split())
    return f"---\n{front}---\n\n# {title}\n\nWritten by {MARK}.\n"


def _hub_task(plan: TaskPlan) -> tuple[Json, Sequence[Mapping[str, Any]]]:
    entry = _unchanged_entry(plan)
    if entry is not None:
        return entry, [dict(sample.data) for sample in plan.samples]
    parts = list(_parts(plan))
    _refuse(plan, parts)
    entry, rows, problems = _rendered(plan)
    _refuse(plan, [*parts, samples_part(problems)])
    return entry, rows


def _refuse(plan: TaskPlan, parts: Sequence[Gap]) -> None:
    try:
        refuse_inexact(plan.task.key, parts, "an eval.yaml of Inspect")
    except InexactExportError as error:
        lines = [line for line in str(error).splitlines() if not line.startswith("hint: ")]
        lines.append("hint: --to inspect exports the whole task as a file that needs aigo-bridge to run")
        raise InexactExportError("\n".join(lines), error.parts) from None


# Unmodified converted tasks


def _unchanged_entry(plan: TaskPlan) -> Json | None:
    """Return the entry that a task was converted from; `None` for other or modified tasks."""
    content: Json = plan.definition.model_dump(mode="json", by_alias=True, exclude_unset=True)
    scorers = content.get("scorers") or []
    codes = [scorer.get("compute_scores_snippet") for scorer in scorers]
    if not all(isinstance(code, str) for code in codes):
        return None
    entry = carried_entry(codes)
    if entry is None:
        return None
    definition = Definition(Path("eval.yaml"), {"tasks": [_short(entry)]}, {})
    again = convert(definition, 0, RowSource(), key=plan.task.key, allow=True)
    if not isinstance(again, ConvertedTask):
        return None
    made: Json = _validated(again.task["definition"])
    content.pop("dataset", None)
    made.pop("dataset", None)
    return _short(entry) if content == made else None


def _validated(content: Json) -> Json:
    """Return a definition in the form of `TaskPlan.definition`."""
    return BenchmarkDefinition.model_validate(content).model_dump(
        mode="json", by_alias=True, exclude_unset=True
    )


def _short(entry: Json) -> Json:
    """Return an entry without Inspect's defaults."""
    short = {key: value for key, value in entry.items() if value is not None}
    if short.get("epochs") == 1 and "epoch_reducer" not in short:
        del short["epochs"]
    if not short.get("shuffle_choices"):
        short.pop("shuffle_choices", None)
    return short


# Other tasks


def _parts(plan: TaskPlan) -> Iterator[Gap]:
    """Yield every part of a task with its fidelity in an `eval.yaml`."""
    if plan.entity != "model" or plan.dataset is None:
        yield unsupported("definition", "an eval.yaml runs a model on the rows of a dataset")
        return
    benchmark = plan.benchmark
    solver = benchmark.solver
    kind = None if solver is None else solver.type
    reason = None if kind == "single_turn_solver" else "an eval.yaml calls the model once, with text"
    yield part(f"solver ({kind})", reason)
    if solver is not None and solver.postprocessor is not None:
        yield unsupported("solver.postprocessor", "task code, which an eval.yaml cannot contain")
    for number, scorer in enumerate(benchmark.scorers):
        name = f"scorers[{number}] ({scorer.type})"
        yield part(name, _scorer_problem(scorer))
        for at, metric in enumerate(() if _scorer_problem(scorer) else metrics_of(scorer)):
            problem = None if metric.type == "mean" and metric.field == "is_correct" else _OTHER_METRIC
            yield part(f"scorers[{number}].metrics[{at}] ({metric.type})", problem)
    if benchmark.trials is not None:
        problem = (
            "epochs of an eval.yaml are combined by their mean"
            if benchmark.trials.score_aggregators
            else None
        )
        yield part("trials", problem)
    if (actions := actions_part(plan)) is not None:
        yield unsupported(
            actions.part, "an eval.yaml cannot exclude samples by rules; remove their rows instead"
        )


_OTHER_METRIC = "scorers of an eval.yaml have their own metrics: the mean and its standard error"


def _scorer_problem(scorer: Any) -> str | None:
    if getattr(scorer, "method", None) == "loglikelihood":
        return "Inspect's models do not return log-likelihoods of given texts"
    if scorer.type not in ("string_equals", "string_equals_mcqa"):
        return "no scorer of an eval.yaml returns the same scores"
    value = getattr(scorer, "value", None)
    methods = answer_methods(value)
    if methods is None or (scorer.type, methods) not in _PATTERNS:
        return "the comparison uses more than the answer, or the trimmed answer"
    fields = ("ground_truth", "ground_truth_choice", "choices")
    late = [
        name
        for name in fields
        if isinstance(text := getattr(scorer, name, None), str) and not reads_sample_only(text)
    ]
    return f"{late[0]} is a template over the model's answer" if late else None


def _rendered(plan: TaskPlan) -> tuple[Json, list[Json], list[str]]:
    """Return the entry, its rows and the problems."""
    benchmark = plan.benchmark
    solver: Any = benchmark.solver
    build = compile_input(solver.input_builder)
    expectations = [expected(scorer) for scorer in benchmark.scorers]
    rows: list[Json] = []
    problems: list[str] = []
    shapes: set[tuple[tuple[str, ...], str]] = set()
    settings: Json = {}
    for sample in plan.samples:
        try:
            request = build(sample.data)
            targets = {find(sample.data)["ground_truth"] for find in expectations}
            settings = _settings(request)
            roles, row = _row(str(sample.id), _messages(request), targets)
        except (SampleError, TemplateError) as error:
            problems.append(f"sample {sample.id!r}: {error}")
            continue
        rows.append(row)
        shapes.add((roles, repr(sorted(settings.items()))))
    if len(shapes) > 1:
        problems.append("rows differ in the roles of their messages or in model settings")
    if problems or not rows:
        return {}, rows, problems or ["there are no rows"]
    columns = [name for name in rows[0] if name.startswith("message_")]
    written = [
        {"name": f"{name.rpartition('_')[2]}_message", "args": {"template": f"{{{name}}}"}}
        for name in columns
    ]
    generate: Json = {"name": "generate"} | ({"args": settings} if settings else {})
    entry: Json = {
        "id": plan.task.key,
        "config": "default",
        "split": "test",
        "field_spec": {"input": "input", "target": "target"} | ({"metadata": columns} if columns else {}),
        "solvers": [*written, generate],
        "scorers": [_scorer(scorer) for scorer in benchmark.scorers],
    }
    if plan.num_trials > 1:
        entry |= {"epochs": plan.num_trials, "epoch_reducer": "mean"}
    return entry, rows, []


def _scorer(scorer: Any) -> Json:
    pattern, ignore_case = _PATTERNS[scorer.type, answer_methods(getattr(scorer, "value", None)) or ()]
    return {"name": "pattern", "args": {"pattern": pattern, "ignore_case": ignore_case}}


def _messages(request: ModelRequest) -> list[tuple[str, Any]]:
    if request.items is not None or request.input.response_format is not None:
        raise SampleError("the input is more than chat messages", stage="solver", kind="UnsupportedContent")
    return [(message.role, message.content) for message in request.input.messages]


def _settings(request: ModelRequest) -> Json:
    settings: Json = {}
    for name, value in request.options.items():
        if name not in _SETTINGS:
            raise SampleError(
                f"'generate': unknown argument {name!r}", stage="solver", kind="UnsupportedContent"
            )
        settings[_SETTINGS[name]] = [value] if name == "stop" and isinstance(value, str) else value
    return settings


def _row(
    identifier: str, messages: Sequence[tuple[str, Any]], targets: set[str]
) -> tuple[tuple[str, ...], Json]:
    """Return a row. The first user message is the sample's input, and other messages are separate columns."""
    roles = tuple(role for role, _ in messages)
    systems = roles.count("system")
    ordered = ("system",) * systems + ("user",) * (len(roles) - systems)
    if roles != ordered or "user" not in roles:
        problem = (
            f"its messages are of {', '.join(roles) or 'nobody'}; an eval.yaml has system first, then user"
        )
        raise SampleError(problem, stage="solver", kind="UnsupportedContent")
    if not all(isinstance(text, str) and text for _, text in messages):
        raise SampleError("a message is empty or not text", stage="solver", kind="UnsupportedContent")
    if len(targets) > 1:
        raise SampleError(
            "its scorers compare with different texts, but a sample has only one target", stage="score"
        )
    (target,) = targets
    if not target or target.startswith("literal:"):
        raise SampleError(f"Inspect would change the target {target!r}", stage="score")
    row: Json = {"sample_id": identifier, "input": messages[systems][1], "target": target}
    for number, (role, text) in enumerate(messages):
        if number != systems:
            row[f"message_{number + 1}_{role}"] = text
    return roles, row
