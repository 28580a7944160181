"""`aigo-bridge score`: score stored answers again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowOption,
    BadTasksOption,
    ConfigOption,
    EnvOption,
    JsonOption,
    MaxConnectionsOption,
    ModelMapOption,
    RootOption,
    SamplesAtATimeOption,
    SnippetsOption,
    verb_command,
)
from aigo_bridge.cli.result_arguments import RESULTS_HELP
from aigo_bridge.cli.terminal import print_json
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import Engine
    from aigo_bridge.importing.log_import import ImportReport

app = typer.Typer(**VERB)

RESULT_SUFFIXES = (".tasklog.json", ".tasklog.json.gz", ".tasklog.json.zst")
"""File extensions of result logs; other files are recognized by their content."""


@app.command(
    "score",
    cls=verb_command(
        "aigo-bridge score task.yaml out/capitals.tasklog.json",
        "aigo-bridge score task.yaml logs/run.eval --model-map judge=openai/gpt-4.1-mini --out scored",
        exit_codes={
            "0": "all samples were scored",
            "1": "some samples failed",
            "2": "wrong arguments or an invalid task",
            "130": "stopped by ctrl-C",
        },
    ),
)
def score(
    task: Annotated[
        str,
        typer.Argument(
            metavar="TASK",
            help="Task file (YAML or JSONL task records) with the scorers, or a shipped task "
            "(aigo_tasks/gsm8k).",
        ),
    ],
    logs: Annotated[
        list[str],
        typer.Argument(metavar="LOG…", help=f"{RESULTS_HELP} Also engine logs."),
    ],
    model_map: ModelMapOption = None,
    config: ConfigOption = None,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="DIR", help="Folder for the engine log and the evidence.")
    ] = Path("out"),
    engine: Annotated[str, typer.Option("--engine", metavar="NAME", help="Engine to score on.")] = "inspect",
    fail_on_error: Annotated[
        str | None,
        typer.Option(
            "--fail-on-error",
            metavar="N|0.x",
            help="Number or proportion of failed samples that do not set exit code 1, e.g. 5 "
            "or 0.02. [default: 0]",
        ),
    ] = None,
    root: RootOption = None,
    allow_bad_tasks: BadTasksOption = False,
    max_connections: MaxConnectionsOption = None,
    max_samples: SamplesAtATimeOption = None,
    snippets: SnippetsOption = None,
    allow: AllowOption = None,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    as_json: JsonOption = False,
) -> None:
    """Score the stored answers in result logs with the scorers of a task. The evaluated model is not called.

    The logs provide the samples, traces and solver errors. The task provides the scorers, metrics, action
    rules and the aggregation of trials. An engine log is first imported to DIR/stored. Several logs each
    get their own folder in DIR.
    """
    from dataclasses import replace

    from aigo_bridge.cli.error_handling import exit_code, reported, show_differences, show_issues
    from aigo_bridge.cli.options import origin_of, pairs
    from aigo_bridge.cli.outcomes import note_other_result, show_outcome
    from aigo_bridge.cli.progress import progress
    from aigo_bridge.cli.summaries import task_json
    from aigo_bridge.engine.protocol import RunSettings
    from aigo_bridge.engine.registry import load_engine
    from aigo_bridge.errors import EngineError, EvidenceError
    from aigo_bridge.evaluation.models import ModelChoice
    from aigo_bridge.evaluation.planning import of_task
    from aigo_bridge.evaluation.running import prepare, run_evaluation
    from aigo_bridge.evaluation.task import plan, scored_again
    from aigo_bridge.execution.progress import tolerated
    from aigo_bridge.exit_codes import CANCELLED, ExitCode, of_runs

    tolerated(fail_on_error, 0)
    chosen = load_engine(engine)
    origin = origin_of(task, config=config, dataset=None, root=root, allow_bad_tasks=allow_bad_tasks)
    stored = [each for log in logs for each in _stored_logs(log, chosen, out / "stored")]
    folders = _folders(stored, out)
    outcomes = []
    passed = True
    for (_, path), folder in zip(stored, folders, strict=True):
        task_plan = plan(scored_again(origin, path))
        show_issues(task_plan.warnings)
        with progress(enabled=not as_json, resumable=False) as on_progress:
            settings = RunSettings(
                out=folder,
                max_connections=max_connections,
                max_samples=max_samples,
                on_progress=on_progress,
            )
            choice = ModelChoice(model_map=pairs("--model-map", model_map))
            with reported(ExitCode.FAILED, (EngineError, EvidenceError)):
                (prepared,) = prepare([of_task(task_plan)], [chosen], choice, resume=False)
                (outcome,) = run_evaluation(prepared, chosen, settings, fail_on_error=fail_on_error).results
        outcomes.append(outcome)
        note_other_result(outcome.result, outcome.key)
        if not as_json:
            show_outcome(outcome)
        show_differences(outcome)
        # Metrics without a value and evidence faults are reported, but are not failed samples.
        limit = tolerated(fail_on_error, outcome.num_planned)
        passed &= replace(outcome, uncomputed=(), faults=()).passed(limit)
        if outcome.status == CANCELLED:
            break
    if as_json:
        print_json([task_json(outcome) for outcome in outcomes])
    statuses = {outcome.status for outcome in outcomes}
    if code := of_runs(statuses, passed=passed, stopped=exit_code()):
        raise typer.Exit(code)


def _folders(stored: Sequence[tuple[str, Path]], out: Path) -> list[Path]:
    """Return the folder of each result. Several results get folders below `out`, named after the log and, if
    needed, its folder.
    """
    from aigo_bridge.errors import UsageError

    if len(stored) == 1:
        return [out]
    names = [name for name, _ in stored]
    folders = [
        out / (name if names.count(name) == 1 else f"{path.resolve().parent.name}-{name}")
        for name, path in stored
    ]
    if len(set(folders)) < len(folders):
        raise UsageError(
            "two logs have the same name; score them into different folders with --out",
            code=Code.OPTIONS_APART,
        )
    return folders


def _stored_logs(location: str, engine: Engine, folder: Path) -> list[tuple[str, Path]]:
    """Return name and path of each result log in a folder, pattern, evaluation, run file or engine log."""
    from aigo_bridge.access.file_kinds import expanded
    from aigo_bridge.cli.result_arguments import named_results
    from aigo_bridge.results.sources import has_results, names_results

    if "://" in location:
        return [_named_log(_stored_log(location, engine, folder))]
    logs: list[tuple[str, Path]] = []
    for place in expanded(location):
        if names_results(place) or (Path(place).is_dir() and has_results(Path(place))):
            logs += [
                (one.key.split(".")[0], one.path) for one in named_results([place]) if one.path is not None
            ]
        else:
            logs.append(_named_log(_stored_log(place, engine, folder)))
    return logs


def _named_log(log: Path) -> tuple[str, Path]:
    return log.name.split(".")[0], log


def _stored_log(location: str, engine: Engine, folder: Path) -> Path:
    """Return the result log at a location; an engine log is first imported to `folder`."""
    from aigo_bridge.access.file_kinds import head_of, is_result_log
    from aigo_bridge.engine.registry import load_logs, logs_at, refuse_other
    from aigo_bridge.errors import EvidenceError, UsageError
    from aigo_bridge.importing.log_import import ImportOptions

    path = Path(location)
    if path.name.endswith(RESULT_SUFFIXES):
        if not path.is_file():
            raise UsageError(f"result log {location!r} does not exist", code=Code.NOTHING_THERE)
        return path
    head = None if "://" in location else head_of(path)
    if head is not None and is_result_log(head):
        return path
    importer = load_logs(engine.name)
    if not importer.files(location):
        refuse_other(location)
        engines = [name for name in logs_at(location) if name != engine.name]
        if engines:
            raise UsageError(
                f"{location!r} is a log of {engines[0]}; score it with --engine {engines[0]}",
                code=Code.OPTIONS_APART,
            )
    reports: list[ImportReport] = []
    # Nothing is redacted because scorers need the complete answers.
    code = importer.import_logs([location], folder, ImportOptions(redact=False), reports.append)
    if len(reports) != 1:
        raise UsageError(
            (f"{location!r} matches {plural(len(reports), 'log')}, expected one; name each log separately"),
            code=Code.OPTIONS_APART,
        )
    report = reports[0]
    if report.output is None or code:
        raise EvidenceError(_reason(location, report.lines), code=Code.UNREADABLE_LOG)
    return report.output


def _reason(location: str, lines: Sequence[str]) -> str:
    return (
        f"{location!r} cannot be imported completely, and a part of it would give other "
        f"metrics: {'; '.join(lines)} (recover the readable part with `aigo-bridge "
        "import`)"
    )
