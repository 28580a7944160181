"""`aigo-bridge score`: stored outputs scored again, without asking the evaluated model anything."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.settings import VERB

app = typer.Typer(**VERB)


@app.command("score")
def score(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="Task file (YAML, or JSONL task records) with the scorers, or the name of a shipped task.",
        ),
    ],
    logs: Annotated[
        list[str],
        typer.Argument(
            metavar="LOG…", help="Result logs (.tasklog.json, also .gz and .zst), or logs of the engine."
        ),
    ],
    model_map: Annotated[
        list[str] | None,
        typer.Option(
            "--model-map",
            metavar="KEY=MODEL",
            help="Which model an AI GO model key of the task (a judge) stands for. Repeatable.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option("--config", metavar="KEY=VALUE", help="Value for a parameter of the task. Repeatable."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the native log and the evidence.")
    ] = Path("out"),
    engine: Annotated[str, typer.Option("--engine", metavar="NAME", help="Engine to score on.")] = "inspect",
    fail_on_error: Annotated[
        str | None,
        typer.Option(
            "--fail-on-error",
            metavar="N|0.x",
            help="Failed samples that are tolerated, as a number or a share. [0]",
        ),
    ] = None,
    root: Annotated[
        Path | None,
        typer.Option("--root", metavar="DIR", help="Folder that the task's files may reach. [its project]"),
    ] = None,
    allow_bad_tasks: Annotated[
        bool,
        typer.Option("--allow-bad-tasks", help="Of a file of task records, leave invalid ones out."),
    ] = False,
    max_connections: Annotated[
        int | None, typer.Option("--max-connections", min=1, metavar="N", help="Concurrent calls of judges.")
    ] = None,
    max_samples: Annotated[
        int | None, typer.Option("--max-samples", min=1, metavar="N", help="Samples in flight at a time.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a machine-readable summary instead of tables.")
    ] = False,
) -> None:
    """Score the outputs in result logs with a task's scorers; the evaluated model is not called.

    Samples and outputs are the log's: columns, traces, failures of the solver. Scorers, metrics, action rules and the way
    trials are aggregated are the task's. A log of the engine, anybody's, is imported first (to DIR/stored).
    With several logs, each has its own folder in DIR.
    Exit code: 0 all samples were scored, 1 some failed, 2 wrong use or an invalid task.
    """
    from aigo_bridge.cli.failing import CANCELLED, ExitCode, reported, show_differences, show_issues
    from aigo_bridge.cli.origins import origin_of, pairs
    from aigo_bridge.cli.outcomes import note_other_result, show_outcome, summary
    from aigo_bridge.cli.progress import progress
    from aigo_bridge.engine import RunSettings
    from aigo_bridge.engines import load_engine
    from aigo_bridge.errors import EngineError, EvidenceError, UsageError
    from aigo_bridge.evaluate import plan
    from aigo_bridge.evaluate import run as run_plan
    from aigo_bridge.rescoring import scored_again, stored_log
    from aigo_bridge.tolerance import allowed, tolerated

    with reported():
        tolerated(fail_on_error, 0)
        chosen = load_engine(engine)
        origin = origin_of(task, config=config, dataset=None, root=root, allow_bad_tasks=allow_bad_tasks)
        stored = [stored_log(log, chosen, out / "stored") for log in logs]
        names = [path.name for path in stored]
        if len(set(names)) < len(names):
            raise UsageError(
                "two of the logs have the same name; score them into folders of their own (--out)"
            )
    outcomes = []
    worst = ExitCode.DONE
    for path in stored:
        folder = out if len(stored) == 1 else out / path.name.split(".")[0]
        with reported():
            made = plan(scored_again(origin, path))
            show_issues(made.warnings)
            with progress(enabled=not as_json, resumable=False) as on_progress:
                settings = RunSettings(
                    out=folder,
                    model_map=pairs("--model-map", model_map),
                    max_connections=max_connections,
                    max_samples=max_samples,
                    tolerated=allowed(fail_on_error, len(made.samples)),
                    on_progress=on_progress,
                )
                try:
                    outcome = run_plan(made, chosen, settings)
                except (EngineError, EvidenceError) as error:
                    with reported(ExitCode.NOT_RIGHT):
                        raise error from error
        outcomes.append(outcome)
        note_other_result(outcome.result, outcome.plan.name)
        if not as_json:
            show_outcome(outcome)
        show_differences(outcome.result, outcome.differences)
        limit = tolerated(fail_on_error, len(made.samples))
        ended = outcome.execution.status == "success" and not outcome.differences
        if outcome.num_failed + outcome.num_missing > limit or not ended:
            worst = ExitCode.NOT_RIGHT
        if outcome.execution.status == CANCELLED:
            worst = ExitCode.INTERRUPTED
            break
    if as_json:
        typer.echo(json.dumps([summary(each) for each in outcomes], indent=2, ensure_ascii=False))
    if worst:
        raise typer.Exit(worst)
