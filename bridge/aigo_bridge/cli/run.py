"""`aigo-bridge run`: one task, one engine, one result log."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from aigo_bridge.cli.settings import VERB

app = typer.Typer(**VERB)


@app.command("run")
def run(
    task: Annotated[str, typer.Argument(metavar="TASK", help="Task file, or the name of a shipped task.")],
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
        typer.Option("--config", metavar="KEY=VALUE", help="Value for a parameter of the task. Repeatable."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        typer.Option(
            "--dataset",
            metavar="KEY=FILE",
            help="File of a data set: rows, or a data set's YAML. Repeatable.",
        ),
    ] = None,
    num_samples: Annotated[
        int | None, typer.Option("--num-samples", "-n", min=1, metavar="N", help="Run on N samples only.")
    ] = None,
    subsampling: Annotated[
        str,
        typer.Option(
            "--subsampling", metavar="head|random", help="Which N: the first, or a fixed random choice."
        ),
    ] = "head",
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the native log and the evidence.")
    ] = Path("out"),
    engine: Annotated[str, typer.Option("--engine", metavar="NAME", help="Engine to run on.")] = "inspect",
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run of the same task in DIR.")
    ] = False,
    fail_on_error: Annotated[
        str | None,
        typer.Option(
            "--fail-on-error",
            metavar="N|0.x",
            help="Failed samples that are tolerated, as a number or a share. [0]",
        ),
    ] = None,
    root: Annotated[
        Path | None, typer.Option("--root", metavar="DIR", help="Folder that includes of the task may reach.")
    ] = None,
    max_connections: Annotated[
        int | None, typer.Option("--max-connections", min=1, metavar="N", help="Concurrent model calls.")
    ] = None,
    max_samples: Annotated[
        int | None, typer.Option("--max-samples", min=1, metavar="N", help="Samples in flight at a time.")
    ] = None,
    time_limit: Annotated[
        int | None,
        typer.Option("--time-limit", min=1, metavar="SECONDS", help="Time that one sample may take."),
    ] = None,
    token_limit: Annotated[
        int | None, typer.Option("--token-limit", min=1, metavar="N", help="Tokens that one sample may use.")
    ] = None,
    cost_limit: Annotated[
        float | None, typer.Option("--cost-limit", min=0, metavar="X", help="Cost that one sample may incur.")
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a machine-readable summary instead of tables.")
    ] = False,
) -> None:
    """Run an AI GO task on an engine and write its evidence.

    DIR then holds the engine's native log and `<task key>.tasklog.json`, an AI GO TaskResultLog.
    Exit code: 0 all samples were scored, 1 some failed, 2 wrong use or an invalid task.
    """
    from aigo_bridge.cli.failing import ExitCode, reported, show_issues
    from aigo_bridge.cli.origins import origin_of, pairs
    from aigo_bridge.cli.outcomes import show_outcome, summary
    from aigo_bridge.cli.progress import progress
    from aigo_bridge.engine import RunSettings
    from aigo_bridge.engines import load_engine
    from aigo_bridge.errors import EngineError
    from aigo_bridge.evaluate import plan, tolerated
    from aigo_bridge.evaluate import run as run_plan

    with reported():
        tolerated(fail_on_error, 0)
        origin = origin_of(
            task, config=config, dataset=dataset, root=root, num_samples=num_samples, subsampling=subsampling
        )
        made = plan(origin)
        show_issues(made.warnings)
        chosen = load_engine(engine)
        with progress(enabled=not as_json) as on_progress:
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
                on_progress=on_progress,
            )
            try:
                outcome = run_plan(made, chosen, settings)
            except EngineError as error:
                with reported(ExitCode.NOT_RIGHT):
                    raise error from error
    failed = outcome.num_failed + outcome.num_missing
    limit = tolerated(fail_on_error, len(made.samples))
    if as_json:
        typer.echo(json.dumps(summary(outcome), indent=2, ensure_ascii=False))
    else:
        show_outcome(outcome)
    if failed > limit or outcome.execution.status != "success":
        raise typer.Exit(ExitCode.NOT_RIGHT)
