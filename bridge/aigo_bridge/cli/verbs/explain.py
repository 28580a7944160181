"""`aigo-bridge explain`: show every prompt before any model call."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowUrlOption,
    BadTasksOption,
    ConfigOption,
    DatasetOption,
    EnvOption,
    FullOption,
    ModelMapOption,
    NetworkOption,
    NumTrialsOption,
    RootOption,
    TaskArgument,
    verb_command,
)
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.evaluation.explain import PromptMessage, SamplePreview
    from aigo_bridge.plan.plan import TaskPlan

app = typer.Typer(**VERB)


@app.command(
    "explain",
    cls=verb_command(
        "aigo-bridge explain task.yaml",
        "aigo-bridge explain task.yaml -n 1 --config language=de",
        "aigo-bridge explain task.yaml --cost --model openai/gpt-4.1-mini",
        exit_codes={
            "0": "all samples were shown",
            "2": "wrong arguments or an invalid task",
            "3": "invalid task records were skipped",
        },
        panels={"Cost": ("cost", "prices", "model", "model_map", "answer_tokens", "num_trials")},
    ),
)
def explain(
    task: TaskArgument,
    num_samples: Annotated[
        int,
        typer.Option("--num-samples", "-n", "--limit", min=0, metavar="N", help="Number of samples to show."),
    ] = 3,
    config: ConfigOption = None,
    dataset: DatasetOption = None,
    full: FullOption = False,
    root: RootOption = None,
    allow_bad_tasks: BadTasksOption = False,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    allow_url: AllowUrlOption = None,
    network: NetworkOption = False,
    cost: Annotated[
        bool,
        typer.Option(
            "--cost", help="Estimate the number of calls, tokens and the cost of a run, with bounds."
        ),
    ] = False,
    prices: Annotated[
        Path | None,
        typer.Option(
            "--prices",
            metavar="FILE",
            help="Price table for --cost: a YAML file with prices per million tokens.",
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model", metavar="MODEL", help="Model to evaluate, for --cost, e.g. openai/gpt-4.1-mini."
        ),
    ] = None,
    model_map: ModelMapOption = None,
    answer_tokens: Annotated[
        str | None,
        typer.Option(
            "--answer-tokens",
            metavar="MEAN[,MOST]",
            help="Expected and maximum number of tokens in an answer, for --cost, e.g. 200,1000.",
        ),
    ] = None,
    num_trials: NumTrialsOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")] = False,
) -> None:
    """Show the exact messages, judge prompts and metrics of a run, or estimate its cost.

    No model is called and no snippet is executed. ⟨…⟩ marks a text that a model would produce.
    """
    from dataclasses import replace

    from aigo_bridge.access.grants import granted, granting, outside_files, recording
    from aigo_bridge.cli.costs import costs_of, show_costs
    from aigo_bridge.cli.error_handling import show_issues
    from aigo_bridge.cli.options import origin_of, uses_as_lines, variables_as_json
    from aigo_bridge.cli.terminal import short_path
    from aigo_bridge.evaluation.explain import explain as previews
    from aigo_bridge.evaluation.run_files import holds_evaluation, own_folder
    from aigo_bridge.evaluation.task import evaluations_of, plan
    from aigo_bridge.exit_codes import ExitCode

    # The option for full rows implies permission to download them.
    allowed = replace(granted(), network=network or full)
    with recording() as uses, granting(allowed):
        origin = origin_of(
            task,
            config=config,
            dataset=dataset,
            root=root,
            num_trials=num_trials,
            allow_bad_tasks=allow_bad_tasks,
            full=full,
        )
        several = holds_evaluation(task)
        # For a run file, plan each task specification once.
        entries = (
            [entry for one in evaluations_of(origin, cache=None) for entry in one.entries if entry.plans]
            if several
            else []
        )
        plans = [entry.plans[0] for entry in entries] if several else [plan(origin)]
        runs = [(len(entry.plans), entry.model_key) for entry in entries] if several else [(1, None)]
        costs = costs_of(cost, list(zip(plans, runs, strict=True)), prices, model, model_map, answer_tokens)
        if costs is not None:
            num_samples = 0
        show_issues(dict.fromkeys(issue for task_plan in plans for issue in task_plan.warnings))
        shown = [
            list(previews(task_plan, num_samples)) if task_plan.entity != "system" else []
            for task_plan in plans
        ]
    files = outside_files(uses.files, own_folder(task))
    if as_json:
        access = {
            "variables": variables_as_json(uses.variables),
            "addresses": list(uses.addresses),
            "files": [short_path(file) for file in files],
        }
        texts = [
            _as_json(task_plan, samples) | access for task_plan, samples in zip(plans, shown, strict=True)
        ]
        if costs is not None:
            texts = [text | {"cost": costs.to_json(number)} for number, text in enumerate(texts)]
        from aigo_bridge.cli.terminal import print_json

        print_json(texts if several else texts[0])
    elif costs is not None:
        show_costs(costs)
    else:
        _print_all(plans, shown, several=several)
        for line in uses_as_lines(uses.variables, uses.addresses, files):
            typer.echo(line)
    if any(task_plan.num_invalid for task_plan in plans):
        raise typer.Exit(ExitCode.PARTIAL)


def _print_all(plans: Sequence[TaskPlan], shown: Sequence[list[SamplePreview]], *, several: bool) -> None:
    if not plans:
        _say("no task specification to run")
    for number, (plan, previews) in enumerate(zip(plans, shown, strict=True)):
        if several:
            _say(f"{'' if number == 0 else chr(10)}══ {plan.name}")
        _print(plan, previews)


def _as_json(plan: TaskPlan, shown: list[SamplePreview]) -> dict[str, Any]:
    from aigo_bridge.evaluation.explain import metric_names

    return {
        "task": plan.task.key,
        "evaluates": plan.entity,
        "config": dict(plan.config),
        "dataset": plan.dataset and plan.dataset.key,
        "sample_data": plan.dataset is not None and plan.dataset.is_sample,
        "num_samples": len(plan.samples),
        "num_trials": plan.num_trials,
        "model_keys": list(plan.model_keys),
        "needs": plan.task.needs,
        "metrics": []
        if plan.entity == "system"
        else [{"scorer": scorer, "metric": key, "of": text} for scorer, key, text in metric_names(plan)],
        "samples": [asdict(sample) for sample in shown],
        "digest": plan.digest,
    }


def _print(plan: TaskPlan, shown: list[SamplePreview]) -> None:
    from aigo_bridge.evaluation.explain import metric_names
    from aigo_bridge.evaluation.task import sample_note

    _row(f"{plan.task.display_name} ({plan.task.key}): evaluates a {plan.entity}")
    if plan.dataset is not None:
        trials = f", {plural(plan.num_trials, 'trial')} each" if plan.num_trials > 1 else ""
        _row(f"dataset: {plan.dataset.key}, {plural(len(plan.samples), 'sample')}{trials}")
    note = sample_note(plan)
    if note is not None:
        _say(note)
    for key, value in plan.config.items():
        _say(f"config: {key} = {value!r}")
    if plan.task.needs is not None:
        from aigo_bridge.execution.permissions import is_allowed

        state = "allowed" if is_allowed(plan) else f"not allowed yet; run it with --allow {plan.task.needs}"
        _say(f"the code of the task needs the {plan.task.needs} ({state})")
    if plan.model_keys:
        _row(f"other models: {', '.join(plan.model_keys)}")
    for preview in shown:
        _say_sample(preview)
    if plan.entity != "system":
        _say("\n── metrics")
        for scorer_key, key, text in metric_names(plan):
            _row(f"{scorer_key}: {key} ({text})", 2)


def _say_sample(preview: SamplePreview) -> None:
    _say("")
    _row(f"── sample {preview.id}")
    _say_messages(preview.messages, 2)
    if preview.options:
        _say(f"options: {json.dumps(dict(preview.options), ensure_ascii=False)}", 2)
    if preview.problem:
        _say(f"will fail: {preview.problem}", 2)
    for scorer in preview.scorers:
        _row(f"scorer {scorer.key}" + ("" if scorer.key == scorer.type else f" ({scorer.type})"), 2)
        for name, text in scorer.fields.items():
            _say(f"{name}: {text}" if name == "compute_scores" else f"{name}: {text!r}", 4)
        _say_messages(scorer.messages, 4)
        if scorer.response_format is not None:
            _say("answers with a JSON schema (structured output)", 4)
        if scorer.problem:
            _say(f"will fail: {scorer.problem}", 4)


def _say_messages(messages: tuple[PromptMessage, ...], indent: int) -> None:
    for message in messages:
        _say("…" if message.role == "note" else f"[{message.role}]", indent)
        _say(message.content, indent + 2)


def _row(text: str, indent: int = 0) -> None:
    """Print one row, whatever characters the names contain."""
    from aigo_bridge.cli.terminal import name_of

    typer.echo(" " * indent + name_of(text))


def _say(text: str, indent: int = 0) -> None:
    from aigo_bridge.cli.terminal import printable

    for line in printable(text).splitlines() or [""]:
        typer.echo(" " * indent + line)
