"""`aigo-bridge probe`: tests scorers with changed outputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from aigo_bridge.cli.options import (
    VERB,
    AllowFileOption,
    AllowOption,
    AllowUrlOption,
    ConfigOption,
    EnvOption,
    JsonOption,
    ModelMapOption,
    NetworkOption,
    RootOption,
    SnippetsOption,
    verb_command,
)
from aigo_bridge.codes import Code

if TYPE_CHECKING:
    from aigo_bridge.plan.plan import TaskPlan
    from aigo_trust.probing.judges import Judges
    from aigo_trust.recording.run_cassette import RunCassette

app = typer.Typer(**VERB)


@app.command(
    "probe",
    cls=verb_command(
        "aigo-bridge probe task.yaml out/capitals.tasklog.json",
        "aigo-bridge probe task.yaml out/chat.tasklog.json --model-map judge=openai/gpt-4.1-mini -n 50",
        exit_codes={
            "0": "all scorers react correctly",
            "1": "a scorer reacts wrongly",
            "2": "wrong arguments or an invalid task",
            "3": "no scorer reacts wrongly, but some could not be tested",
        },
        panels={
            "Perturbations": ("limit", "seed", "only", "right", "swap", "mirror", "tolerance"),
            "Judges": ("model_map", "engine", "max_connections", "record", "replay"),
        },
    ),
)
def probe(
    task: Annotated[
        str,
        typer.Argument(metavar="TASK", help="Your own task with the scorers: a task file or a shipped task."),
    ],
    result: Annotated[Path, typer.Argument(metavar="RESULT", help="Result log with the stored answers.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", metavar="FILE.probe.json", help="File for the evidence of the test."),
    ] = None,
    model_map: ModelMapOption = None,
    engine: Annotated[
        str, typer.Option("--engine", metavar="NAME", help="Engine that calls the judges.")
    ] = "inspect",
    limit: Annotated[
        int, typer.Option("--limit", "-n", min=1, metavar="N", help="Maximum number of answers to change.")
    ] = 20,
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Random seed for choosing answers.")] = 0,
    only: Annotated[
        list[str] | None,
        typer.Option(
            "--only",
            metavar="NAME",
            help="Apply only this perturbation, e.g. upper-case (see "
            "docs/guides/test-a-scorer.md). Repeatable.",
        ),
    ] = None,
    right: Annotated[
        list[str] | None,
        typer.Option(
            "--right",
            metavar="SCORER=NAME",
            help="Score or label that marks a correct answer, e.g. string_equals=is_correct. "
            "[default: the score of the first metric, or the label with the largest "
            "weight] Repeatable.",
        ),
    ] = None,
    swap: Annotated[
        list[str] | None,
        typer.Option(
            "--swap",
            metavar="COLUMN=COLUMN",
            help="Columns with the two answers that a judge compares, e.g. answer_a=answer_b. "
            "`columns-swapped` exchanges them. Repeatable.",
        ),
    ] = None,
    mirror: Annotated[
        list[str] | None,
        typer.Option(
            "--mirror",
            metavar="LABEL=LABEL",
            help="Labels that change places when columns are swapped, e.g. A=B. Repeatable.",
        ),
    ] = None,
    tolerance: Annotated[
        float,
        typer.Option(
            "--tolerance",
            min=0.0,
            metavar="X",
            help="Maximum score difference that counts as no change, e.g. 0.1.",
        ),
    ] = 0.0,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="CASSETTE", help="Record all judge replies in this file."),
    ] = None,
    replay: Annotated[
        Path | None,
        typer.Option(
            "--replay",
            metavar="CASSETTE",
            help="Answer all judge calls from this recording. No model is called.",
        ),
    ] = None,
    max_connections: Annotated[
        int,
        typer.Option(
            "--max-connections", min=1, metavar="N", help="Maximum number of concurrent judge calls."
        ),
    ] = 10,
    config: ConfigOption = None,
    root: RootOption = None,
    snippets: SnippetsOption = None,
    allow: AllowOption = None,
    env: EnvOption = None,
    allow_file: AllowFileOption = None,
    allow_url: AllowUrlOption = None,
    network: NetworkOption = False,
    as_json: JsonOption = False,
) -> None:
    """Change stored answers, score them again, and report scorers that react wrongly.

    Changes of whitespace, case or quotes should keep the score. A refusal, another number or another letter
    should change it. Judges are also tested with injected instructions, extra words and reordered labels.
    They are only called with --model-map or --replay.

    Only the scorers of your own task are used. Code inside a result is never executed.
    """
    from aigo_bridge.cli.error_handling import show_issues
    from aigo_bridge.cli.options import origin_of, pairs
    from aigo_bridge.cli.terminal import note, print_json, printable, short_path
    from aigo_bridge.errors import UsageError
    from aigo_bridge.evaluation.task import plan, scored_again
    from aigo_bridge.execution.permissions import resolve_permissions, snippet_host
    from aigo_bridge.exit_codes import ExitCode
    from aigo_trust.probing.evidence import probe_path, write_probe
    from aigo_trust.probing.probing import ProbeSettings
    from aigo_trust.probing.probing import probe as probed
    from aigo_trust.verbs.probes import show_probe

    if not result.is_file():
        raise UsageError(f"result log {str(result)!r} does not exist", code=Code.NOTHING_THERE)
    if out is not None:
        probe_path(out)
    settings = ProbeSettings(
        limit=limit,
        seed=seed,
        only=tuple(only or ()),
        tolerance=tolerance,
        right=pairs("--right", right),
        swaps=pairs("--swap", swap),
        mirror=pairs("--mirror", mirror),
    )
    origin = origin_of(task, config=config, dataset=None, root=root)
    task_plan = plan(scored_again(origin, result))
    show_issues(task_plan.warnings)
    task_plan = resolve_permissions(task_plan)
    with (
        _judges(task_plan, engine, pairs("--model-map", model_map), record, replay) as (judges, recording),
        closing(snippet_host(task_plan)) as host,
    ):
        judges.max_connections = max_connections
        outcome = probed(task_plan, result, settings, judges, host)
    if out is not None:
        write_probe(outcome, out)
    for difference in outcome.source.differences:
        note(f"note: the task has changed since the result: {printable(difference)}")
    if as_json:
        print_json(outcome.to_json())
    else:
        show_probe(outcome)
        if out is not None:
            typer.echo(f"evidence  {short_path(out)}")
    for line in recording.notes(0):
        typer.echo(line, err=True)
    if code := outcome.exit_code if recording.problem is None else ExitCode.FAILED:
        raise typer.Exit(code)


@contextmanager
def _judges(
    plan: TaskPlan, engine: str, model_map: dict[str, str], record: Path | None, replay: Path | None
) -> Iterator[tuple[Judges, RunCassette]]:
    """Yield the judge models and the recording for their calls.

    Raises:
        UsageError: the options conflict, or name an unknown item.
        EvidenceError: the cassette cannot be read.
    """
    from aigo_bridge.cli.error_handling import show_issues
    from aigo_bridge.engine.registry import load_engine, required
    from aigo_bridge.errors import UsageError
    from aigo_trust.probing.judges import Judges
    from aigo_trust.recording.recording import Recorder
    from aigo_trust.recording.run_cassette import RunCassette, opened

    keys = dict.fromkeys(
        scorer.judge_key
        for scorer in (() if plan.entity == "system" else plan.benchmark.scorers)
        if scorer.judge_key is not None
    )
    unknown = [key for key in model_map if key not in keys]
    if unknown:
        judge_keys = ", ".join(map(repr, keys)) or "none"
        raise UsageError(
            f"--model-map: no scorer of the task calls {unknown[0]!r}; they call {judge_keys}",
            code=Code.SURPLUS_ARGUMENT,
        )
    if replay is not None:
        if record is not None or model_map:
            raise UsageError(
                "--replay: calls that are answered from a cassette cannot be sent or recorded",
                code=Code.OPTIONS_APART,
            )
        with opened(replay, show_issues) as cassette:
            names = {key: name for key, name in cassette.models().items() if key in keys}
            player = cassette.player()
            judges = Judges(names, None, player.of_task(plan, engine, names))
            yield judges, RunCassette(cassette=cassette, players={engine: player})
        return
    if record is not None and not model_map:
        raise UsageError(
            "--record: no judge is called; choose its model with --model-map", code=Code.OPTIONS_APART
        )
    make = None
    if model_map:
        chosen = load_engine(engine)
        make = required(chosen.capabilities.model, f"engine {engine!r} cannot create models outside of runs")
    if record is None:
        yield Judges(model_map, make), RunCassette()
        return
    recorder = Recorder(record)
    try:
        yield Judges(model_map, make, recorder.of_task(plan, engine, model_map)), RunCassette(recorder)
    finally:
        recorder.close()
