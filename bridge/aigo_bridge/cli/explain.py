"""`aigo-bridge explain`: every prompt before any model is called."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from aigo_bridge.cli.settings import VERB

if TYPE_CHECKING:
    from aigo_bridge.explaining import Message, SamplePreview
    from aigo_bridge.plan import PlanOrigin, TaskPlan

app = typer.Typer(**VERB)


@app.command("explain")
def explain(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="Task file (YAML, or JSONL task records), the name of a shipped task, a run file (all its specifications), or"
            " `RUN_FILE#SPECIFICATION`.",
        ),
    ],
    num_samples: Annotated[
        int, typer.Option("--num-samples", "-n", min=0, metavar="N", help="Samples that are shown.")
    ] = 3,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="Value for a parameter of the task. Repeatable."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option("--dataset", metavar="KEY=FILE", help="File of a data set. Repeatable."),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Take the real rows from the Hugging Face hub, in place of a shipped task's sample data.",
        ),
    ] = False,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Folder that the task's files may reach. [its project]"),
    ] = None,
    allow_bad_tasks: Annotated[
        bool,
        typer.Option("--allow-bad-tasks", help="Of a file of task records, leave invalid ones out."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print it for programs.")] = False,
) -> None:
    """Show exactly the messages, judge prompts and metrics that a run would have.

    No model is called and no snippet is run; ⟨…⟩ stands for what a model would say.
    Exit code: 0 shown, 2 wrong use or an invalid task, 3 invalid task records were left out.
    """
    from aigo_bridge.cli.failing import ExitCode, reported, show_issues
    from aigo_bridge.cli.origins import origin_of
    from aigo_bridge.evaluate import plan
    from aigo_bridge.evaluation.run_files import holds_evaluation
    from aigo_bridge.explaining import explain as previews

    with reported():
        origin = origin_of(
            task, config=config, dataset=dataset, root=root, allow_bad_tasks=allow_bad_tasks, full=full
        )
        several = holds_evaluation(task)
        plans = _specifications(origin) if several else [plan(origin)]
        show_issues(dict.fromkeys(issue for made in plans for issue in made.warnings))
        shown = [list(previews(made, num_samples)) if made.entity != "system" else [] for made in plans]
    if as_json:
        texts = [_as_json(made, own) for made, own in zip(plans, shown, strict=True)]
        typer.echo(json.dumps(texts if several else texts[0], indent=2, ensure_ascii=False, default=str))
    else:
        _print_all(plans, shown, several=several)
    if any(made.num_invalid for made in plans):
        raise typer.Exit(ExitCode.PARTIAL)


def _print_all(plans: Sequence[TaskPlan], shown: Sequence[list[SamplePreview]], *, several: bool) -> None:
    if not plans:
        _say("there is no task specification that is run")
    for number, (made, own) in enumerate(zip(plans, shown, strict=True)):
        if several:
            _say(f"{'' if number == 0 else chr(10)}══ {made.name}")
        _print(made, own)


def _specifications(origin: PlanOrigin) -> list[TaskPlan]:
    """The plans of a run file, or of an assessment plan: one of each specification that is run."""
    from aigo_bridge.evaluation.planning import plan_evaluations
    from aigo_bridge.trace_sources import trace_reader

    evaluations = plan_evaluations(origin, cache=None, read_traces=trace_reader)
    return [entry.plans[0] for each in evaluations for entry in each.entries if entry.plans]


def _as_json(made: TaskPlan, shown: list[SamplePreview]) -> dict[str, Any]:
    from aigo_bridge.explaining import metric_names

    return {
        "task": made.task.key,
        "evaluates": made.entity,
        "config": dict(made.config),
        "dataset": made.dataset and made.dataset.key,
        "sample_data": made.dataset is not None and made.dataset.is_sample,
        "num_samples": len(made.samples),
        "num_trials": made.num_trials,
        "model_keys": list(made.model_keys),
        "metrics": []
        if made.entity == "system"
        else [{"scorer": scorer, "metric": key, "of": text} for scorer, key, text in metric_names(made)],
        "samples": [asdict(sample) for sample in shown],
        "digest": made.digest,
    }


def _print(made: TaskPlan, shown: list[SamplePreview]) -> None:
    from aigo_bridge.explaining import metric_names
    from aigo_bridge.full_data import sample_note

    _say(f"{made.task.display_name} ({made.task.key}): evaluates a {made.entity}")
    if made.dataset is not None:
        trials = f", {made.num_trials} trials each" if made.num_trials > 1 else ""
        _say(f"data set: {made.dataset.key}, {len(made.samples)} samples{trials}")
    note = sample_note(made)
    if note is not None:
        _say(note)
    for key, value in made.config.items():
        _say(f"config: {key} = {value!r}")
    if made.model_keys:
        _say(f"other models: {', '.join(made.model_keys)}")
    for preview in shown:
        _say_sample(preview)
    if made.entity != "system":
        _say("\n── metrics")
        for scorer_key, key, text in metric_names(made):
            _say(f"{scorer_key}: {key} ({text})", 2)


def _say_sample(preview: SamplePreview) -> None:
    _say(f"\n── sample {preview.id}")
    _say_messages(preview.messages, 2)
    if preview.options:
        _say(f"options: {json.dumps(dict(preview.options), ensure_ascii=False)}", 2)
    if preview.problem:
        _say(f"will fail: {preview.problem}", 2)
    for scorer in preview.scorers:
        _say(f"scorer {scorer.key}" + ("" if scorer.key == scorer.type else f" ({scorer.type})"), 2)
        for name, text in scorer.fields.items():
            _say(f"{name}: {text}" if name == "compute_scores" else f"{name}: {text!r}", 4)
        _say_messages(scorer.messages, 4)
        if scorer.response_format is not None:
            _say("answers by a JSON schema (structured output)", 4)
        if scorer.problem:
            _say(f"will fail: {scorer.problem}", 4)


def _say_messages(messages: tuple[Message, ...], indent: int) -> None:
    for message in messages:
        _say("…" if message.role == "note" else f"[{message.role}]", indent)
        _say(message.content, indent + 2)


def _say(text: str, indent: int = 0) -> None:
    from aigo_bridge.cli.terminal import printable

    for line in printable(text).splitlines() or [""]:
        typer.echo(" " * indent + line)
