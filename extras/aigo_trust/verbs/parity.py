"""`aigo-bridge parity`: certifies that engines produce equal results from the same answers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowOption,
    AllowUrlOption,
    BadTasksOption,
    ConfigOption,
    DatasetOption,
    EnvOption,
    ModelMapOption,
    NetworkOption,
    NumSamplesOption,
    NumTrialsOption,
    RootOption,
    SnippetsOption,
    SubsamplingOption,
    TaskArgument,
    verb_command,
)
from aigo_bridge.codes import Code
from aigo_bridge.text.plurals import plural

if TYPE_CHECKING:
    from aigo_bridge.engine.engine import Engine
    from aigo_bridge.engine.protocol import RunSettings
    from aigo_bridge.evaluation.running import ReadyEvaluation
    from aigo_trust.certificates import Certificate
    from aigo_trust.recording.replay import Cassette

app = typer.Typer(**VERB)


@app.command(
    "parity",
    cls=verb_command(
        "aigo-bridge run task.yaml --model openai/gpt-4.1-mini --record answers.cassette",
        "aigo-bridge parity task.yaml --replay answers.cassette",
        exit_codes={
            "0": "the engines agree and every call was recorded",
            "1": "the engines differ, a call was not recorded, or a run failed",
            "2": "wrong arguments or an invalid task",
        },
    ),
)
def parity(
    task: TaskArgument,
    replay: Annotated[
        Path,
        typer.Option(
            "--replay",
            metavar="CASSETTE",
            help="Recording of a run (`run --record`). It answers all model calls.",
        ),
    ],
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME,NAME", help="Engines to compare.")
    ] = "inspect,lighteval",
    model_map: ModelMapOption = None,
    config: ConfigOption = None,
    dataset: DatasetOption = None,
    num_samples: NumSamplesOption = None,
    subsampling: SubsamplingOption = None,
    num_trials: NumTrialsOption = None,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="Folder for the certificate and the results of each engine.",
        ),
    ] = Path("parity"),
    root: RootOption = None,
    allow_bad_tasks: BadTasksOption = False,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    allow_url: AllowUrlOption = None,
    network: NetworkOption = False,
    snippets: SnippetsOption = None,
    allow: AllowOption = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the certificate as JSON.")] = False,
) -> None:
    """Run a task on several engines with the same recorded answers, and certify that the scores are equal.

    DIR then contains parity.json and parity.md. They show whether messages and scores are the same for
    every sample, and the reason for each difference. No model is called.
    """
    from contextlib import ExitStack
    from dataclasses import replace

    from aigo_bridge.cli.error_handling import show_issues
    from aigo_bridge.cli.options import origin_of, pairs
    from aigo_bridge.cli.terminal import print_json, short_path
    from aigo_bridge.engine.protocol import RunSettings as Settings
    from aigo_bridge.engine.registry import load_engine
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.models import ModelChoice
    from aigo_bridge.evaluation.running import prepare
    from aigo_bridge.evaluation.task import evaluations_of
    from aigo_bridge.exit_codes import ExitCode
    from aigo_trust.recording.run_cassette import opened

    with ExitStack() as stack:
        names = [name.strip() for name in engine.split(",")]
        if len(names) < 2 or len(set(names)) < len(names) or "" in names:
            raise UsageError(
                f"--engine: found {engine!r}, expected several engines, e.g. inspect,lighteval",
                code=Code.WRONG_OPTION,
            )
        origin = origin_of(
            task,
            config=config,
            dataset=dataset,
            root=root,
            num_samples=num_samples,
            subsampling=subsampling,
            num_trials=num_trials,
            allow_bad_tasks=allow_bad_tasks,
        )
        cassette = stack.enter_context(opened(replay, show_issues))
        engines = [load_engine(name) for name in names]
        choice = ModelChoice(None, pairs("--model-map", model_map))
        evaluations = evaluations_of(origin, cache="update")
        prepared = prepare(evaluations, engines, choice, resume=False, recorded=cassette.models())
        settings = Settings(out)
        several = len(prepared) > 1
        certificates = [
            _certificate(
                one, engines, cassette, replace(settings, out=out / one.evaluation.key if several else out)
            )
            for one in prepared
        ]
        written = [_written(certificate, folder) for certificate, folder in certificates]
    if as_json:
        contents = [certificate.to_json() for certificate, _ in certificates]
        print_json(contents if several else contents[0])
    else:
        for (certificate, _), path in zip(certificates, written, strict=True):
            _print(certificate)
            typer.echo(f"certificate  {short_path(path)}")
    if not all(certificate.passed for certificate, _ in certificates):
        raise typer.Exit(ExitCode.FAILED)


def _certificate(
    prepared: ReadyEvaluation, engines: list[Engine], cassette: Cassette, settings: RunSettings
) -> tuple[Certificate, Path]:
    from dataclasses import replace

    from aigo_bridge.engine.provenance import engine_version
    from aigo_bridge.evaluation.running import run_evaluation
    from aigo_trust.certificates import Certificate, task_certificate

    players = {engine.name: cassette.player(notes_asked=True) for engine in engines}
    outcomes = {
        engine.name: run_evaluation(
            prepared,
            engine,
            replace(settings, out=settings.out / engine.name, recording=players[engine.name]),
        )
        for engine in engines
    }
    tasks = [
        task_certificate(dict(zip(outcomes, results, strict=True)), players)
        for results in zip(*(outcome.results for outcome in outcomes.values()), strict=True)
    ]
    certificate = Certificate(
        cassette.path,
        cassette.num_calls,
        players,
        tasks,
        {engine.name: engine_version(engine) for engine in engines},
        cassette.runs,
    )
    return certificate, settings.out


def _written(certificate: Certificate, folder: Path) -> Path:
    import orjson

    from aigo_bridge.results.log_files import open_for_replacing

    content = orjson.dumps(certificate.to_json(), option=orjson.OPT_INDENT_2) + b"\n"
    for name, data in (("parity.json", content), ("parity.md", certificate.to_markdown().encode())):
        with open_for_replacing(folder / name) as file:
            file.write(data)
    return folder / "parity.md"


def _print(certificate: Certificate) -> None:
    from aigo_bridge.cli.outcomes import EngineResults, show_parity
    from aigo_bridge.cli.terminal import name_of, printable

    show_parity([EngineResults(task.task, task.parity, ()) for task in certificate.tasks])
    for task in certificate.tasks:
        total = task.parity.num_samples
        typer.echo(
            f"{name_of(task.task)}: the same messages in {task.num_same_messages} of"
            f" {plural(total, 'sample')},"
            f" the same scores in {task.num_same_scores}"
        )
        for cause, count in task.causes.items():
            typer.echo(f"  {cause}: {count}")
        for difference in task.differences[:5]:
            where = "metric" if difference.sample is None else f"sample {difference.sample}"
            typer.echo(f"    {name_of(where)}: {printable(difference.detail)}")
    for engine, player in certificate.engines.items():
        missing = f", {player.num_missing} not found" if player.num_missing else ""
        unasked = f", {player.num_unasked} recorded calls not used" if player.num_unasked else ""
        typer.echo(f"{engine:12} answered {plural(player.num_given, 'call')}{missing}{unasked}")
