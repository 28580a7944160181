"""`aigo-bridge run`: a task, or a whole evaluation, on an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.settings import VERB

if TYPE_CHECKING:
    from aigo_bridge.engine import Engine, RunSettings
    from aigo_bridge.evaluate import Outcome
    from aigo_bridge.plan import CachePolicy, PlanOrigin

app = typer.Typer(**VERB)

CACHE_POLICIES = ("reuse", "update", "no-cache")


@app.command("run")
def run(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="Task file (YAML, or JSONL task records), the name of a shipped task, a run file (all its specifications), `RUN_FILE#SPECIFICATION`, or an engine's own"
            " benchmark: `inspect:NAME`, `inspect:FILE.py@TASK`, `lighteval:TASK|SHOTS`.",
        ),
    ],
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            metavar="MODEL",
            help="Model under evaluation: openai/…, anthropic/…, ollama/…, hf/…, or scripted/FILE.",
        ),
    ] = None,
    model_map: Annotated[
        list[str] | None,
        typer.Option(
            "--model-map",
            metavar="KEY=MODEL",
            help="Which model an AI GO model key of the task stands for. Repeatable.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            metavar="KEY=VALUE",
            help="Value for a parameter of the task, or of the run file's evaluation. Repeatable.",
        ),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="KEY=FILE",
            help="File of a data set: rows, or a data set's YAML. Repeatable.",
        ),
    ] = None,
    full: Annotated[
        bool,
        typer.Option(
            "--full",
            help="Take the real rows from the Hugging Face hub, in place of a shipped task's sample data.",
        ),
    ] = False,
    task_args: Annotated[
        list[str] | None,
        typer.Option(
            "--task-arg",
            "-T",
            metavar="NAME=VALUE",
            help="Parameter of an engine's own benchmark. Repeatable.",
        ),
    ] = None,
    data_dir: Annotated[
        Path | None,
        typer.Option(
            "--data-dir",
            metavar="DIR",
            help="Rows of a lighteval task, DIR/<split>.jsonl, in place of a hub's.",
        ),
    ] = None,
    custom_tasks: Annotated[
        Path | None,
        typer.Option(
            "--custom-tasks", metavar="FILE", help="Python file with further lighteval tasks (TASKS_TABLE)."
        ),
    ] = None,
    num_samples: Annotated[
        int | None, typer.Option("--num-samples", "-n", min=1, metavar="N", help="Run on N samples only.")
    ] = None,
    subsampling: Annotated[
        str | None,
        typer.Option(
            "--subsampling", metavar="head|random", help="Which N: the first, or a fixed random choice."
        ),
    ] = None,
    num_trials: Annotated[
        int | None,
        typer.Option("--num-trials", min=1, metavar="N", help="Solve and score each sample N times."),
    ] = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the native logs and the evidence.")
    ] = Path("out"),
    engine: Annotated[
        str,
        typer.Option(
            "--engine",
            metavar="NAME[,NAME]",
            help="Engine to run on; of several, the results stand in DIR/<engine> and are compared.",
        ),
    ] = "inspect",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run of the same task in DIR.")
    ] = False,
    cache: Annotated[
        str | None,
        typer.Option(
            "--cache",
            metavar="|".join(CACHE_POLICIES),
            help="Whether earlier results in DIR are used; of a run file, in place of its own cache policy. [update]",
        ),
    ] = None,
    fail_on_error: Annotated[
        str | None,
        typer.Option(
            "--fail-on-error",
            metavar="N|0.x",
            help="Failed samples that are tolerated (per specification), as a number or a share of all samples; with one more the run is"
            " stopped, and can be resumed. Without the option it goes on, and any failed sample makes the exit code 1.",
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
        int | None, typer.Option("--max-connections", min=1, metavar="N", help="Concurrent model calls.")
    ] = None,
    max_samples: Annotated[
        int | None, typer.Option("--max-samples", min=1, metavar="N", help="Samples in flight at a time.")
    ] = None,
    time_limit: Annotated[
        int | None,
        typer.Option(
            "--time-limit",
            min=1,
            metavar="SECONDS",
            help="Time that one sample may take; its scorers have half of that again.",
        ),
    ] = None,
    token_limit: Annotated[
        int | None, typer.Option("--token-limit", min=1, metavar="N", help="Tokens that one sample may use.")
    ] = None,
    cost_limit: Annotated[
        float | None, typer.Option("--cost-limit", min=0, metavar="X", help="Cost that one sample may incur.")
    ] = None,
    snippets: Annotated[
        str,
        typer.Option(
            "--snippets",
            metavar="worker|in-process",
            help="Where the author's Python runs; in-process is for debugging your own code, nothing is isolated.",
        ),
    ] = "worker",
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a machine-readable summary instead of tables.")
    ] = False,
) -> None:
    """Run an AI GO task, or all tasks of a run file, on an engine and write the evidence.

    DIR then holds the engine's native logs and one `<key>.tasklog.json` per task, an AI GO TaskResultLog; of a run file also `evaluation.json`.
    Exit code: 0 all samples were scored and all policies hold, 1 some failed, a metric has no value, a policy does not hold or engines differ,
    2 wrong use or an invalid task, 3 all is right but invalid task records were left out, 130 stopped by ctrl-C (finished samples are kept,
    --resume goes on).
    """
    from dataclasses import replace

    from aigo_bridge.benchmarks import split_name
    from aigo_bridge.cli.evaluations import run_evaluations
    from aigo_bridge.cli.failing import ExitCode, code_of, reported, shown
    from aigo_bridge.cli.origins import cache_policy, origin_of, pairs
    from aigo_bridge.cli.progress import progress
    from aigo_bridge.engine import RunSettings
    from aigo_bridge.engines import load_engine
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.naming import parse_reference
    from aigo_bridge.evaluation.run_files import holds_evaluation
    from aigo_bridge.snippets import run_in_process
    from aigo_bridge.tolerance import tolerated

    with reported():
        tolerated(fail_on_error, 0)
        if snippets not in ("worker", "in-process"):
            raise UsageError(f"--snippets: found {snippets!r}, expected worker or in-process")
        run_in_process(snippets == "in-process")
        benchmark = split_name(task)
        if benchmark is not None:
            if engine not in ("inspect", benchmark[0]):
                raise UsageError(
                    f"--engine: found {engine!r}, but a benchmark of an engine runs on that engine"
                )
            from aigo_bridge.benchmarks import BenchmarkRun
            from aigo_bridge.cli.benchmarks import refuse_options, run_benchmark

            refuse_options(
                {
                    "--config": config,
                    "--dataset": dataset,
                    "--full": full,
                    "--subsampling": subsampling,
                    "--root": root,
                    "--allow-bad-tasks": allow_bad_tasks,
                    "--cache": cache,
                    "--snippets": snippets != "worker",
                }
            )
            request = BenchmarkRun(
                task=benchmark[1],
                out=out,
                arguments=task_args or [],
                model=model,
                roles=pairs("--model-map", model_map),
                num_samples=num_samples,
                num_trials=num_trials,
                max_connections=max_connections,
                max_samples=max_samples,
                time_limit=time_limit,
                token_limit=token_limit,
                cost_limit=cost_limit,
                data_dir=data_dir,
                custom_tasks=custom_tasks,
                resume=resume,
                fail_on_error=fail_on_error,
            )
            code = run_benchmark(benchmark[0], request, fail_on_error=fail_on_error, as_json=as_json)
            raise typer.Exit(code)
        if task_args:
            raise UsageError(
                "-T: for an engine's own benchmark only; parameters of a task are given with --config"
            )
        if data_dir is not None or custom_tasks is not None:
            raise UsageError("--data-dir, --custom-tasks: for an engine's own benchmark only")
        policy = cache_policy(cache)
        origin = origin_of(
            task,
            config=config,
            dataset=dataset,
            root=root,
            num_samples=num_samples,
            subsampling=subsampling,
            num_trials=num_trials,
            allow_bad_tasks=allow_bad_tasks,
            full=full,
        )
        reference = parse_reference(task)
        several = reference is not None or holds_evaluation(task)
        engines = _engine_names(engine)
        settings = RunSettings(
            out=out,
            model=model,
            model_map=pairs("--model-map", model_map),
            max_connections=max_connections,
            max_samples=max_samples,
            time_limit=time_limit,
            token_limit=token_limit,
            cost_limit=cost_limit,
            resume=resume,
            reuse_earlier=policy == "reuse",
        )
        if len(engines) > 1:
            from aigo_bridge.cli.parity import run_evaluations_on_all, run_task_on_all

            on_all = run_evaluations_on_all if several else run_task_on_all
            code = on_all(
                engines, origin, settings, cache=policy, fail_on_error=fail_on_error, as_json=as_json
            )
            raise typer.Exit(code)
        with progress(enabled=not as_json, several=several) as on_progress:
            settings = replace(settings, on_progress=on_progress)
            chosen = load_engine(engines[0])
            if several:
                code = run_evaluations(
                    origin, chosen, settings, cache=policy, fail_on_error=fail_on_error, as_json=as_json
                )
                raise typer.Exit(code)
            outcome = _run_task(origin, chosen, settings, policy, fail_on_error)
    is_shown = shown(settings.out, lambda: _tell(outcome, settings, as_json=as_json))
    right = is_shown and outcome.is_right(tolerated(fail_on_error, len(outcome.plan.samples)))
    if code := code_of([outcome.execution.status], right=right):
        raise typer.Exit(code)
    if outcome.plan.num_invalid:
        raise typer.Exit(ExitCode.PARTIAL)


def _engine_names(text: str) -> list[str]:
    """The engines of `--engine`; a name that no engine has is told when it is looked for."""
    from aigo_bridge.errors import UsageError

    names = [name.strip() for name in text.split(",")]
    if "" in names or len(set(names)) < len(names):
        raise UsageError(
            f"--engine: found {text!r}, expected one engine or several different ones, e.g. inspect,lighteval"
        )
    return names


def _run_task(
    origin: PlanOrigin,
    engine: Engine,
    settings: RunSettings,
    cache: CachePolicy | None,
    fail_on_error: str | None,
) -> Outcome:
    from dataclasses import replace

    from aigo_bridge.cli.failing import ExitCode, reported, show_issues
    from aigo_bridge.errors import EngineError, EvidenceError
    from aigo_bridge.evaluate import plan, unused_options
    from aigo_bridge.evaluate import run as run_plan
    from aigo_bridge.tolerance import allowed

    made = replace(plan(origin), cache=cache or "update")
    settings = replace(settings, tolerated=allowed(fail_on_error, len(made.samples)))
    show_issues((*made.warnings, *unused_options(made, settings)))
    try:
        return run_plan(made, engine, settings)
    except (EngineError, EvidenceError) as error:
        with reported(ExitCode.NOT_RIGHT):
            raise error from error


def _tell(outcome: Outcome, settings: RunSettings, *, as_json: bool) -> None:
    from aigo_bridge.cli.failing import show_differences
    from aigo_bridge.cli.outcomes import note_other_result, show_outcome, summary
    from aigo_bridge.cli.terminal import short_path

    if settings.resume and outcome.log.earlier is None:
        message = f"nothing to resume: no run of this task with these models in {short_path(settings.out)}; all of it was run"
        typer.echo(message, err=True)
    elif outcome.log.earlier == outcome.log.path:
        typer.echo("the earlier run is complete: nothing was run again", err=True)
    elif outcome.log.replayed and outcome.log.earlier is not None:
        earlier = short_path(outcome.log.earlier)
        typer.echo(
            f"scored the outputs of {earlier} again; the model is asked only for what had failed there",
            err=True,
        )
    if outcome.log.other_model:
        message = "warning: a model's file has changed since the earlier run: what was taken over from it are the old answers"
        typer.echo(message, err=True)
    note_other_result(outcome.result, outcome.plan.name)
    if as_json:
        typer.echo(json.dumps(summary(outcome), indent=2, ensure_ascii=False))
    else:
        show_outcome(outcome)
    show_differences(outcome.result, outcome.differences)
